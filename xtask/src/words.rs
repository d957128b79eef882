//! Private words of the project, which readers of screens, help and docs/use do not know: the field has its own for them.

use std::path::Path;

/// The private words, each with the field's.
const PRIVATE: [(&[&str], &str); 9] = [
    (&["toll", "tolls"], "cost"),
    (&["dear", "dearer", "dearest"], "expensive"),
    (&["told"], "reported, said"),
    (&["round", "rounds"], "repeated pattern"),
    (&["rhythm", "rhythms"], "rate"),
    (&["stay", "stays", "stayed"], "remain"),
    (&["errand", "errands"], "call made for systoll"),
    (&["octave", "octaves"], "doubling"),
    (&["habit", "habits"], "pattern"),
];
/// A private phrase of two words, with the field's.
const LOOKED_AT: ([&str; 2], &str) = (["looked", "at"], "sampled");

/// Lines of code comments with a private word. The number may only fall: whoever takes some out lowers it.
const IN_COMMENTS: usize = 815;

/// Folders of the sources whose sentences reach a screen.
const SCREENS: [&str; 6] = [
    "crates/present/src/",
    "crates/systoll/src/",
    "crates/judge/src/",
    "crates/export/src/",
    "crates/import/src/",
    "crates/prove/src/",
];
/// Tables within them whose sentences reach none.
const TABLES: &str = "crates/judge/src/semantics/";

/// Returns the first private word of a text and the field's word for it.
fn first(text: &str) -> Option<(&'static str, &'static str)> {
    let words: Vec<String> = text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_lowercase).collect();
    let private = |word: &String| {
        PRIVATE.iter().find_map(|(private, instead)| Some((*private.iter().find(|p| *p == word)?, *instead)))
    };
    let ([one, two], instead) = LOOKED_AT;
    let phrase = words.windows(2).any(|pair| pair == [one, two]);
    words.iter().find_map(private).or(phrase.then_some((one, instead)))
}

/// Returns the lines of a file that a reader sees and that have a private word.
pub(crate) fn shown(file: &Path, text: &str) -> Vec<String> {
    let name = file.to_string_lossy();
    let lines: Vec<(usize, String)> = if name.starts_with("docs/use/") && name.ends_with(".md") || name == "README.md" {
        text.lines().map(without_code).enumerate().collect()
    } else if name.ends_with(".sql") {
        text.lines().map(|line| line.strip_prefix("--").unwrap_or_default().to_owned()).enumerate().collect()
    } else if name.ends_with(".rs")
        && SCREENS.iter().any(|folder| name.starts_with(folder))
        && !name.starts_with(TABLES)
    {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        code.lines().map(sentences).enumerate().collect()
    } else {
        return Vec::new();
    };
    let show = |(at, line): (usize, String)| {
        let (word, instead) = first(&line)?;
        Some(format!("{name}:{}: \"{word}\" is a private word; the field says: {instead}", at + 1))
    };
    lines.into_iter().filter_map(show).collect()
}

/// Returns the texts of `systoll --help` and its commands that have a private word.
#[cfg(test)]
pub(crate) fn in_help() -> Vec<String> {
    let command = systoll::cli::command();
    let mut broken = Vec::new();
    let below = command.get_subcommands().flat_map(|command| command.get_subcommands());
    for command in command.get_subcommands().chain(below).chain([&command]) {
        let own = [command.get_about(), command.get_after_help()].map(|text| text.map(ToString::to_string));
        // The names of values are a contract with scripts.
        let of_options = command.get_arguments().map(|option| {
            let values = option.get_possible_values();
            let without = |text: String| values.iter().fold(text, |text, value| text.replace(value.get_name(), ""));
            option.get_help().map(ToString::to_string).map(without)
        });
        for text in own.into_iter().chain(of_options).flatten() {
            if let Some((word, instead)) = text
                .lines()
                .map(without_code)
                .find_map(|line| first(&line).map(|(word, instead)| (word.to_owned(), instead)))
            {
                broken
                    .push(format!("systoll {}: \"{word}\" in its help; the field says: {instead}", command.get_name()));
            }
        }
    }
    broken
}

/// Returns the number of lines of a source's comments that have a private word.
pub(crate) fn in_comments(file: &Path, text: &str) -> usize {
    let is_source = file.extension().is_some_and(|ending| ending == "rs");
    let comment = |line: &'_ str| line.split_once("//").map(|(_, comment)| comment.to_owned());
    let has = |line: &str| comment(line).is_some_and(|comment| first(&comment).is_some());
    if is_source { text.lines().filter(|line| has(line)).count() } else { 0 }
}

/// Returns what is wrong if `lines` of comments have private words.
pub(crate) fn too_many_in_comments(lines: usize) -> Option<String> {
    let text = format!("{lines} lines of comments have private words, {IN_COMMENTS} are allowed (xtask/src/words.rs)");
    (lines > IN_COMMENTS).then_some(text)
}

/// Returns a line of a page without its `code`: names of flags, of JSON's fields and of columns stay what they are.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Returns the texts in quotes of a line of Rust that are more than one word, without what they have in `{}` and in quotes
/// of their own.
fn sentences(line: &str) -> String {
    if line.trim_start().starts_with("//") {
        return String::new();
    }
    let line = line.replace("\\\"", " ");
    let texts = line.split('"').skip(1).step_by(2).filter(|text| text.trim().contains(' '));
    let plain = |text: &str| {
        let mut depth = 0usize;
        let outside = text.chars().filter(|c| {
            depth += usize::from(*c == '{');
            let shown = depth == 0;
            depth -= usize::from(*c == '}' && depth > 0);
            shown
        });
        without_code(&outside.collect::<String>())
    };
    texts.map(plain).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_words_are_found_where_readers_see_them() {
        let shown = |name: &str, text: &str| super::shown(Path::new(name), text).len();
        assert_eq!(shown("docs/use/attach.md", "the toll of a call"), 1);
        assert_eq!(shown("docs/use/attach.md", "JSON has `toll_ns` and `told`"), 0);
        assert_eq!(shown("docs/evidence/performance.md", "the toll of a call"), 0);
        assert_eq!(shown("crates/present/src/a.rs", r#"let a = format!("{told} of {round}, not more");"#), 0);
        assert_eq!(shown("crates/present/src/a.rs", r#"let a = format!("{n} calls looked at");"#), 1);
        assert_eq!(shown("crates/present/src/a.rs", "// the toll of a call\n#[serde(rename = \"told\")]"), 0);
        assert_eq!(shown("crates/present/src/a.rs", "#[cfg(test)]\nlet a = \"a round of calls\";"), 0);
        assert_eq!(in_comments(Path::new("a.rs"), "// a round\nlet round = 1;\n/// The toll."), 2);
        assert!(too_many_in_comments(IN_COMMENTS).is_none() && too_many_in_comments(IN_COMMENTS + 1).is_some());
    }

    #[test]
    fn the_help_uses_the_words_of_the_field() {
        assert_eq!(in_help(), Vec::<String>::new());
    }
}
