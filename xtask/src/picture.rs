//! Draws terminal screens as SVG files. `cargo run -p xtask -- pictures SYSTOLL` draws all pictures
//! of the README and docs, each from a real run, and those of [`crate::screenshot`]; `COMMAND |
//! cargo run -p xtask -- picture FILE COMMAND` draws the output of COMMAND.

use crate::shell::{Run, pictures};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A picture in docs/, and the words after `systoll` whose output is shown.
struct Picture {
    file: &'static str,
    typed: &'static str,
}

const PICTURES: &[Picture] = &[
    Picture { file: "report.svg", typed: "run -- ./app" },
    Picture { file: "healthy.svg", typed: "run -- sort /etc/services" },
    Picture { file: "prove.svg", typed: "prove --cure tz-unset -- ./app" },
    Picture { file: "explain.svg", typed: "explain tz-unset -l perl" },
    Picture { file: "table.svg", typed: "run -c -- ./app" },
    Picture { file: "by.svg", typed: "run --by caller -- ./app" },
    Picture { file: "diff.svg", typed: "diff -E TZ=:/etc/localtime -- ./app" },
    Picture { file: "cure.svg", typed: "cure --print tz-unset --for systemd" },
    Picture { file: "fleet.svg", typed: "fleet -n 8 runs" },
    Picture { file: "fleet-new.svg", typed: "fleet runs new" },
    Picture { file: "fleet-odd-hosts.svg", typed: "fleet runs odd-hosts" },
    Picture { file: "top.svg", typed: "top service" },
];

/// Source of `./app` in the pictures.
const APP: &str = include_str!("../pictures/app.c");
/// Source of the program that `systoll top` shows.
const SERVICE: &str = include_str!("../pictures/service.c");

/// Draws all pictures of the docs, with the program `systoll`.
pub(crate) fn write_all(systoll: &Path) -> Result<()> {
    let systoll = systoll.canonicalize().with_context(|| format!("there is no {}", systoll.display()))?;
    let folder = std::env::temp_dir().join(format!("systoll-pictures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).context("no folder for the pictures' program")?;
    let drawn = draw_all(&systoll, &folder);
    std::fs::remove_dir_all(&folder).context("the pictures' program stays")?;
    drawn
}

fn draw_all(systoll: &Path, folder: &Path) -> Result<()> {
    std::fs::write(folder.join("app.c"), APP).context("can't write app.c")?;
    let python = python()?;
    let run = Run { systoll, folder, python: Some(&python) };
    run.shell("cc -O2 -g -o app app.c")?;
    std::fs::write(folder.join("service.c"), SERVICE).context("can't write service.c")?;
    run.shell("cc -O2 -g -pthread -o service service.c")?;
    let fleet = crate::repository::root().join("tests/fleet.py");
    let (python, fleet) = (python.display(), fleet.display());
    run.shell(&format!("{python} {fleet} --systoll \"$0\" --hosts 12 --services 6 --days 4 runs"))?;
    for picture in PICTURES {
        if picture.typed.starts_with("top ") {
            let said = run.shell(&top(picture.typed))?;
            write(&pictures().join(picture.file), &format!("systoll {}", picture.typed), last_screen(&said))?;
            continue;
        }
        // Both streams are shown, as on a terminal, without the output of the program itself.
        let (own, command) = picture.typed.split_once(" -- ").unwrap_or((picture.typed, ""));
        let streams = if own.starts_with("run") { "2>&1 > /dev/null" } else { "2>&1" };
        let dashes = if command.is_empty() { "" } else { " --color always -- " };
        let said = run.shell(&format!("exec \"$0\" {own}{dashes}{command} {streams}"))?;
        write(&pictures().join(picture.file), &format!("systoll {}", picture.typed), &said)?;
    }
    crate::screenshot::write_all(systoll, folder)
}

/// Returns the script that prints screens of the program `service`, as `systoll` with these words shows them.
fn top(typed: &str) -> String {
    let screens = format!("\"$0\" {typed} --batch 2 --every 2s --color always");
    format!("./service > /dev/null & s=$!; sleep 0.3; {screens}; told=$?; kill $s; exit $told")
}

/// Returns the last of several screens, each of which begins with a line that says for how long it watched.
fn last_screen(screens: &str) -> &str {
    let head = screens.rfind("watched").and_then(|at| screens.get(..at)).unwrap_or_default();
    let begin = head.rfind('\n').map_or(0, |at| at + 1);
    screens.get(begin..).unwrap_or(screens)
}

/// Returns the Python that tests/readers.py installed, which has DuckDB.
fn python() -> Result<PathBuf> {
    let readers = std::env::var_os("SYSTOLL_READERS").map(PathBuf::from);
    let readers = readers.unwrap_or_else(|| crate::repository::root().join("target/readers"));
    let python = readers.join("python/bin/python3");
    if !python.exists() {
        bail!("there is no {}: tests/readers.py makes it", python.display());
    }
    Ok(python)
}

/// Width of a character, in pixels; the next two constants are its height and the margin around the
/// text.
const COLUMN: f64 = 8.4;
const LINE: f64 = 18.0;
const MARGIN: f64 = 16.0;

/// Look of a piece of text, as set by the escape sequences that systoll writes.
#[derive(Clone, Copy, Default)]
struct Look {
    bold: bool,
    faint: bool,
    color: Option<&'static str>,
}

impl Look {
    /// Applies one number of an escape sequence; ignores numbers that systoll never writes.
    fn change(&mut self, number: &str) {
        match number {
            "" | "0" => *self = Self::default(),
            "1" => self.bold = true,
            "2" => self.faint = true,
            "31" => self.color = Some("#ff7b72"),
            "32" => self.color = Some("#7ee787"),
            "33" => self.color = Some("#e3b341"),
            "36" => self.color = Some("#79c0ff"),
            _ => {}
        }
    }

    fn attributes(self) -> String {
        let fill = self.color.unwrap_or(if self.faint { "#8b949e" } else { "#e6edf3" });
        format!("fill=\"{fill}\"{}", if self.bold { " font-weight=\"bold\"" } else { "" })
    }
}

/// Draws `output` as a terminal shows it, below the command that printed it.
pub(crate) fn write(file: &Path, command: &str, output: &str) -> Result<()> {
    std::fs::write(file, svg(command, output)).with_context(|| format!("can't write {}", file.display()))
}

fn svg(command: &str, output: &str) -> String {
    let prompt = format!("\u{1b}[2m$\u{1b}[0m {command}");
    let lines: Vec<Vec<(Look, String)>> = std::iter::once(prompt.as_str()).chain(output.lines()).map(pieces).collect();
    let columns = lines.iter().map(|line| line.iter().map(|(_, text)| text.chars().count()).sum::<usize>());
    let width = columns.max().unwrap_or(0) as f64 * COLUMN + 2.0 * MARGIN;
    let height = lines.len() as f64 * LINE + 2.0 * MARGIN;
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n"
    );
    for (n, line) in lines.iter().enumerate() {
        let y = MARGIN + (n as f64 + 0.75) * LINE;
        let mut column = 0;
        for (look, text) in line {
            for (after, word) in words(text) {
                let x = MARGIN + (column + after) as f64 * COLUMN;
                let wide = word.chars().count() as f64 * COLUMN;
                let _ = writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{wide:.1}\" {}>{}</text>",
                    look.attributes(),
                    escaped(word)
                );
            }
            column += text.chars().count();
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// Splits text at runs of two or more spaces, and returns each part with its column: browsers
/// collapse spaces, so none are drawn.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut all = vec![];
    let mut column = 0;
    for part in text.split("  ") {
        let word = part.trim();
        if !word.is_empty() {
            all.push((column + part.chars().take_while(|c| c.is_whitespace()).count(), word));
        }
        column += part.chars().count() + 2;
    }
    all
}

/// Splits a line into pieces, each of one look.
fn pieces(line: &str) -> Vec<(Look, String)> {
    let mut look = Look::default();
    let mut all = vec![];
    for (n, part) in line.split("\u{1b}[").enumerate() {
        let text = match part.split_once('m').filter(|_| n > 0) {
            Some((numbers, text)) => {
                numbers.split(';').for_each(|number| look.change(number));
                text
            }
            None => part,
        };
        all.push((look, text.to_owned()));
    }
    all
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screenshot::{MOST, SCREENSHOTS};

    #[test]
    fn colours_and_places_are_kept_and_nothing_is_markup() {
        let picture = svg("systoll", "a \u{1b}[1m\u{1b}[31mb<c\u{1b}[0m d");
        assert!(picture.contains(">a</text>") && picture.contains("font-weight=\"bold\">b&lt;c</text>"), "{picture}");
        let red = picture.lines().find(|line| line.contains("b&lt;c")).unwrap();
        assert!(red.contains("x=\"32.8\"") && red.contains("#ff7b72"), "{red}");
        assert!(!picture.contains('\u{1b}'));
        assert_eq!(last_screen("x watched 1 s\na\n\nx watched 2 s\nb\n"), "x watched 2 s\nb\n");
        assert_eq!(words("  a b   c    é  "), [(2, "a b"), (8, "c"), (13, "é")]);
    }

    /// Checks that each picture shows the command it says and is on a page, and that no page shows
    /// another picture.
    #[test]
    fn the_pictures_of_the_docs_are_those_that_are_drawn() {
        let root = crate::repository::root();
        let mut pages = std::fs::read_to_string(root.join("README.md")).unwrap();
        for page in crate::repository::files(&root).unwrap() {
            if page.starts_with("docs") && page.extension().is_some_and(|e| e == "md") {
                pages.push_str(&std::fs::read_to_string(root.join(page)).unwrap());
            }
        }
        for picture in PICTURES {
            let drawn = std::fs::read_to_string(crate::shell::pictures().join(picture.file)).unwrap();
            assert!(pieces_of(&drawn).contains(&format!("systoll {}", picture.typed)), "{}", picture.file);
            assert!(pages.contains(picture.file), "no page shows {}", picture.file);
        }
        for shot in &SCREENSHOTS {
            let drawn = std::fs::read(crate::shell::pictures().join(shot.file)).unwrap();
            assert!(drawn.starts_with(b"\x89PNG") && drawn.len() as u64 <= MOST, "{}", shot.file);
            assert!(pages.contains(shot.file), "no page shows {}", shot.file);
        }
        let is_picture = |file: &&str| file.ends_with(".svg") || file.ends_with(".png");
        for shown in pages.split("](").filter_map(|rest| rest.split(')').next()).filter(is_picture) {
            let name = shown.rsplit('/').next().unwrap();
            let mut drawn = PICTURES.iter().map(|p| p.file).chain(SCREENSHOTS.iter().map(|s| s.file));
            assert!(drawn.any(|file| file == name), "{shown} is drawn by nothing");
        }
        let report = pieces_of(&std::fs::read_to_string(crate::shell::pictures().join("report.svg")).unwrap());
        for word in ["tz-unset", "needless system calls", "TZ=:/etc/localtime"] {
            assert!(report.contains(word), "report.svg lacks {word:?}: {report}");
        }
    }

    fn pieces_of(picture: &str) -> String {
        picture.lines().filter_map(|line| Some(line.strip_suffix("</text>")?.rsplit_once('>')?.1)).collect()
    }
}
