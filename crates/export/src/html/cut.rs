//! How much of a recording a page holds.

use serde_json::Value;

/// Bounds of what is in a page; halved until it is small enough.
pub(super) struct Bounds {
    /// Rows told one by one; the others are added up.
    pub(super) rows: usize,
    /// Windows.
    pub(super) windows: usize,
    /// Findings, and remarks.
    pub(super) findings: usize,
    /// Characters of one text.
    pub(super) text: usize,
    /// Entries of a list that the bounds above say nothing of.
    pub(super) list: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { rows: 4_000, windows: 60, findings: 100, text: 2_000, list: 400 }
    }
}

impl Bounds {
    /// Half of everything; false where there is nothing left to halve.
    pub(super) fn halve(&mut self) -> bool {
        let before = self.rows + self.windows + self.findings + self.text + self.list;
        self.rows = (self.rows / 2).max(16);
        self.windows /= 2;
        self.findings = (self.findings / 2).max(4);
        self.text = (self.text / 2).max(60);
        self.list = (self.list / 2).max(8);
        before != self.rows + self.windows + self.findings + self.text + self.list
    }

    /// A text that is not too long.
    pub(super) fn text(&self, text: &str) -> String {
        match text.char_indices().nth(self.text) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text.to_owned(),
        }
    }

    /// Texts and lists within `json` cut, however deep they lie.
    pub(super) fn apply(&self, json: &mut Value) {
        match json {
            Value::String(text) => *text = self.text(text),
            Value::Array(list) => {
                list.truncate(self.list);
                list.iter_mut().for_each(|value| self.apply(value));
            }
            Value::Object(map) => map.values_mut().for_each(|value| self.apply(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
