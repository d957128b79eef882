//! The subject of a finding: the object of its calls, and their option.

use crate::evidence::survey::RowView;
use crate::groups::group::common_object;
use crate::results::finding::ObjectShare;
use crate::semantics::{WAKE_COUNTERS, connection};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use systoll_model::{Recording, RowId, Sysno, WindowCall};

/// Largest number of calls that are searched, evenly spread over all: a thousand show what nine in ten share as well
/// as a million.
const ASKED: usize = 1024;
/// Share of the calls that must agree, as numerator and denominator.
const AGREE: (usize, usize) = (9, 10);
/// Largest number of different options shown, for calls that belong together: two that undo each other.
const OPTIONS: usize = 2;
/// Largest number of objects named if there are several.
const NAMED: usize = 3;
/// Calls that open a file by its path. Calls on the descriptor may come when it has another number, or another file has
/// its number: a shell puts each redirection in place of its output.
const OPEN: [&str; 4] = ["open", "openat", "openat2", "creat"];
/// The kernel's name for every epoll set. It names no object: the descriptor that is waited for is another argument.
const EPOLL: &str = "anon_inode:[eventpoll]";
/// If at least one in this number of the calls opens a file, only the opened files are named.
const ONE_IN: usize = 10;

/// Returns the option and object on which nine in ten of a finding's calls agree: `/etc/localtime`, `SOL_TCP,
/// TCP_NODELAY on TCP sockets`, `F_GETFL on /tmp/x`.
pub(crate) fn subject(rows: &[RowId], recording: &Recording, views: &[RowView<'_>]) -> Option<String> {
    let calls = asked_calls(rows, recording, views);
    let options = common(calls.iter().map(|(syscall, call)| call.option(*syscall)), OPTIONS);
    let objects = LazyCell::new(|| objects_of(&calls));
    // The object of the claims comes first: a search has many paths and one name.
    let views: Vec<&RowView<'_>> = rows.iter().filter_map(|id| views.get(id.0 as usize)).collect();
    let claimed = common_object(&views).map(|object| vec![object.to_string()]);
    let object = claimed
        .or_else(|| common(objects.iter().map(|o| o.as_deref().map(lasting)), 1))
        .or_else(|| common_peer(&objects).map(|peer| vec![format!("connections to {peer}")]))
        .or_else(|| common(objects.iter().map(|o| o.as_deref().and_then(kind).map(str::to_owned)), 1));
    match (options.map(|o| o.join(" / ")), object.and_then(|mut o| o.pop())) {
        (Some(option), Some(object)) => Some(format!("{option} on {object}")),
        (option, object) => option.or(object),
    }
}

/// The objects of calls that are about several.
#[derive(Default)]
pub(crate) struct Objects {
    /// The most frequent objects.
    pub most: Vec<ObjectShare>,
    /// Number of different objects in the calls searched.
    pub seen: usize,
}

/// Returns the named objects of a finding that is about more than one.
pub(crate) fn objects(rows: &[RowId], recording: &Recording, views: &[RowView<'_>]) -> Objects {
    let lead = rows.first().map(|id| recording.row(*id)).filter(|lead| !lead.lines.is_empty());
    let rows: Vec<RowId> = match lead {
        Some(lead) => rows.iter().copied().filter(|id| recording.row(*id).user == lead.user).collect(),
        None => rows.to_vec(),
    };
    let mut calls = asked_calls(&rows, recording, views);
    let mut objects = objects_of(&calls);
    let opens: Vec<bool> = calls.iter().map(|(syscall, _)| syscall.name().is_some_and(|n| OPEN.contains(&n))).collect();
    if opens.iter().filter(|opens| **opens).count() * ONE_IN >= calls.len().max(1) {
        let (mut of_call, mut of_object) = (opens.iter(), opens.iter());
        calls.retain(|_| of_call.next() == Some(&true));
        objects.retain(|_| of_object.next() == Some(&true));
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for object in objects.into_iter().flatten().filter(|object| object != EPOLL) {
        *counts.entry(lasting(&object)).or_default() += 1;
    }
    let seen = counts.len();
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let share = |n: usize| n as f64 / calls.len().max(1) as f64;
    // The calls of a script come from several lines, and the finding names the first of them. An object is one of that
    // line's if the other lines make too few calls to have made all that are about it.
    let others = lead.map_or(0.0, |lead| lead.lines.iter().skip(1).map(|line| lead.share(line)).sum::<f64>());
    let most = counts.into_iter().map(|(name, n)| ObjectShare { name, share: share(n) });
    Objects { most: of_lead(most, others), seen }
}

/// Returns the first few objects that more calls are about than the lines beside the first make, a share of `others`.
fn of_lead(objects: impl Iterator<Item = ObjectShare>, others: f64) -> Vec<ObjectShare> {
    objects.filter(|object| object.share > others).take(NAMED).collect()
}

/// Returns the object of each call.
fn objects_of(calls: &[(Sysno, &WindowCall)]) -> Vec<Option<String>> {
    let mut objects: Vec<_> = calls.iter().map(|(syscall, call)| call.object(*syscall)).collect();
    make_absolute(&mut objects);
    objects
}

/// Replaces a relative path by the absolute path that ends with it, if there is only one: a program opens a file by
/// its own path for it, and the descriptor has the kernel's.
fn make_absolute(objects: &mut [Option<String>]) {
    let mut ends: BTreeMap<String, Option<String>> = BTreeMap::new();
    let absolute: BTreeSet<&String> = objects.iter().flatten().filter(|name| name.starts_with('/')).collect();
    for name in absolute {
        for (at, _) in name.match_indices('/').skip(1) {
            // `None` if two paths end in this way.
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

/// Returns the calls of the rows whose objects are searched, evenly spread.
fn asked_calls<'a>(rows: &[RowId], recording: &Recording, views: &'a [RowView<'a>]) -> Vec<(Sysno, &'a WindowCall)> {
    let of_rows = || rows.iter().filter_map(|id| Some((recording.rows.get(id.0 as usize)?, views.get(id.0 as usize)?)));
    // A row that only waited has no claimed calls: any call of it serves.
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

/// Returns at most [`ASKED`] indices below `all`, in order: one at random in each of equal stretches, so that they do
/// not fall into step with a loop.
fn spread(all: usize) -> impl Iterator<Item = usize> {
    let stretch = all.div_ceil(ASKED).max(1);
    let drawn = |n: usize| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (0..all.div_ceil(stretch)).map(move |n| n * stretch + drawn(n) % stretch.min(all - n * stretch))
}

/// Returns the texts that nine calls in ten have: at most `most` different ones, the most frequent first. Returns
/// `None` if no text is among them, or more would be needed.
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

/// Returns the address to which nine in ten of the connections lead, if nine in ten of the calls are about connections and
/// about sockets that are not connected yet.
fn common_peer(objects: &[Option<String>]) -> Option<String> {
    let named = || objects.iter().flatten().filter(|object| *object != EPOLL);
    let peers = named().filter_map(|object| peer(object));
    let of_sockets = named().filter(|object| peer(object).is_some() || object.starts_with("socket:[")).count();
    let most = of_sockets * AGREE.1 >= named().count() * AGREE.0;
    common(peers.map(|peer| Some(peer.to_owned())), 1).filter(|_| most)?.pop()
}

/// Returns the address of a connection's other end: of `TCP:[FROM->TO]`, and of a call that connects.
fn peer(target: &str) -> Option<&str> {
    let connected = || connection(target).filter(|(kind, ..)| matches!(*kind, "TCP" | "TCPv6")).map(|(.., to)| to);
    connected().or_else(|| target.parse::<SocketAddr>().is_ok().then_some(target))
}

/// Returns a target without the number that the kernel gave it for this run, if it has no other name.
fn lasting(target: &str) -> String {
    if !target.ends_with(']') {
        return target.to_owned();
    }
    if target == WAKE_COUNTERS {
        return "an eventfd".to_owned();
    }
    let Some((name, rest)) = target.split_once(":[") else { return target.to_owned() };
    let number = rest.strip_suffix(']').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    match name {
        _ if !number => target.to_owned(),
        "pipe" | "socket" => format!("a {name}"),
        name => format!("a {name} socket"),
    }
}

/// Returns the plural name of a target's type.
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

    fn common_of(texts: &[&str], most: usize) -> Option<Vec<String>> {
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
        // The relative path may be either.
        assert_eq!(named(&["a", "/srv/a", "/tmp/a"]), ["a", "/srv/a", "/tmp/a"]);
        assert_eq!(named(&["ut/a", "/srv/out/a"])[0], "ut/a");
    }

    #[test]
    fn an_object_named_is_one_of_the_line_shown() {
        let objects = || [("/a", 0.3), ("/b", 0.1)].map(|(name, share)| ObjectShare { name: name.into(), share });
        let named = |others| of_lead(objects().into_iter(), others).into_iter().map(|o| o.name).collect::<Vec<_>>();
        // Where other lines make a fifth of the calls, they may have made all about /b, but not all about /a.
        assert_eq!((named(0.0), named(0.2)), (vec!["/a".into(), "/b".into()], vec!["/a".into()]));
        assert!(named(0.3).is_empty());
    }

    #[test]
    fn nine_in_ten_agree() {
        let mut texts = vec!["a"; 9];
        texts.push("b");
        assert_eq!(common_of(&texts, 1), Some(vec!["a".into()]));
        texts.push("b");
        assert_eq!(common_of(&texts, 1), None);
        assert_eq!(common_of(&texts, 2), Some(vec!["a".into(), "b".into()]));
        texts.extend(["c"; 4]);
        assert_eq!(common_of(&texts, 2), None);
        assert_eq!((common_of(&["", ""], 1), common_of(&["", "a"], 2), common_of(&[], 1)), (None, None, None));
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
    fn connections_to_one_address_are_named_by_it() {
        let of = |names: &[&str]| common_peer(&names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>());
        let [new, epoll] = ["socket:[7]", EPOLL];
        let [one, other] = ["TCP:[10.0.0.1:4001->10.0.0.9:80]", "TCP:[10.0.0.1:4002->10.0.0.9:80]"];
        assert_eq!(of(&[new, one, epoll, other, new]).as_deref(), Some("10.0.0.9:80"));
        // A server's connections lead to as many addresses as it has clients.
        let served = ["TCP:[10.0.0.9:80->10.0.0.1:4001]", "TCP:[10.0.0.9:80->10.0.0.1:4002]"];
        assert_eq!((of(&served), of(&[one, other, "/etc/hosts"]), of(&[new])), (None, None, None));
    }

    #[test]
    fn numbers_of_the_day_are_left_out() {
        let of = ["pipe:[123]", "socket:[4]", "UNIX-STREAM:[5]", "/tmp/x:[5]y", "TCP:[1.2.3.4:5]", WAKE_COUNTERS];
        let named = ["a pipe", "a socket", "a UNIX-STREAM socket", "/tmp/x:[5]y", "TCP:[1.2.3.4:5]", "an eventfd"];
        assert_eq!(of.map(lasting), named);
        assert_eq!(kind("TCP:[1.2.3.4:5->1.2.3.4:6]"), Some("TCP sockets"));
        assert_eq!(kind("/etc/passwd"), None);
    }
}
