//! Where the packages of fleets' engines are looked for, and the command that gets one.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where engines' packages may be: what the user names, else systoll's own folder for them, then the box's Python,
/// both only where no other user can have put something there: root may run with another's HOME.
pub(crate) fn pythons() -> Vec<OsString> {
    if let Some(named) = named() {
        return vec![named];
    }
    let own = home().map(|folder| folder.join("bin/python3")).filter(|python| systoll_trust::check(python).is_ok());
    own.into_iter().chain(systoll_trust::helper("python3")).map(PathBuf::into_os_string).collect()
}

fn named() -> Option<OsString> {
    std::env::var_os("SYSTOLL_PYTHON").filter(|p| !p.is_empty())
}

/// The folder that the advice for a missing package makes.
fn home() -> Option<PathBuf> {
    systoll_trust::data().map(|data| data.join("systoll/python"))
}

/// The one command that brings a package where it is found.
pub(crate) fn install(package: &str) -> String {
    if let Some(python) = named() {
        let python = systoll_present::shell_words(&[python.to_string_lossy().as_ref()]);
        return format!("get it: {python} -m pip install {package}");
    }
    let Some(home) = home() else { return format!("get it: python3 -m pip install {package}") };
    let home = systoll_present::shell_words(&[home.to_string_lossy().as_ref()]);
    format!("get it: python3 -m venv {home} && {home}/bin/pip install {package}")
}
