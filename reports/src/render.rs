//! Judges a recording and renders its report as it is kept: screens, JSON and the page's data.

use crate::document::{Block, Document, Screen};
use anyhow::{Context, Result};
use serde_json::{Map, Number, Value};
use std::io::BufReader;
use std::path::Path;
use systoll_export::JudgedRecording;
use systoll_export::html::page;
use systoll_judge::{Catalogue, Judgement, Options, judge};
use systoll_model::Recording;
use systoll_present::{ReportOptions, Style, report_json, write_report, write_requests};

/// A judged recording.
#[derive(Debug)]
pub struct Judged {
    /// The recording.
    pub recording: Recording,
    /// Its judgement.
    pub judgement: Judgement,
    /// The JSON of its report.
    pub json: Value,
}

/// Reads a recording.
///
/// # Errors
/// If the file can't be read or is no recording.
pub fn read(path: &Path) -> Result<Recording> {
    let file = std::fs::File::open(path).with_context(|| format!("can't open {}", path.display()))?;
    Recording::read(BufReader::new(file)).with_context(|| format!("can't read {}", path.display()))
}

impl Judged {
    /// Judges a recording by the causes that are built in.
    pub fn of(recording: Recording, catalogue: &Catalogue) -> Self {
        let judgement = judge(&recording, catalogue, &Options::default());
        let json = report_json(&recording, &judgement, None);
        Self { recording, judgement, json }
    }

    /// Returns the report as it is kept.
    ///
    /// # Errors
    /// If a screen can't be written.
    pub fn document(&self) -> Result<Document> {
        let mut screens =
            vec![self.screen("report", |w, options, style| {
                write_report(w, &self.recording, &self.judgement, options, style)
            })?];
        if self.judgement.requests.is_some() {
            screens.push(self.screen("requests", |w, options, style| {
                write_requests(w, &self.recording, &self.judgement, None, options, style)
            })?);
        }
        let page = page(&JudgedRecording::new(&self.recording, &self.judgement), &mut |_, _| None);
        let mut blocks = blocks(&self.json);
        blocks.push(digests("page", &page_data(&page)?));
        Ok(Document { screens, blocks })
    }

    fn screen(
        &self,
        name: &str,
        write: impl Fn(&mut dyn std::io::Write, &ReportOptions, &Style) -> std::io::Result<()>,
    ) -> Result<Screen> {
        let options = ReportOptions { all: true, rounds: true, fds: true, ..ReportOptions::default() };
        let mut bytes = Vec::new();
        write(&mut bytes, &options, &Style::default())?;
        let text = String::from_utf8(bytes).context("a screen is no UTF-8")?;
        Ok(Screen { name: name.into(), lines: text.lines().map(str::to_owned).collect() })
    }
}

/// Returns the data that the page's script draws.
fn page_data(page: &str) -> Result<Value> {
    let (_, rest) = page.split_once("id=\"data\">").context("a page without data")?;
    let (data, _) = rest.split_once("</script>").context("a page without an end of its data")?;
    serde_json::from_str(data).context("a page whose data is no JSON")
}

/// Lists of the JSON whose entries are blocks: the name of the list, and that of an entry.
const LISTS: [(&str, &str); 6] = [
    ("findings", "finding"),
    ("also", "remark"),
    ("rounds", "round"),
    ("waits", "wait"),
    ("counted", "counted"),
    ("requests", "requests"),
];
/// Fields of the JSON that say nothing about the recording: they change with each version.
const LEFT_OUT: [&str; 1] = ["systoll"];
/// Largest length of a value of the report itself that is kept whole, bytes.
const WHOLE: usize = 300;

/// Returns the blocks of a report's JSON.
fn blocks(json: &Value) -> Vec<Block> {
    let mut report = Block { sort: "report".into(), fields: Vec::new() };
    let mut parts = Vec::new();
    for (name, value) in json.as_object().into_iter().flatten() {
        if LEFT_OUT.contains(&name.as_str()) || is_nothing(value) {
            continue;
        }
        match LISTS.iter().find(|(list, _)| list == name) {
            Some((_, sort)) => {
                parts.extend(entries(value).map(|entry| Block { sort: (*sort).into(), fields: fields(entry) }))
            }
            None => report.fields.push((name.clone(), brief(value))),
        }
    }
    let mut blocks = vec![report];
    blocks.extend(parts);
    blocks
}

/// Returns the entries of a list of the report's JSON.
pub(crate) fn list<'a>(json: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    json[name].as_array().into_iter().flatten()
}

/// Returns a finding's cause, or else its kind.
pub(crate) fn name(finding: &Value) -> &str {
    finding["cause"].as_str().or(finding["kind"].as_str()).unwrap_or("?")
}

/// Returns the entries of a list; a value that is no list is one entry.
fn entries(value: &Value) -> impl Iterator<Item = &Value> {
    match value {
        Value::Array(list) => list.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}

fn fields(object: &Value) -> Vec<(String, String)> {
    let all = object.as_object().into_iter().flatten();
    all.filter(|(_, value)| !is_nothing(value))
        .map(|(name, value)| (name.clone(), canonical(value).to_string()))
        .collect()
}

/// Returns a block with the digest of each field of an object.
fn digests(sort: &str, object: &Value) -> Block {
    let all = object.as_object().into_iter().flatten();
    let told = all.filter(|(name, value)| !LEFT_OUT.contains(&name.as_str()) && !is_nothing(value));
    Block { sort: sort.into(), fields: told.map(|(name, value)| (name.clone(), digest(value))).collect() }
}

/// Returns a value as JSON, or its digest if that is long.
fn brief(value: &Value) -> String {
    let whole = canonical(value).to_string();
    if whole.len() <= WHOLE { whole } else { digest(value) }
}

fn digest(value: &Value) -> String {
    let hash = blake3::hash(canonical(value).to_string().as_bytes()).to_hex();
    let entries = match value {
        Value::Array(list) => format!(" of {}", list.len()),
        _ => String::new(),
    };
    format!("#{}{entries}", &hash[..16])
}

/// Returns true for a value that says nothing: null, false, and what is empty.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        _ => false,
    }
}

/// Returns a value without what says nothing, and with nine digits of each fraction: the last ones differ between
/// libraries of mathematics.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let digits = number.as_f64().map(|n| format!("{n:.8e}")).and_then(|text| text.parse().ok());
            digits.and_then(Number::from_f64).map_or(Value::Null, Value::Number)
        }
        Value::Array(list) => list.iter().map(canonical).collect(),
        Value::Object(fields) => {
            let told = fields.iter().filter(|(_, value)| !is_nothing(value));
            Value::Object(told.map(|(name, value)| (name.clone(), canonical(value))).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_that_say_nothing_are_left_out_and_long_ones_are_digests() {
        let report = json!({
            "systoll": {"version": "1"}, "calls": 3, "exact": false, "lines": [], "share": 0.123_456_789_012,
            "rows": (0..200).collect::<Vec<_>>(), "findings": [{"cause": "x", "doubt": null, "needless": {"low": 1, "high": null}}],
        });
        let text = Document { screens: Vec::new(), blocks: blocks(&report) }.text();
        let rows = digest(&report["rows"]);
        assert_eq!(
            text,
            format!(
                "== report\ncalls 3\nshare 0.123456789\nrows {rows}\n== finding\ncause \"x\"\nneedless {{\"low\":1}}\n"
            )
        );
        assert!(rows.ends_with(" of 200") && rows != digest(&json!([1])));
    }
}
