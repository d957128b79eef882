//! The page: one file that opens offline, with all of a report in it.
//!
//! Invariants: nothing is fetched, and a policy in the page's head forbids it; what a recording says is in one
//! block of JSON that no text can end, and the page's script makes text of it, never markup; the page stays
//! below [`MOST`] bytes, whatever the recording, and says what it left out.

mod cut;
mod data;
mod excerpt;
mod timeline;

pub use excerpt::{AROUND, Excerpt};

use crate::judged::Judged;

/// Bytes of a page, at most.
pub const MOST: usize = 2_000_000;

const PAGE: &str = include_str!("html/page/page.html");
const STYLE: &str = include_str!("html/page/page.css");
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("html/page/dom.js"),
    include_str!("html/page/findings.js"),
    include_str!("html/page/flame.js"),
    include_str!("html/page/timeline.js"),
    include_str!("html/page/table.js"),
    include_str!("html/page/windows.js"),
    include_str!("html/page/main.js"),
    "})();\n"
);

/// SHA-256 of [`STYLE`] and [`SCRIPT`] in base64: browsers apply and run what has these, and nothing else. A test
/// (`tests/suites/page.py`) says what they must be.
const STYLE_HASH: &str = "sha256-DYcydE2w7U6CbbaLc7OGbJPjikedItApUNoCAcmtaDk=";
const SCRIPT_HASH: &str = "sha256-8bfHr/uOwAbCc5Z76SHKMPsPliv/+2TkS90NgzE9xGc=";

/// The page of a recording. `source` gives what can be read around a line of a file (see [`AROUND`]), `None`
/// where it can't or may not be.
pub fn page(judged: &Judged<'_>, source: &mut dyn FnMut(&str, u32) -> Option<Excerpt>) -> String {
    let sources = data::sources(judged, source);
    let mut bounds = cut::Bounds::default();
    loop {
        let page = assemble(&data::data(judged, &sources, &bounds).to_string());
        if page.len() <= MOST || !bounds.halve() {
            return page;
        }
    }
}

/// Pieces are put in from left to right, so that no piece is looked through for the place of another.
fn assemble(data: &str) -> String {
    let pieces = [
        ("{style-hash}", STYLE_HASH),
        ("{script-hash}", SCRIPT_HASH),
        ("{style}", STYLE),
        ("{data}", &inert(data)),
        ("{script}", SCRIPT),
    ];
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + data.len());
    let mut rest = PAGE;
    for (place, piece) in pieces {
        let (before, after) = rest.split_once(place).unwrap_or((rest, ""));
        page.push_str(before);
        page.push_str(piece);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// JSON in which nothing ends a script or opens a comment: outside strings these signs do not occur.
fn inert(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pieces_have_their_place() {
        let page = assemble("{}");
        assert!(!page.contains("{style") && !page.contains("{script") && !page.contains("{data}"));
        assert!(page.contains(STYLE) && page.contains(SCRIPT) && page.ends_with("</html>\n"));
    }

    #[test]
    fn no_text_ends_the_block() {
        let hostile = serde_json::json!({"a": "</script><!-- <script> & \u{2028}"}).to_string();
        let inert = inert(&hostile);
        assert!(!inert.contains(['<', '>', '&', '\u{2028}']), "{inert}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&inert).unwrap().to_string(), hostile);
    }

    #[test]
    fn the_script_has_no_end_in_it_and_makes_no_markup() {
        for way in ["</script", "<!--", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!SCRIPT.contains(way), "{way}");
        }
        assert!(!STYLE.contains("</style") && !STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
