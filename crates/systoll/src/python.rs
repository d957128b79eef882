//! Finds the Python installations that fleets' engines may be in, and the command that installs
//! one.

use crate::environment;
use std::ffi::OsString;
use std::path::PathBuf;

/// Returns the Pythons to try: the user's choice alone, else systoll's own and then the box's. The
/// latter two count only if no other user can have changed them: root may run with another user's
/// HOME.
pub(crate) fn pythons() -> Vec<OsString> {
    if let Some(named) = environment::python() {
        return vec![named];
    }
    let own = home().map(|folder| folder.join("bin/python3")).filter(|python| systoll_trust::check(python).is_ok());
    own.into_iter().chain(systoll_trust::helper("python3")).map(PathBuf::into_os_string).collect()
}

/// Returns the folder that the advice below creates.
fn home() -> Option<PathBuf> {
    systoll_trust::data().map(|data| data.join("systoll/python"))
}

/// Returns the command that installs a package where it will be found.
pub(crate) fn install(package: &str) -> String {
    if let Some(python) = environment::python() {
        let python = systoll_present::shell_words(&[python.to_string_lossy().as_ref()]);
        return format!("get it: {python} -m pip install {package}");
    }
    let Some(home) = home() else { return format!("get it: python3 -m pip install {package}") };
    let home = systoll_present::shell_words(&[home.to_string_lossy().as_ref()]);
    format!("get it: python3 -m venv {home} && {home}/bin/pip install {package}")
}
