//! Runs the machine's C compiler.

use crate::CureError;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

/// Names of C compilers, most usual first.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// Flags of the compiler: optimised as programs are shipped, with line numbers, and without
/// warnings, which a demo's user need not see.
const FLAGS: [&str; 4] = ["-O2", "-g", "-w", "-fno-lto"];

/// A file to compile.
pub(crate) struct Job<'a> {
    /// File name of the source, which debug information will contain.
    pub(crate) source_name: &'a str,
    /// The source's text.
    pub(crate) source: &'a str,
    /// File name of the result.
    pub(crate) output: &'a str,
    /// Flags in addition to [`FLAGS`].
    pub(crate) flags: &'a [&'a str],
}

impl Job<'_> {
    /// Writes the source into `dir` and compiles it there. Returns the path of the result.
    pub(crate) fn build(&self, dir: &Path) -> Result<PathBuf, CureError> {
        let source = dir.join(self.source_name);
        fs::write(&source, self.source).map_err(|e| CureError::Write { path: source, source: e })?;
        let chosen = std::env::var_os("CC").filter(|cc| !cc.is_empty());
        let (names, found) = match chosen {
            Some(cc) => (cc.display().to_string(), vec![cc]),
            None => {
                let found = COMPILERS.iter().filter_map(|name| systoll_trust::helper(name));
                (COMPILERS.join(", "), found.map(OsString::from).collect())
            }
        };
        for name in &found {
            match self.compile(name, dir) {
                Ok(()) => return Ok(dir.join(self.output)),
                Err(CureError::RunCompiler { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Err(CureError::NoCompiler { tried: names })
    }

    fn compile(&self, compiler: &OsStr, dir: &Path) -> Result<(), CureError> {
        // The compiler's temporary files are in our folder too: if the compiler is killed, they are
        // removed with the folder.
        let out = Command::new(compiler)
            .args(FLAGS)
            .args(["-o", self.output, self.source_name])
            .args(self.flags)
            .current_dir(dir)
            .env("TMPDIR", dir)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| CureError::RunCompiler { compiler: compiler.display().to_string(), source: e })?;
        if out.status.success() {
            return Ok(());
        }
        Err(CureError::Compile {
            name: self.output.to_owned(),
            compiler: compiler.display().to_string(),
            message: String::from_utf8_lossy(&out.stderr).trim_end().to_owned(),
        })
    }
}

/// Returns the compiler that would build the demo's programs, if there is one.
pub fn compiler() -> Option<String> {
    let chosen = std::env::var("CC").ok().filter(|cc| !cc.is_empty());
    let runs = |program: &OsStr| {
        let mut asked = Command::new(program);
        asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|s| s.success())
    };
    match chosen {
        Some(cc) => runs(OsStr::new(&cc)).then_some(cc),
        None => {
            let found = |name: &&&str| systoll_trust::helper(name).is_some_and(|path| runs(path.as_os_str()));
            COMPILERS.iter().find(found).map(|name| (*name).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_errors_reach_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let job = Job { source_name: "bad.c", source: "int main( {", output: "bad", flags: &[] };
        match job.build(dir.path()) {
            Err(CureError::Compile { name, message, .. }) => {
                assert_eq!(name, "bad");
                assert!(message.contains("bad.c:1"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error() {
        let job = Job { source_name: "x.c", source: "", output: "x", flags: &[] };
        assert!(matches!(job.build(Path::new("/nonexistent")), Err(CureError::Write { .. })));
    }
}
