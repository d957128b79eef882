//! A terminal's screen as an SVG file: `systoll run --color always -- ./app 2>&1 | cargo run -p xtask -- picture FILE`.
//!
//! The pictures of the README and docs are made of real output this way, so that they show what is printed.

use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

/// Width and height of a character, in pixels, and the room around the text.
const COLUMN: f64 = 8.4;
const LINE: f64 = 18.0;
const MARGIN: f64 = 16.0;

/// How a piece of text is drawn: the escape sequences that systoll writes.
#[derive(Clone, Copy, Default)]
struct Look {
    bold: bool,
    faint: bool,
    color: Option<&'static str>,
}

impl Look {
    /// Changes by one number of an escape sequence; what systoll never writes changes nothing.
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

/// Draws what a terminal would show of `output`, below the command that printed it.
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
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\" xml:space=\"preserve\">\n"
    );
    for (n, line) in lines.iter().enumerate() {
        let y = MARGIN + (n as f64 + 0.75) * LINE;
        let mut column = 0;
        for (look, text) in line {
            let x = MARGIN + column as f64 * COLUMN;
            let count = text.chars().count();
            column += count;
            if !text.trim().is_empty() {
                let wide = count as f64 * COLUMN;
                let _ = writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{wide:.1}\" {}>{}</text>",
                    look.attributes(),
                    escaped(text)
                );
            }
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// A line's pieces of one look each.
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

    #[test]
    fn colours_and_places_are_kept_and_nothing_is_markup() {
        let picture = svg("systoll", "a \u{1b}[1m\u{1b}[31mb<c\u{1b}[0m d");
        assert!(picture.contains(">a </text>") && picture.contains("font-weight=\"bold\">b&lt;c</text>"), "{picture}");
        let red = picture.lines().find(|line| line.contains("b&lt;c")).unwrap();
        assert!(red.contains("x=\"32.8\"") && red.contains("#ff7b72"), "{red}");
        assert!(!picture.contains('\u{1b}'));
    }

    /// The README's picture is one of these, and of a run: it names a finding and its cure.
    #[test]
    fn the_pictures_of_the_docs_are_real() {
        let picture = std::fs::read_to_string(crate::repository::root().join("docs/report.svg")).unwrap();
        let text = pieces_of(&picture);
        for word in ["systoll run -- ./app", "tz-unset", "needless system calls", "TZ=:/etc/localtime"] {
            assert!(text.contains(word), "docs/report.svg lacks {word:?}: {text}");
        }
    }

    fn pieces_of(picture: &str) -> String {
        picture.lines().filter_map(|line| Some(line.strip_suffix("</text>")?.rsplit_once('>')?.1)).collect()
    }
}
