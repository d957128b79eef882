//! Reads the cases: what each program's disease is, and how many of its calls are needless.

use crate::render::list;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml::Table;

/// A program with a known disease, or a healthy one.
#[derive(Clone, Debug, Default)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) set: String,
    pub(super) language: String,
    folder: PathBuf,
    table: Table,
}

impl Case {
    /// Returns the cases in a folder, by set and name.
    pub(super) fn all(folder: &Path) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))? {
            let folder = entry?.path();
            let path = folder.join("case.toml");
            let text = std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
            let table: Table = text.parse().with_context(|| format!("{} is no TOML", path.display()))?;
            let word = |key: &str| table.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
            all.push(Self { name: word("name"), set: word("set"), language: word("lang"), folder, table });
        }
        all.sort_by(|a, b| (&a.set, &a.name).cmp(&(&b.set, &b.name)));
        Ok(all)
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.word("kind") == "healthy"
    }

    /// Returns the name of the recording of the sick or healthy program.
    pub(super) fn recording(&self) -> String {
        format!("{}.{}.{}", self.set, self.name, if self.is_healthy() { "healthy" } else { "sick" })
    }

    /// Returns the name of the recording of the cured twin.
    pub(super) fn cured_recording(&self) -> String {
        format!("{}.{}.cured", self.set, self.name)
    }

    pub(super) fn word(&self, key: &str) -> &str {
        self.table.get(key).and_then(toml::Value::as_str).unwrap_or_default()
    }

    pub(super) fn is(&self, key: &str) -> bool {
        self.table.get(key).and_then(toml::Value::as_bool).unwrap_or_default()
    }

    pub(super) fn words(&self, key: &str) -> BTreeSet<&str> {
        let list = self.table.get(key).and_then(toml::Value::as_array);
        list.into_iter().flatten().filter_map(toml::Value::as_str).collect()
    }

    /// Returns the case's own source file of a path in a recording, where the case lies in another folder.
    pub(super) fn source(&self, path: &str) -> Option<String> {
        let (_, inside) = path.rsplit_once(&format!("/{}/", self.name))?;
        std::fs::read_to_string(self.folder.join(inside)).ok()
    }

    /// Returns true if the disease is waiting: the cured twin may make as many calls, and takes less time.
    pub(super) fn is_about_waiting(&self) -> bool {
        self.is("waits")
    }

    /// Returns how long the sick program takes that its cured twin does not, ns, by both recordings.
    pub(super) fn longer_ns(&self, sick: &Value, cured: Option<&Value>) -> Option<u64> {
        let [sick, cured] = [sick, cured.filter(|_| self.is_about_waiting())?].map(|report| report["wall_ns"].as_u64());
        Some(sick?.saturating_sub(cured?))
    }

    /// Returns how many focus calls the sick program makes that its cured twin does without: by the counts of both
    /// recordings, which are exact; without the twin's recording, by strace's counts on the box where the case was made,
    /// unless they depend on time. Of waiting, their number says nothing.
    pub(super) fn needless(&self, sick: &Value, cured: Option<&Value>) -> Option<u64> {
        let fewer = |sick: Counts, cured: &Counts| -> u64 {
            let focus = self.words("syscalls");
            let of_focus = sick.into_iter().filter(|(call, _)| focus.contains(call.as_str()));
            of_focus.map(|(call, n)| n.saturating_sub(cured.get(&call).copied().unwrap_or_default())).sum()
        };
        match cured {
            _ if self.is_about_waiting() => None,
            Some(cured) => Some(fewer(recorded(sick), &recorded(cured))),
            None if self.word("basis") == "loose" => None,
            None => {
                let text = std::fs::read_to_string(self.folder.join("oracle.txt")).ok()?;
                Some(fewer(table(&text, "[sick]"), &table(&text, "[cured]")))
            }
        }
    }
}

/// Numbers of calls by system call.
type Counts = BTreeMap<String, u64>;

/// Returns the calls of a report by system call.
fn recorded(report: &Value) -> Counts {
    list(report, "by_syscall")
        .filter_map(|row| Some((row["syscall"].as_str()?.to_owned(), row["calls"].as_u64()?)))
        .collect()
}

/// Returns the calls of strace's table below a heading: lines of calls, errors if there were any, and the name.
fn table(text: &str, heading: &str) -> Counts {
    let lines = text.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let rows = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| {
        let calls = line.split_whitespace().next()?.parse().ok()?;
        Some((line.split_whitespace().next_back()?.to_owned(), calls))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn needless_calls_are_those_that_the_twin_does_without() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("one");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("case.toml"), "name = 'one'\nset = 'own'\nsyscalls = ['read', 'close']\n").unwrap();
        let oracle = "# of one\n\n[sick] ./one\n  calls  errors  syscall\n 500  3 read\n 20 close\n 9 open\n[cured] ./one\n 80 read\n 20 close\n";
        std::fs::write(folder.join("oracle.txt"), oracle).unwrap();
        let case = Case::all(dir.path()).unwrap().remove(0);
        let report =
            |reads: u64| json!({"by_syscall": [{"syscall": "read", "calls": reads}, {"syscall": "open", "calls": 7}]});
        assert_eq!(case.needless(&report(400), None), Some(420));
        assert_eq!(case.needless(&report(400), Some(&report(30))), Some(370));
        assert_eq!(case.needless(&report(30), Some(&report(400))), Some(0));
    }
}
