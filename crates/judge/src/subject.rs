//! What a finding is about: the file behind its calls, and what they ask of it.

use crate::finding::ObjectShare;
use crate::group::common_object;
use crate::survey::RowView;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{Recording, RowId, Sysno, WindowCall};

/// Calls that are asked about, evenly spread over all: some thousand tell of nine in ten as well as
/// a million do.
const ASKED: usize = 1024;
/// Of ten calls, so many must agree.
const AGREE: (usize, usize) = (9, 10);
/// Options told where calls that belong together differ in theirs: two that undo each other.
const OPTIONS: usize = 2;
/// Objects named where there are several.
const NAMED: usize = 3;

/// The object and option of a finding's calls, as far as nine in ten agree: `/etc/localtime`,
/// `SOL_TCP, TCP_NODELAY on TCP sockets`, `F_GETFL on /tmp/x`.
pub(crate) fn subject(rows: &[RowId], recording: &Recording, views: &[RowView<'_>]) -> Option<String> {
    let calls = asked_calls(rows, recording, views);
    let options = common(calls.iter().map(|(syscall, call)| call.option(*syscall)), OPTIONS);
    let objects = LazyCell::new(|| objects_of(&calls));
    // What its claims say it is about comes first: a search has many paths and one name.
    let views: Vec<&RowView<'_>> = rows.iter().filter_map(|id| views.get(id.0 as usize)).collect();
    let claimed = common_object(&views).map(|object| vec![object.to_string()]);
    let object = claimed
        .or_else(|| common(objects.iter().map(|o| o.as_deref().map(lasting)), 1))
        .or_else(|| common(objects.iter().map(|o| o.as_deref().and_then(kind).map(str::to_owned)), 1));
    match (options.map(|o| o.join(" / ")), object.and_then(|mut o| o.pop())) {
        (Some(option), Some(object)) => Some(format!("{option} on {object}")),
        (option, object) => option.or(object),
    }
}

/// Several objects that calls are about.
#[derive(Default)]
pub(crate) struct Objects {
    /// The most frequent.
    pub most: Vec<ObjectShare>,
    /// How many different ones were seen.
    pub seen: usize,
}

/// The objects of a finding that is about more than one: files and what else has a name.
pub(crate) fn objects(rows: &[RowId], recording: &Recording, views: &[RowView<'_>]) -> Objects {
    let calls = asked_calls(rows, recording, views);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for object in objects_of(&calls).into_iter().flatten() {
        *counts.entry(lasting(&object)).or_default() += 1;
    }
    let seen = counts.len();
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let share = |n: usize| n as f64 / calls.len().max(1) as f64;
    let most = counts.into_iter().take(NAMED).map(|(name, n)| ObjectShare { name, share: share(n) });
    Objects { most: most.collect(), seen }
}

/// Returns what each call is about.
fn objects_of(calls: &[(Sysno, &WindowCall)]) -> Vec<Option<String>> {
    let mut objects: Vec<_> = calls.iter().map(|(syscall, call)| call.object(*syscall)).collect();
    make_absolute(&mut objects);
    objects
}

/// Gives a relative path the absolute one that it ends, if there is just one: a file is opened by the path that the program
/// has for it, and its descriptor has the kernel's.
fn make_absolute(objects: &mut [Option<String>]) {
    let mut ends: BTreeMap<String, Option<String>> = BTreeMap::new();
    let absolute: BTreeSet<&String> = objects.iter().flatten().filter(|name| name.starts_with('/')).collect();
    for name in absolute {
        for (at, _) in name.match_indices('/').skip(1) {
            // None where two of them end so.
            let another = ends.contains_key(&name[at + 1..]);
            ends.insert(name[at + 1..].to_owned(), (!another).then(|| name.clone()));
        }
    }
    for object in objects.iter_mut().flatten().filter(|name| !name.starts_with('/')) {
        let relative = object.strip_prefix("./").unwrap_or(object);
        if let Some(Some(absolute)) = ends.get(relative) {
            *object = absolute.clone();
        }
    }
}

/// Calls of the rows that are asked what they are about, evenly drawn.
fn asked_calls<'a>(rows: &[RowId], recording: &Recording, views: &'a [RowView<'a>]) -> Vec<(Sysno, &'a WindowCall)> {
    let of_rows = || rows.iter().filter_map(|id| Some((recording.rows.get(id.0 as usize)?, views.get(id.0 as usize)?)));
    // What only waited was claimed by its row: any call of it will do.
    let asked =
        |view: &RowView<'_>| if view.claimed.is_empty() { view.sample.iter().len() } else { view.claimed.len() };
    let mut before = 0;
    let mut calls: Vec<(Sysno, &WindowCall)> = Vec::new();
    let mut drawn = spread(of_rows().map(|(_, view)| asked(view)).sum()).peekable();
    for (row, view) in of_rows() {
        while let Some(at) = drawn.next_if(|at| *at < before + asked(view)) {
            calls.extend(view.claimed.get(at - before).map(|c| c.call).or(view.sample).map(|call| (row.syscall, call)));
        }
        before += asked(view);
    }
    calls
}

/// At most [`ASKED`] places of `all`, in order, one of each stretch, in no step with what goes round and round.
fn spread(all: usize) -> impl Iterator<Item = usize> {
    let stretch = all.div_ceil(ASKED).max(1);
    let drawn = |n: usize| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (0..all.div_ceil(stretch)).map(move |n| n * stretch + drawn(n) % stretch.min(all - n * stretch))
}

/// What nine calls in ten have: at most `most` different texts, commonest first. `None` where
/// one of these is that they have none.
fn common(texts: impl Iterator<Item = Option<String>>, most: usize) -> Option<Vec<String>> {
    let mut counts: BTreeMap<Option<String>, usize> = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_default() += 1);
    let all: usize = counts.values().sum();
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let mut said = Vec::new();
    let mut covered = 0;
    for (text, n) in counts.into_iter().take(most) {
        said.push(text?);
        covered += n;
        if covered * AGREE.1 >= all * AGREE.0 {
            return Some(said);
        }
    }
    None
}

/// A target without the number the kernel gave it this time, where it has no name but that.
fn lasting(target: &str) -> String {
    if !target.ends_with(']') {
        return target.to_owned();
    }
    let Some((name, rest)) = target.split_once(":[") else { return target.to_owned() };
    let number = rest.strip_suffix(']').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    match name {
        _ if !number => target.to_owned(),
        "pipe" | "socket" => format!("a {name}"),
        name => format!("a {name} socket"),
    }
}

/// What many targets are together.
fn kind(target: &str) -> Option<&'static str> {
    const KINDS: [(&str, &str); 8] = [
        ("pipe:", "pipes"),
        ("socket:", "sockets"),
        ("TCP:", "TCP sockets"),
        ("TCPv6:", "TCPv6 sockets"),
        ("UDP:", "UDP sockets"),
        ("UDPv6:", "UDPv6 sockets"),
        ("UNIX", "UNIX sockets"),
        ("NETLINK:", "NETLINK sockets"),
    ];
    KINDS.iter().find(|(prefix, _)| target.starts_with(prefix)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str], most: usize) -> Option<Vec<String>> {
        common(texts.iter().map(|t| (!t.is_empty()).then(|| (*t).to_owned())), most)
    }

    #[test]
    fn a_file_has_one_name_by_its_path_and_by_its_descriptor() {
        let named = |names: &[&str]| {
            let mut objects: Vec<_> = names.iter().map(|name| Some((*name).to_owned())).collect();
            make_absolute(&mut objects);
            objects.into_iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(named(&["out/a", "./out/a", "/srv/out/a"]), ["/srv/out/a"; 3]);
        assert_eq!(named(&["a", "b", "/srv/out/a"]), ["/srv/out/a", "b", "/srv/out/a"]);
        // Either may be meant.
        assert_eq!(named(&["a", "/srv/a", "/tmp/a"]), ["a", "/srv/a", "/tmp/a"]);
        assert_eq!(named(&["ut/a", "/srv/out/a"])[0], "ut/a");
    }

    #[test]
    fn nine_in_ten_agree() {
        let mut texts = vec!["a"; 9];
        texts.push("b");
        assert_eq!(of(&texts, 1), Some(vec!["a".into()]));
        texts.push("b");
        assert_eq!(of(&texts, 1), None);
        assert_eq!(of(&texts, 2), Some(vec!["a".into(), "b".into()]));
        texts.extend(["c"; 4]);
        assert_eq!(of(&texts, 2), None);
        assert_eq!((of(&["", ""], 1), of(&["", "a"], 2), of(&[], 1)), (None, None, None));
    }

    #[test]
    fn of_many_some_of_each_sort_are_asked() {
        for period in [2usize, 3, 4, 5, 8] {
            let spread: Vec<usize> = spread(100_000).map(|n| n % period).collect();
            assert!((ASKED / 2..=ASKED).contains(&spread.len()), "{}", spread.len());
            for sort in 0..period {
                let n = spread.iter().filter(|s| **s == sort).count();
                assert!((spread.len() / period).abs_diff(n) < spread.len() / 20, "{n} of {period}");
            }
        }
        assert_eq!(spread(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(spread(100_001).is_sorted() && spread(100_001).all(|at| at < 100_001) && spread(0).next().is_none());
    }

    #[test]
    fn numbers_of_the_day_are_left_out() {
        let lasting = ["pipe:[123]", "socket:[4]", "UNIX-STREAM:[5]", "/tmp/x:[5]y", "TCP:[1.2.3.4:5]"].map(lasting);
        assert_eq!(lasting, ["a pipe", "a socket", "a UNIX-STREAM socket", "/tmp/x:[5]y", "TCP:[1.2.3.4:5]"]);
        assert_eq!(kind("TCP:[1.2.3.4:5->1.2.3.4:6]"), Some("TCP sockets"));
        assert_eq!(kind("/etc/passwd"), None);
    }
}
