//! `systoll cure --print --for code`: what to change in the program.

use crate::explain::known;
use crate::failure::Failure;
use systoll_judge::{Catalogue, Cause, Cure, CureKind};

/// The cures in code of these causes, by language: what to do, what it gives up, and where there is an example the
/// lines to take out and to put in.
pub(super) fn of_causes(catalogue: &Catalogue, asked: &[String]) -> Result<String, Failure> {
    // `ID:N` is one of its cures; here all are told.
    let id =
        |asked: &str| asked.rsplit_once(':').filter(|(_, n)| n.parse::<usize>().is_ok()).map(|(id, _)| id.to_owned());
    let of = |asked: &String| Ok(of_cause(known(catalogue, &id(asked).unwrap_or_else(|| asked.clone()))?));
    asked.iter().map(of).collect()
}

fn of_cause(cause: &Cause) -> String {
    let in_code = cause.stop.iter().filter(|cure| cure.kind == CureKind::Code);
    in_code.map(|cure| format!("# {}, {}\n{}\n", cause.id, language(cure), change(cure))).collect()
}

fn language(cure: &Cure) -> String {
    match cure.languages.as_slice() {
        [] => "any language".to_owned(),
        some => some.iter().map(|language| language.shown()).collect::<Vec<_>>().join(", "),
    }
}

fn change(cure: &Cure) -> String {
    let mut text = format!("# {}\n", cure.how);
    if !cure.gives_up.is_empty() {
        text.push_str(&format!("# gives up: {}\n", cure.gives_up));
    }
    if let Some(example) = &cure.example {
        for (sign, lines) in [("-", &example.before), ("+", &example.after)] {
            text.extend(lines.trim_end().lines().map(|line| format!("{sign}{line}\n")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_only_be_changed_in_code_is_shown_as_a_change() {
        let catalogue = Catalogue::builtin();
        let text = of_causes(&catalogue, &["process-per-item".to_owned()]).ok().unwrap();
        assert!(text.contains("# process-per-item, Python\n"), "{text}");
        assert!(text.contains("\n+import os\n") && text.contains("\n-import subprocess\n"), "{text}");
        assert!(of_causes(&catalogue, &["no-such-cause".to_owned()]).is_err());
    }
}
