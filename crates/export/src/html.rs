//! Makes the page: one file that opens offline, with a whole report in it.
//!
//! Invariants: nothing is fetched, and a policy in the page's head forbids it. Everything from the
//! recording is in one block of JSON that no text can end; the page's script turns it into text,
//! never into markup. The page stays below [`MOST`] bytes, whatever the recording, and says what it
//! left out.

mod cut;
mod data;
mod excerpt;
mod timeline;

pub use excerpt::{AROUND, Excerpt};

use crate::judged_recording::JudgedRecording;
use base64::prelude::{BASE64_STANDARD, Engine};
use sha2::{Digest, Sha256};
use systoll_model::inert_json;

/// Largest size of a page, bytes.
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

/// Returns the page of a recording. `source` returns the lines around a line of a file (see
/// [`AROUND`]), or `None` if they can't or may not be read.
pub fn page(judged: &JudgedRecording<'_>, source: &mut dyn FnMut(&str, u32) -> Option<Excerpt>) -> String {
    let sources = data::sources(judged, source);
    let mut bounds = cut::Bounds::default();
    loop {
        let page = assemble(&data::data(judged, &sources, &bounds).to_string());
        if page.len() <= MOST || !bounds.halve() {
            return page;
        }
    }
}

/// Fills the page's template from left to right: no piece is searched for the next piece's place.
fn assemble(data: &str) -> String {
    let (style_hash, script_hash) = (source_hash(STYLE), source_hash(SCRIPT));
    let pieces = [
        ("{style-hash}", style_hash.as_str()),
        ("{script-hash}", &script_hash),
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

/// Returns the hash by which a content security policy names a text: browsers apply and run only what has it.
///
/// <https://www.w3.org/TR/CSP3/#grammardef-hash-source>
fn source_hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

/// Escapes JSON so that nothing in it ends a script, opens a comment, or hides or reorders what somebody reads in the
/// page's source. These characters only occur inside strings.
fn inert(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in inert_json(json).chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_function_of_the_script_replaces_another() {
        let names = SCRIPT.lines().filter_map(|line| line.trim_start_matches("async ").strip_prefix("function "));
        let mut names: Vec<&str> = names.filter_map(|rest| rest.split('(').next()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert!(all > 20 && names.len() == all, "{names:?}");
    }

    #[test]
    fn all_pieces_have_their_place() {
        let page = assemble("{}");
        assert!(!page.contains("{style") && !page.contains("{script") && !page.contains("{data}"));
        assert!(page.contains(STYLE) && page.contains(SCRIPT) && page.ends_with("</html>\n"));
    }

    /// Compares with `openssl dgst -sha256 -binary | base64` of "abc".
    #[test]
    fn hashes_equal_those_of_browsers() {
        assert_eq!(source_hash("abc"), "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
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
