//! Splits a shell command into the part that builds and the part that runs.
//!
//! A compiler's calls are not the program's: only the run should be watched. A command that can't
//! be split safely stays whole.

/// The command before the last `&&`, and the command after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    pub(super) build: Option<&'a str>,
    pub(super) run: &'a str,
}

/// Commands that change the state of the shell, which later commands depend on.
const OF_THE_SHELL: [&str; 14] = [
    "cd", "pushd", "popd", "export", "unset", "set", "shopt", ".", "source", "alias", "eval", "umask", "ulimit", "exec",
];

/// Splits `text` at its last `&&`.
pub(super) fn parts(text: &str) -> Parts<'_> {
    let whole = Parts { build: None, run: text };
    let Some(at) = last_and(text) else { return whole };
    let (Some(build), Some(run)) = (text.get(..at), text.get(at + 2..)) else { return whole };
    if build.trim().is_empty() || run.trim().is_empty() || build.split("&&").any(changes_shell) {
        return whole;
    }
    Parts { build: Some(build.trim()), run: run.trim() }
}

/// Returns the position of the last `&&` between two commands; `None` if the text has other shell
/// syntax.
fn last_and(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut last, mut quote) = (0, None, None);
    while let Some(&byte) = bytes.get(at) {
        match (quote, byte) {
            (Some(b'\''), b'\'') | (Some(b'"'), b'"') => quote = None,
            (Some(b'\''), _) => {}
            (_, b'\\') => at += 1,
            (Some(_), b'`' | b'$') => return None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'&') if bytes.get(at + 1) == Some(&b'&') => {
                last = Some(at);
                at += 1;
            }
            // Subshells, groups, lists, jobs, comments, here-documents: such a command needs an
            // explicit `--build`.
            (None, b'(' | b')' | b'{' | b'}' | b'`' | b';' | b'&' | b'\n' | b'#' | b'$') => return None,
            (None, b'|') if bytes.get(at + 1) == Some(&b'|') => return None,
            (None, b'<') if bytes.get(at + 1) == Some(&b'<') => return None,
            (None, _) => {}
        }
        at += 1;
    }
    last.filter(|_| quote.is_none())
}

fn changes_shell(command: &str) -> bool {
    let first = command.split_whitespace().next().unwrap_or_default();
    let assigns = first.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
    let only_assigns = assigns && command.split_whitespace().all(|word| word.contains('='));
    OF_THE_SHELL.contains(&first) || only_assigns || ["if", "while", "for", "case", "until", "!"].contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_steps_are_before_the_last_and() {
        let of = |text| {
            let Parts { build, run } = parts(text);
            (build.map(str::to_owned), run.to_owned())
        };
        let split = |build: &str, run: &str| (Some(build.to_owned()), run.to_owned());
        assert_eq!(of("make -s && ./app"), split("make -s", "./app"));
        assert_eq!(of("./configure && make && ./app 'a && b'"), split("./configure && make", "./app 'a && b'"));
        assert_eq!(of("CFLAGS=-O2 make && ./app | wc"), split("CFLAGS=-O2 make", "./app | wc"));
        for whole in [
            "./app",
            "cd src && ./app",
            "X=1 && ./app",
            "export A=1 && make && ./app",
            "make; ./app",
            "make && (cd x && ./app)",
            "make || true && ./app",
            "make &&",
            "&& ./app",
            "make && ./app $(date)",
            "echo 'open && x",
            "for x in 1 && y",
        ] {
            assert_eq!(of(whole), (None, whole.to_owned()), "{whole}");
        }
    }
}
