//! Tests of traces in the forms in which people paste them: their calls are counted, or the tool
//! that wrote them is named.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use systoll_import::Import;

/// The expected result of reading a file.
#[derive(Deserialize)]
struct Expected {
    refused: Option<String>,
    #[serde(default)]
    calls: BTreeMap<String, u64>,
    #[serde(default)]
    errors: BTreeMap<String, u64>,
}

/// Numbers of calls and errors by system call.
type Counted = (BTreeMap<String, u64>, BTreeMap<String, u64>);

fn counted(text: &[u8]) -> Result<Counted, String> {
    let mut import = Import::new(1);
    import.read("pasted", text).map_err(|e| e.to_string())?;
    let recording = import.finish().map_err(|e| e.to_string())?;
    let (mut calls, mut errors) = Counted::default();
    for row in recording.rows.iter().filter(|row| row.counts.calls > 0) {
        let name = row.syscall.to_string();
        *calls.entry(name.clone()).or_default() += row.counts.calls;
        let failed: u64 = row.counts.errors.values().sum();
        if failed > 0 {
            *errors.entry(name).or_default() += failed;
        }
    }
    Ok((calls, errors))
}

#[test]
fn each_form_is_counted_or_its_tool_is_named() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pasted");
    let expected = std::fs::read_to_string(folder.join("counts.toml")).unwrap();
    let expected: BTreeMap<String, Expected> = toml::from_str(&expected).unwrap();
    let mut wrong = Vec::new();
    for (name, expected) in &expected {
        let text = std::fs::read(folder.join(format!("{name}.txt"))).unwrap();
        match (counted(&text), &expected.refused) {
            (Err(why), Some(tool)) if why.contains(tool.as_str()) => {}
            (Ok((calls, errors)), None) if calls == expected.calls && errors == expected.errors => {}
            (got, _) => wrong.push(format!("{name}: {got:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
