//! Where the packages of fleets' engines are looked for, and the command that gets one.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where engines' packages may be: what the user names, then systoll's own folder for them, then Python's.
pub(crate) fn pythons() -> Vec<OsString> {
    let named = std::env::var_os("SYSTOLL_PYTHON").filter(|p| !p.is_empty());
    let own = home().map(|folder| folder.join("bin/python3").into_os_string());
    named.map_or_else(|| own.into_iter().chain([OsString::from("python3")]).collect(), |named| vec![named])
}

/// The folder that the advice for a missing package makes.
fn home() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").filter(|p| !p.is_empty()).map(PathBuf::from);
    let data = data.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    data.filter(|data| data.is_absolute()).map(|data| data.join("systoll/python"))
}

/// The one command that brings a package where it is found.
pub(crate) fn install(package: &str) -> String {
    if let Some(python) = std::env::var_os("SYSTOLL_PYTHON").filter(|p| !p.is_empty()) {
        let python = systoll_present::shell_words(&[python.to_string_lossy().as_ref()]);
        return format!("get it: {python} -m pip install {package}");
    }
    let Some(home) = home() else { return format!("get it: python3 -m pip install {package}") };
    let home = systoll_present::shell_words(&[home.to_string_lossy().as_ref()]);
    format!("get it: python3 -m venv {home} && {home}/bin/pip install {package}")
}
