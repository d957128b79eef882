//! A report in the form in which it is kept beside its recording: lines that a reviewer of a change can read.
//!
//! Screens are lines that begin with `|`. The JSON is blocks of fields, one line a field: a name, and its value as
//! compact JSON, or as the digest of a value that is long and says nothing about findings.

use anyhow::{Context, Result};

/// A kept report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The screens: name and lines.
    pub screens: Vec<Screen>,
    /// The blocks of the JSON, in the order of the JSON.
    pub blocks: Vec<Block>,
}

/// A screen of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// The screen's name.
    pub name: String,
    /// The screen's lines.
    pub lines: Vec<String>,
}

/// An object of the report's JSON: a finding, a repeated pattern, or the report itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The name of the object's sort: `finding`, `remark`, `report`.
    pub sort: String,
    /// Names of fields, each with its value.
    pub fields: Vec<(String, String)>,
}

impl Block {
    /// Returns a field's value.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The beginning of a line that names a screen or a block. No other line begins so.
const HEAD: &str = "== ";
/// The first word after [`HEAD`] of a screen.
const SCREEN: &str = "screen ";

impl Document {
    /// Returns the document as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut put = |parts: &[&str]| {
            parts.iter().for_each(|part| out.push_str(part));
            out.push('\n');
        };
        for screen in &self.screens {
            put(&[HEAD, SCREEN, &screen.name]);
            screen.lines.iter().for_each(|line| put(&["|", line]));
        }
        for block in &self.blocks {
            put(&[HEAD, &block.sort]);
            block.fields.iter().for_each(|(name, value)| put(&[name, " ", value]));
        }
        out
    }

    /// Parses the text that [`Self::text`] returned.
    ///
    /// # Errors
    /// If a line belongs to no screen or block, or a field has no value.
    pub fn parse(text: &str) -> Result<Self> {
        let mut document = Self::default();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix(HEAD) {
                match name.strip_prefix(SCREEN) {
                    Some(name) => document.screens.push(Screen { name: name.into(), lines: Vec::new() }),
                    None => document.blocks.push(Block { sort: name.into(), fields: Vec::new() }),
                }
            } else if let Some(line) = line.strip_prefix('|') {
                let screen = document.screens.last_mut().context("a line of no screen")?;
                screen.lines.push(line.into());
            } else {
                let (name, value) = line.split_once(' ').with_context(|| format!("no field: {line}"))?;
                let block = document.blocks.last_mut().context("a field of no block")?;
                block.fields.push((name.into(), value.into()));
            }
        }
        Ok(document)
    }

    /// Returns the lines of a screen.
    pub(crate) fn lines_of(&self, screen: &str) -> Vec<&str> {
        let screens = self.screens.iter().filter(|known| known.name == screen);
        screens.flat_map(|screen| screen.lines.iter().map(String::as_str)).collect()
    }

    /// Returns the blocks of a sort.
    pub fn of_sort(&self, sort: &str) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |block| block.sort == sort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let document = Document {
            screens: vec![Screen { name: "report".into(), lines: vec!["== a".into(), String::new(), "| b".into()] }],
            blocks: vec![
                Block { sort: "report".into(), fields: vec![("calls".into(), "3".into())] },
                Block { sort: "finding".into(), fields: vec![("why".into(), "\"== x\"".into())] },
            ],
        };
        assert_eq!(Document::parse(&document.text()).unwrap(), document);
        assert!(Document::parse("calls 3\n").is_err() && Document::parse("|x\n").is_err());
        assert!(Document::parse("== report\ncalls\n").is_err());
    }
}
