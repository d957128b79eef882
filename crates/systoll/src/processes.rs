//! Finds the requested processes: by number, name, port, unit or control group.

use crate::cli::SelectArgs;
use crate::failure::Failure;
use crate::nearest::FEW;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// Services that a failure lists, at most: 60 of 12 letters are ten lines.
const MAX_LISTED_SERVICES: usize = 60;
/// Names, for a sentence, the processes that are never selected.
const OWN: &str = "but systoll's own and those that it came of";

/// The kernel's tables of TCP sockets.
const TCP_TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Returns the requested processes.
pub(crate) fn found(args: &SelectArgs) -> Result<Vec<i32>, Failure> {
    if args.whole_box {
        return Ok(Vec::new());
    }
    let mut all: Vec<i32> = args.pids.clone();
    for word in &args.processes {
        let these = named(word);
        if these.is_empty() {
            return Err(Failure::NoProcess(word.clone()));
        }
        all.extend(these);
    }
    for unit in &args.units {
        all.extend(some(of_cgroups(|path| has_unit(path, unit)), &format!("of the unit {unit}"))?);
    }
    for group in &args.cgroup {
        let group = group.strip_prefix("/sys/fs/cgroup").unwrap_or(group).trim_end_matches('/');
        all.extend(some(of_cgroups(|path| is_below(path, group)), &format!("of the control group {group}"))?);
    }
    for container in &args.containers {
        all.extend(some(of_cgroups(|path| is_in_container(path, container)), &format!("of a container {container}"))?);
    }
    if args.tree {
        all = with_descendants(&all);
    }
    without_own_line(&mut all, &numbers(args));
    some(all, OWN)
}

/// Returns the name and the processes of a service, which `name` names as the agent does, or as docker, podman or Kubernetes name
/// its container or pod; for a process id, no name, and the process with its descendants.
pub(crate) fn of_service(name: &str) -> Result<(Option<String>, Vec<i32>), Failure> {
    if name.parse::<i32>().is_ok() {
        let select = SelectArgs { processes: vec![name.to_owned()], tree: true, ..SelectArgs::default() };
        return Ok((None, found(&select)?));
    }
    let mut services = systoll_record::services();
    let mut service = name.strip_suffix(".service").unwrap_or(name).to_owned();
    if !services.contains_key(service.as_str()) {
        let mut named = crate::containers::services_named(&service);
        named.retain(|of| services.contains_key(of.as_str()));
        service = match &named[..] {
            [] => return Err(no_service(&service, services.keys().map(ToString::to_string).collect())),
            [one] => one.clone(),
            _ => return Err(Failure::SeveralServices(service, named)),
        };
    }
    let mut pids = services.remove(service.as_str()).unwrap_or_default();
    without_own_line(&mut pids, &[]);
    let selected = some(pids, &format!("of the service {service}, {OWN}"))?;
    Ok((Some(service), selected))
}

/// Creates the failure that names the services that there are.
fn no_service(name: &str, known: Vec<String>) -> Failure {
    let listed = known.iter().take(MAX_LISTED_SERVICES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = known.len().saturating_sub(MAX_LISTED_SERVICES);
    let help = match (known.len(), more) {
        (0..=FEW, _) => String::new(),
        (_, 0) => format!("services that run: {listed}"),
        _ => format!("services that run: {listed} and {more} more"),
    };
    Failure::Unknown { what: "service", name: name.to_owned(), known, help: help.into() }
}

/// Returns the processes requested by number.
fn numbers(args: &SelectArgs) -> Vec<i32> {
    let words = args.processes.iter().filter_map(|word| word.parse().ok());
    args.pids.iter().copied().chain(words).collect()
}

/// Keeps each process once, and the processes of [`own_line`] only if they are among `numbers`.
fn without_own_line(all: &mut Vec<i32>, numbers: &[i32]) {
    let own = own_line();
    let mut seen = BTreeSet::new();
    all.retain(|pid| seen.insert(*pid) && (!own.contains(pid) || numbers.contains(pid)));
}

fn some(pids: Vec<i32>, word: &str) -> Result<Vec<i32>, Failure> {
    if pids.is_empty() { Err(Failure::NoProcess(word.to_owned())) } else { Ok(pids) }
}

/// Returns the processes that a word names.
fn named(word: &str) -> Vec<i32> {
    if let Ok(pid) = word.parse() {
        return vec![pid];
    }
    if let Some(port) = word.strip_prefix(':').and_then(|port| port.parse().ok()) {
        return with_workers(&listening(port));
    }
    let own = own_line();
    running().into_iter().filter(|pid| !own.contains(pid) && has_name(*pid, word)).collect()
}

/// Returns a process's name; empty if it has ended.
pub(crate) fn name(pid: i32) -> String {
    text(pid, "comm").trim_end().to_owned()
}

/// Returns a process's working folder, if it can be read.
pub(crate) fn folder(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Returns the words of a process's command; none if they can't be read, or if the process has replaced them by a
/// title.
pub(crate) fn command(pid: i32) -> Vec<String> {
    let text = text(pid, "cmdline");
    let words: Vec<&str> = text.trim_end_matches('\0').split('\0').filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [title] if title.contains(' ') => Vec::new(),
        words => words.iter().map(|word| (*word).to_owned()).collect(),
    }
}

/// Returns the ids of all processes.
fn running() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn text(pid: i32, file: &str) -> String {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns true if a process has this name: its own, or its program's file name.
fn has_name(pid: i32, name: &str) -> bool {
    let file = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let of_file = file.as_deref().and_then(|file| file.file_name()).is_some_and(|file| file == name);
    of_file || text(pid, "comm").trim_end() == name
}

/// Returns the parent of a process.
fn parent(pid: i32) -> Option<i32> {
    let stat = text(pid, "stat");
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns this process and its ancestors, which a name never selects.
fn own_line() -> BTreeSet<i32> {
    let mut line = BTreeSet::new();
    let mut next = Some(std::process::id() as i32);
    while let Some(pid) = next.filter(|pid| *pid > 0 && line.insert(*pid)) {
        next = parent(pid);
    }
    line
}

pub(crate) fn with_descendants(pids: &[i32]) -> Vec<i32> {
    descended(pids, |_, _| true)
}

/// Returns processes with their descendants of the same program: a server's workers, as PostgreSQL's, which have closed the
/// listening socket. What else a service starts is no part of it, as the shells below sshd.
fn with_workers(pids: &[i32]) -> Vec<i32> {
    let program = |pid: i32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    descended(pids, |of, child| program(child).is_some_and(|exe| Some(exe) == program(of)))
}

/// Returns processes with those descendants for which `is_wanted` returns true, given the parent and the child.
fn descended(pids: &[i32], is_wanted: impl Fn(i32, i32) -> bool) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = running().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut all = pids.to_vec();
    let mut at = 0;
    while let Some(pid) = all.get(at).copied() {
        at += 1;
        let children = parents.iter().filter(|(_, of)| *of == pid).map(|(child, _)| *child);
        let new: Vec<i32> = children.filter(|child| !all.contains(child) && is_wanted(pid, *child)).collect();
        all.extend(new);
    }
    all
}

/// Writes how many descendants of the processes run and are not among them; `None` if there are none.
pub(crate) fn left_out(pids: &[i32]) -> Option<String> {
    let mut all = with_descendants(pids);
    let own = own_line();
    all.retain(|pid| !pids.contains(pid) && !own.contains(pid));
    let whose = if pids.len() == 1 { "the process has" } else { "the processes have" };
    match all.len() {
        0 => None,
        1 => Some(format!("{whose} 1 descendant that you did not ask for: --tree watches it too")),
        n => Some(format!("{whose} {n} descendants that you did not ask for: --tree watches them too")),
    }
}

/// Returns the processes that listen on a TCP port.
fn listening(port: u16) -> Vec<i32> {
    let tables = TCP_TABLES.map(|path| fs::read_to_string(path).unwrap_or_default());
    let inodes: BTreeSet<String> =
        tables.iter().flat_map(|table| table.lines().filter_map(|l| inode(l, port))).collect();
    let has = |pid: &i32| {
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
        let mut targets = fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        targets.any(|target| {
            let target = target.to_string_lossy();
            target
                .strip_prefix("socket:[")
                .and_then(|t| t.strip_suffix(']'))
                .is_some_and(|inode| inodes.contains(inode))
        })
    };
    if inodes.is_empty() { Vec::new() } else { running().into_iter().filter(has).collect() }
}

/// Returns true if a socket listens on a TCP port. Reads no further than to the last socket that listens: the kernel lists
/// these first.
pub(crate) fn is_listened_on(port: u16) -> bool {
    TCP_TABLES.iter().any(|table| {
        let Ok(table) = fs::File::open(table) else { return false };
        let lines = BufReader::new(table).lines().skip(1).map_while(Result::ok);
        lines.map_while(|line| listener(&line).map(|(local, _)| local)).any(|local| local == port)
    })
}

/// Returns the inode of a socket that listens on a port, from its line of /proc/net/tcp.
fn inode(line: &str, port: u16) -> Option<String> {
    listener(line).filter(|(local, _)| *local == port).map(|(_, inode)| inode.to_owned())
}

/// Returns the port and the inode of a socket that listens, from its line of /proc/net/tcp; `None` for other sockets.
fn listener(line: &str) -> Option<(u16, &str)> {
    const LISTENS: &str = "0A";
    let mut fields = line.split_ascii_whitespace();
    let local = u16::from_str_radix(fields.nth(1)?.rsplit_once(':')?.1, 16).ok()?;
    let state = fields.nth(1)?;
    fields.nth(5).filter(|_| state == LISTENS).map(|inode| (local, inode))
}

/// Returns the processes whose control group's path satisfies `is_meant`.
fn of_cgroups(is_meant: impl Fn(&str) -> bool) -> Vec<i32> {
    let is_in = |pid: &i32| text(*pid, "cgroup").lines().filter_map(|l| l.splitn(3, ':').nth(2)).any(&is_meant);
    running().into_iter().filter(is_in).collect()
}

fn has_unit(path: &str, unit: &str) -> bool {
    let whole = format!("{unit}.service");
    path.split('/').any(|part| part == unit || part == whole)
}

/// Least number of an id's digits that name a container, as its tools show it.
const SHORT_ID: usize = 12;

/// Returns true if a control group is a container's with this name or id, or lies below it: `docker-ID.scope` or `docker/ID`,
/// `libpod-ID.scope`, `cri-containerd-ID.scope`, `crio-ID.scope`, and `NAME`, `lxc.payload.NAME` or `machine-NAME.scope`.
fn is_in_container(path: &str, container: &str) -> bool {
    let is_id = |word: &str| word.len() >= SHORT_ID && word.bytes().all(|b| b.is_ascii_hexdigit());
    path.split('/').filter(|part| !part.is_empty()).any(|part| {
        let part = part.strip_suffix(".scope").or_else(|| part.strip_suffix(".service")).unwrap_or(part);
        let name = part.strip_prefix("lxc.payload.").or_else(|| part.strip_prefix("machine-")).unwrap_or(part);
        let id = part.rsplit('-').next().unwrap_or(part);
        part == container || name == container || is_id(id) && is_id(container) && id.starts_with(container)
    })
}

fn is_below(path: &str, group: &str) -> bool {
    path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_in_the_kernels_table() {
        let line =
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0";
        assert_eq!(inode(line, 8080).as_deref(), Some("4242"));
        assert_eq!(inode(line, 8081), None);
        assert_eq!(inode(&line.replace(" 0A ", " 01 "), 8080), None);
        assert_eq!(inode("  sl  local_address rem_address   st", 8080), None);
    }

    #[test]
    fn units_and_groups_are_parts_of_a_path() {
        assert!(
            has_unit("/system.slice/nginx.service", "nginx")
                && has_unit("/system.slice/nginx.service", "nginx.service")
        );
        assert!(!has_unit("/system.slice/nginx-debug.service", "nginx"));
        assert!(is_below("/a/b/c", "/a/b") && is_below("/a/b", "/a/b") && !is_below("/a/bc", "/a/b"));
    }

    #[test]
    fn containers_are_known_by_their_groups() {
        let id = "3f2a9c0d17be4455667788990011223344556677889900aabbccddeeff001122";
        let groups = [
            format!("/system.slice/docker-{id}.scope"),
            format!("/docker/{id}"),
            format!("/machine.slice/libpod-{id}.scope/container"),
            format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
        ];
        for group in &groups {
            assert!(is_in_container(group, id) && is_in_container(group, &id[..12]), "{group}");
            assert!(!is_in_container(group, &id[..5]) && !is_in_container(group, "web") && !is_in_container(group, ""));
        }
        assert!(
            is_in_container("/lxc.payload.web/system.slice", "web") && is_in_container("/machine-web.scope", "web")
        );
        assert!(!is_in_container("/system.slice/nginx.service", "web"));
    }

    #[test]
    fn a_process_that_systoll_came_of_is_meant_by_its_number_alone() {
        let own = std::process::id() as i32;
        let (above, other) = (parent(own).unwrap(), i32::MAX);
        let left = |numbers: &[i32]| {
            let mut all = vec![above, other, above];
            without_own_line(&mut all, numbers);
            all
        };
        assert_eq!((left(&[]), left(&[above])), (vec![other], vec![above, other]));
    }

    #[test]
    fn this_process_is_not_meant_by_its_name() {
        let own = std::process::id() as i32;
        assert!(own_line().contains(&own) && named(&own.to_string()) == [own]);
        assert!(with_descendants(&[parent(own).unwrap()]).contains(&own));
    }

    #[test]
    fn workers_of_a_server_belong_to_its_port_and_other_programs_do_not() {
        let mut other = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let (own, pid) = (std::process::id() as i32, other.id() as i32);
        let seen = (with_descendants(&[own]).contains(&pid), with_workers(&[own]).contains(&pid), left_out(&[own]));
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(seen.0 && !seen.1, "{seen:?}");
        assert!(seen.2.is_some_and(|text| text.contains("you did not ask for: --tree")));
    }
}
