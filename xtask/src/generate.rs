//! Writes man pages and shell completions from the one definition of the command line.

use anyhow::{Context, Result};
use clap_complete::{Generator, Shell};
use std::path::Path;

/// Writes systoll.1 and one page for each command into `dir`.
pub(crate) fn man(dir: &Path) -> Result<()> {
    make(dir)?;
    crate::man::write(dir)
}

/// Writes a completion file for each common shell into `dir`.
pub(crate) fn completions(dir: &Path) -> Result<()> {
    make(dir)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut text = Vec::new();
        systoll::completions::write_for(shell, &mut text);
        let file = dir.join(shell.file_name("systoll"));
        std::fs::write(&file, text).with_context(|| format!("can't write {}", file.display()))?;
    }
    Ok(())
}

fn make(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("can't make {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(generate: fn(&Path) -> Result<()>, file: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        generate(&dir.path().join("new")).unwrap();
        std::fs::read_to_string(dir.path().join("new").join(file)).unwrap()
    }

    #[test]
    fn every_command_has_a_page_with_its_flags() {
        assert!(written(man, "systoll.1").contains("EXIT STATUS"));
        assert!(written(man, "systoll-run.1").contains("\\-\\-save"));
    }

    #[test]
    fn shells_complete_flags() {
        for file in ["systoll.bash", "_systoll", "systoll.fish"] {
            assert!(written(completions, file).contains("save"), "{file}");
        }
    }
}
