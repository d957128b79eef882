//! Bounds the part of a recording that a page holds.

use serde_json::Value;

/// Bounds of a page's contents. They are halved until the page is small enough.
pub(super) struct Bounds {
    /// Number of rows in the table; the others are added up.
    pub(super) rows: usize,
    /// Number of windows in the page.
    pub(super) windows: usize,
    /// Number of findings in the page and, separately, of remarks.
    pub(super) findings: usize,
    /// Number of characters of a text.
    pub(super) text: usize,
    /// Number of entries of any other list.
    pub(super) list: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { rows: 4_000, windows: 60, findings: 100, text: 2_000, list: 400 }
    }
}

impl Bounds {
    /// Halves all bounds. Returns false if they were at their minimum.
    pub(super) fn halve(&mut self) -> bool {
        let before = self.rows + self.windows + self.findings + self.text + self.list;
        self.rows = (self.rows / 2).max(16);
        self.windows /= 2;
        self.findings = (self.findings / 2).max(4);
        self.text = (self.text / 2).max(60);
        self.list = (self.list / 2).max(8);
        before != self.rows + self.windows + self.findings + self.text + self.list
    }

    /// Returns `text` cut to the bound.
    pub(super) fn text(&self, text: &str) -> String {
        match text.char_indices().nth(self.text) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text.to_owned(),
        }
    }

    /// Cuts all texts and lists within `json`, however deep.
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
