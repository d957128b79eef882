//! Programs of the box that systoll starts on its own, without a user's choice.

use crate::check;
use nix::unistd::{AccessFlags, access};
use std::path::PathBuf;

/// Returns the first program of that name in `PATH` that no other user can have changed. Ignores
/// relative folders in `PATH`, which depend on the current folder.
#[must_use]
pub fn helper(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(|program| {
        let runs = || program.is_file() && access(program, AccessFlags::X_OK).is_ok();
        runs() && check(program).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::helper;

    #[test]
    fn programs_of_the_box_are_found() {
        assert!(helper("sh").unwrap().is_absolute());
        assert_eq!(helper("no-such-program-here"), None);
    }
}
