//! The marks of a case.

use super::case::Case;
use crate::render::{list, name};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The marks of a sick case, in order, and that of a healthy one.
pub(super) const MARKS: [&str; 10] =
    ["found", "finding", "cause", "API", "line", "cure", "count", "interval", "time", "twin silent"];
/// Sign of a mark that is not asked of a case.
pub(super) const NOT_ASKED: &str = "no-";

/// The marks of a sick case.
#[derive(Debug)]
pub(super) struct Marks {
    /// The disease is a finding or a remark.
    found: bool,
    /// The disease is a finding.
    finding: bool,
    /// Its cause is named; if the catalogue has none, some finding is.
    cause: bool,
    /// One of the functions is named that make the calls.
    api: bool,
    /// The first line named is of the case's own sources; where the case says which, that line or its neighbour.
    line: bool,
    /// The first cure is for the language of the program, or for any.
    cure: bool,
    /// The calls said to be needless are within a tenth of the needless ones; `None` if their number is not known.
    count: Option<bool>,
    /// The number of needless calls is within the interval; `None` if it is not known.
    interval: Option<bool>,
    /// The time waited in vain is within a quarter of what the cured twin saves; `None` if that is not known.
    time: Option<bool>,
    /// The disease is not found in the cured twin; `None` if that was not recorded.
    clean: Option<bool>,
    /// The causes found, and the numbers of needless calls.
    pub(super) says: String,
}

/// A healthy case.
#[derive(Debug)]
pub(super) struct Healthy {
    /// Causes found that are not true of the program.
    pub(super) findings: Vec<String>,
}

/// What is known of a sick program and its cured twin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Truth {
    /// Number of calls that the twin does without.
    pub(super) needless: Option<u64>,
    /// Time that the twin does without, ns.
    pub(super) longer_ns: Option<u64>,
}

/// Calls at the start and end of a program, by which twins differ.
const FEW: u64 = 3;

impl Marks {
    pub(super) fn of(case: &Case, report: &Value, cured: Option<&Value>, truth: Truth) -> Self {
        let Truth { needless, longer_ns } = truth;
        let own: Vec<&Value> = list(report, "findings").filter(|f| is_disease(f, case)).collect();
        let hits: Vec<&Value> =
            own.iter().copied().chain(list(report, "also").filter(|f| is_disease(f, case))).collect();
        let causes: BTreeSet<&str> = case.words("or_cause").into_iter().chain([case.word("cause")]).collect();
        let sum = |part: &str| own.iter().filter_map(|f| f["needless_calls"][part].as_u64()).sum::<u64>();
        let (low, claimed, high) = (sum("low"), sum("estimate"), sum("high"));
        let within = |truth: u64| claimed.abs_diff(truth) <= FEW.max(truth / 10);
        let holds = |truth: u64| low <= truth + FEW.max(truth / 100) && truth <= high + FEW.max(truth / 100);
        let counted = needless.filter(|_| !own.is_empty());
        let asked = needless.is_some();
        let wall_ns = report["wall_ns"].as_u64().unwrap_or_default() as f64;
        let in_vain_ns = own.iter().filter_map(|f| f["share_of_wall"].as_f64()).sum::<f64>() * wall_ns;
        let saves = |truth: u64| (in_vain_ns - truth as f64).abs() <= truth as f64 / 4.0;
        let all: Vec<&str> = list(report, "findings").chain(list(report, "also")).map(name).collect();
        Self {
            found: !hits.is_empty(),
            finding: !own.is_empty(),
            cause: !hits.is_empty() && (case.is("generic") || hits.iter().any(|f| causes.contains(name(f)))),
            api: hits.iter().any(|f| names_api(f, case)),
            line: hits.iter().any(|f| names_line(f, case)),
            cure: own.iter().chain(&hits).take(1).all(|f| has_cure(f, case)) && !hits.is_empty(),
            count: asked.then(|| counted.is_some_and(within)),
            interval: asked.then(|| counted.is_some_and(holds)),
            time: longer_ns.map(saves),
            clean: cured
                .map(|report| !list(report, "findings").chain(list(report, "also")).any(|f| is_disease(f, case))),
            says: format!(
                "{} claims {claimed} ({low} to {high}) of {}",
                all.join(","),
                needless.map_or("?".into(), |n| n.to_string())
            ),
        }
    }

    /// Returns the marks that are asked of the case, each with true if the case has it.
    pub(super) fn all(&self) -> Vec<(&'static str, bool)> {
        let marks = [
            Some(self.found),
            Some(self.finding),
            Some(self.cause),
            Some(self.api),
            Some(self.line),
            Some(self.cure),
            self.count,
            self.interval,
            self.time,
            self.clean,
        ];
        MARKS.into_iter().zip(marks).filter_map(|(name, has)| Some((name, has?))).collect()
    }
}

impl Healthy {
    pub(super) fn of(case: &Case, report: &Value) -> Self {
        let beside = case.words("beside");
        let soft = |f: &&Value| case.is("soft") && f["confidence"] == "low";
        let wrong = list(report, "findings").filter(|f| !soft(f) && !beside.contains(name(f)));
        Self { findings: wrong.map(|f| name(f).to_owned()).collect() }
    }
}

fn strings<'a>(finding: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    list(finding, key).filter_map(Value::as_str)
}

/// Returns true if a finding is about the disease's calls, and its cause is none that is true beside the disease.
fn is_disease(finding: &Value, case: &Case) -> bool {
    let (calls, apis) = (case.words("syscalls"), apis(case));
    let about =
        strings(finding, "syscalls").any(|s| calls.contains(s)) || strings(finding, "apis").any(|a| apis.contains(a));
    let cause = name(finding);
    about && (cause == case.word("cause") || !case.words("beside").contains(cause))
}

fn apis(case: &Case) -> BTreeSet<&str> {
    case.words("api").into_iter().chain(case.words("lang_api")).collect()
}

/// Returns true if a finding names one of the case's functions, with or without its module.
fn names_api(finding: &Value, case: &Case) -> bool {
    let wanted = apis(case);
    let last = |name: &str| name.rsplit_once('.').map_or(name.to_owned(), |(_, last)| last.to_owned());
    let plain =
        |name: &str| last(&name.replace("::<impl>", "")).split('(').next().unwrap_or_default().trim().to_owned();
    let wanted_plain: BTreeSet<String> = wanted.iter().map(|name| plain(name)).collect();
    wanted.is_empty()
        || strings(finding, "apis")
            .chain(finding["language_api"].as_str())
            .any(|n| wanted.contains(n) || wanted_plain.contains(&plain(n)))
}

/// Returns true if the first line that a finding names is of the case's own sources: if the case says which, that line or
/// a neighbour.
fn names_line(finding: &Value, case: &Case) -> bool {
    let fragments = case.words("at");
    let mut places = [&finding["user"]].into_iter().chain(list(finding, "lines"));
    places.find_map(|place| Some((place["file"].as_str()?, place["line"].as_u64()?))).is_some_and(|(file, line)| {
        let Some(source) = case.source(file).or_else(|| relative(file, case)) else { return false };
        let near = |at: usize| (line.saturating_sub(1)..=line + 1).contains(&(at as u64 + 1));
        fragments.is_empty()
            || source.lines().enumerate().any(|(at, text)| near(at) && fragments.iter().any(|f| text.contains(f)))
    })
}

/// Returns the text of a source that a recording names without its folder.
fn relative(file: &str, case: &Case) -> Option<String> {
    Path::new(file).is_relative().then(|| case.source(&format!("/{}/{file}", case.name))).flatten()
}

/// Names of the cases' languages, and systoll's names of them.
const LANGUAGES: [(&str, &[&str]); 16] = [
    ("C", &["c"]),
    ("C++", &["c++", "c"]),
    ("Rust", &["rust"]),
    ("Go", &["go"]),
    ("Python", &["python"]),
    ("Node", &["javascript"]),
    ("Java", &["java"]),
    ("Perl", &["perl"]),
    ("Ruby", &["ruby"]),
    ("PHP", &["php"]),
    ("Lua", &["lua"]),
    ("awk", &["awk"]),
    ("sh", &["shell"]),
    ("bash", &["bash", "shell"]),
    ("shell", &["shell", "bash"]),
    ("make", &["make", "shell"]),
];

/// Returns true if a finding has a cure, and the first is for the program's language or for any.
fn has_cure(finding: &Value, case: &Case) -> bool {
    let Some(first) = list(finding, "cures").next() else { return false };
    let known = LANGUAGES.iter().find(|(name, _)| *name == case.language);
    match (first["language"].as_str(), known) {
        (Some(language), Some((_, may))) => may.contains(&language),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a case in a folder of its own, with a source of three lines.
    fn case(dir: &Path) -> Case {
        let folder = dir.join("c-one");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("main.c"), "int x;\nopen(name);\n\n\n\nint y;\n").unwrap();
        let text = "name = 'c-one'\nset = 'own'\nlang = 'C'\ncause = 'a'\napi = ['open']\nsyscalls = ['openat']\nat = ['open(']\nbeside = ['b']\n";
        std::fs::write(folder.join("case.toml"), text).unwrap();
        Case::all(dir).unwrap().remove(0)
    }

    fn found(cause: &str, line: u64, low: u64) -> Value {
        json!({
            "cause": cause, "syscalls": ["openat"], "apis": ["open"], "cures": [{"language": "c"}],
            "user": {"file": "/else/c-one/main.c", "line": line}, "lines": [],
            "needless_calls": {"low": low, "estimate": 100, "high": 110},
        })
    }

    fn missing(report: &Value, cured: Option<&Value>, needless: Option<u64>) -> String {
        let dir = tempfile::tempdir().unwrap();
        missed(&Marks::of(&case(dir.path()), report, cured, Truth { needless, longer_ns: None }))
    }

    fn missed(marks: &Marks) -> String {
        marks.all().into_iter().filter(|(_, has)| !has).map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn time_waited_in_vain_is_held_against_what_the_twin_saves() {
        let dir = tempfile::tempdir().unwrap();
        let mut waits = found("a", 2, 90);
        waits["share_of_wall"] = json!(0.8);
        let report = json!({"findings": [waits], "also": [], "wall_ns": 1000});
        let of = |longer_ns| Marks::of(&case(dir.path()), &report, None, Truth { needless: None, longer_ns });
        assert_eq!([Some(900), Some(650), None].map(|longer_ns| missed(&of(longer_ns))), ["", "", ""]);
        assert_eq!([Some(600), Some(1100)].map(|longer_ns| missed(&of(longer_ns))), ["time", "time"]);
    }

    #[test]
    fn each_mark_can_be_missed() {
        let report = |finding: Value| json!({"findings": [finding], "also": []});
        let nothing = json!({"findings": [], "also": []});
        assert_eq!(missing(&report(found("a", 2, 90)), Some(&nothing), Some(95)), "");
        assert_eq!(missing(&report(found("a", 5, 90)), Some(&nothing), Some(95)), "line");
        let mut lines = found("a", 2, 90);
        lines["lines"] = json!([lines["user"]]);
        lines["user"]["line"] = json!(6);
        assert_eq!(missing(&report(lines), Some(&nothing), Some(95)), "line", "the first one is another");
        assert_eq!(missing(&report(found("a", 2, 99)), Some(&nothing), Some(93)), "interval");
        assert_eq!(missing(&report(found("a", 2, 0)), Some(&nothing), Some(70)), "count");
        assert_eq!(missing(&report(found("c", 2, 0)), Some(&nothing), None), "cause");
        assert_eq!(missing(&report(found("b", 2, 0)), None, None), "found finding cause API line cure");
        let remark = json!({"findings": [], "also": [found("a", 2, 0)]});
        assert_eq!(missing(&remark, Some(&remark), None), "finding twin silent");
        let mut other = found("a", 2, 90);
        (other["apis"], other["cures"]) = (json!(["fopen"]), json!([{"language": "go"}]));
        assert_eq!(missing(&report(other), None, None), "API cure");
    }
}
