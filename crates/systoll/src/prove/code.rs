//! Implements `systoll cure --print --for code`: changes of the program itself.

use crate::explain::known;
use crate::failure::Failure;
use systoll_judge::{Catalogue, Cause, Cure, CureKind};

/// Describes the cures in code of these causes, by language: what to do, what it gives up, and, if
/// there is an example, the lines to remove and to add.
pub(super) fn of_causes(catalogue: &Catalogue, asked: &[String]) -> Result<String, Failure> {
    // `ID:N` means one cure; here all are shown.
    let id =
        |asked: &str| asked.rsplit_once(':').filter(|(_, n)| n.parse::<usize>().is_ok()).map(|(id, _)| id.to_owned());
    let of = |asked: &String| Ok(of_cause(known(catalogue, &id(asked).unwrap_or_else(|| asked.clone()))?));
    asked.iter().map(of).collect()
}

/// Describes a cause's cures in code: first those for every language; within a language, those for
/// callers of one library last.
fn of_cause(cause: &Cause) -> String {
    let mut in_code: Vec<&Cure> = cause.cures.iter().filter(|cure| cure.kind == CureKind::Code).collect();
    in_code.sort_by_key(|cure| (!cure.languages.is_empty(), library(cure).is_some()));
    in_code.iter().map(|cure| format!("# {}, {}\n{}\n", cause.id, language(cure), change(cure))).collect()
}

/// Returns the library, module or function whose callers a cure is for.
fn library(cure: &Cure) -> Option<String> {
    let names: Vec<&str> = [&cure.sources, &cure.modules, &cure.functions, &cure.about]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn language(cure: &Cure) -> String {
    match cure.languages.as_slice() {
        [] => "any language".to_owned(),
        some => some.iter().map(|language| language.shown()).collect::<Vec<_>>().join(", "),
    }
}

fn change(cure: &Cure) -> String {
    let mut text = format!("# {}\n", cure.how);
    if let Some(library) = library(cure) {
        text.push_str(&format!("# where it is made by: {library}\n"));
    }
    if !cure.situation.is_empty() {
        text.push_str(&format!("# when: {}\n", cure.situation));
    }
    if !cure.gives_up.is_empty() {
        text.push_str(&format!("# gives up: {}\n", cure.gives_up));
    }
    for (sign, lines) in [("-", &cure.before), ("+", &cure.after)] {
        text.extend(lines.iter().flat_map(|lines| lines.trim_end().lines()).map(|line| format!("{sign}{line}\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_cures_are_shown_as_changes() {
        let catalogue = Catalogue::builtin();
        let text = of_causes(&catalogue, &["process-per-item".to_owned()]).ok().unwrap();
        assert!(text.contains("# process-per-item, Python\n"), "{text}");
        assert!(text.contains("\n+import os\n") && text.contains("\n-import subprocess\n"), "{text}");
        // Cures for every language come first, and those for callers of one library say so.
        let stat = of_causes(&catalogue, &["stat-per-op".to_owned()]).ok().unwrap();
        assert!(stat.starts_with("# stat-per-op, any language\n"), "{stat}");
        assert!(stat.contains("call which(name)\n# where it is made by: */shutil.py\n"), "{stat}");
        assert!(of_causes(&catalogue, &["no-such-cause".to_owned()]).is_err());
    }
}
