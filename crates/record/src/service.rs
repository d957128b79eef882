//! Names the service to which a process belongs, by its control groups.

use crate::procfs;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Digits of a container's id that its name has, as `docker ps` shows it.
const SHORT_ID: usize = 12;
/// Digits of a whole id of a container.
const WHOLE_ID: usize = 64;
/// Characters of a pod's uid, without dashes in that of a pod that a node's own files define.
const UID: [usize; 2] = [36, 32];

/// Returns the service of a process: its Kubernetes pod, its container or its systemd unit; else the file name of its
/// program.
pub(crate) fn of(pid: i32, exe: &str) -> Arc<str> {
    let groups = procfs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    // A program may be hidden from this user, but no process's name is.
    let own = || if exe.is_empty() { of_program(&procfs::comm(pid)) } else { of_program(exe) };
    of_groups(&String::from_utf8_lossy(&groups)).map_or_else(own, Arc::from)
}

/// Returns the processes of the box by service, except this one and the kernel's own threads.
pub fn services() -> BTreeMap<Arc<str>, Vec<i32>> {
    let mut services = BTreeMap::<Arc<str>, Vec<i32>>::new();
    for pid in procfs::processes() {
        services.entry(of(pid, &procfs::exe(pid).unwrap_or_default())).or_default().push(pid);
    }
    services
}

/// Returns the service of a program that runs in no unit and no container.
pub(crate) fn of_program(exe: &str) -> Arc<str> {
    exe.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("(unknown)").into()
}

/// Returns the innermost service among control groups, written as /proc/PID/cgroup has them.
fn of_groups(text: &str) -> Option<String> {
    let parts = || text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).flat_map(|path| path.split('/'));
    let unit = || parts().filter_map(|part| part.strip_suffix(".service")).rfind(|unit| !unit.is_empty());
    parts().find_map(pod).or_else(|| parts().find_map(container)).or_else(|| unit().map(str::to_owned))
}

/// Returns a pod's name: `kubepods-burstable-podUID.slice`, `podUID`.
fn pod(part: &str) -> Option<String> {
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let uid = part.strip_prefix("pod").or_else(|| Some(part.rsplit_once("-pod")?.1))?.replace('_', "-");
    let is_uid = UID.contains(&uid.len()) && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    is_uid.then(|| format!("pod-{uid}"))
}

/// Returns a container's name: `docker-ID.scope`, `cri-containerd-ID.scope`, `crio-ID.scope`, `libpod-ID.scope`, `ID`.
fn container(part: &str) -> Option<String> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let id = part.rsplit(['-', ':']).next().filter(|id| id.len() == WHOLE_ID)?;
    id.bytes().all(|b| b.is_ascii_hexdigit()).then(|| format!("container-{}", &id[..SHORT_ID]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_named_by_the_innermost_that_is_one() {
        let id = "3f2a9c0d17be4455667788990011223344556677889900aabbccddeeff001122";
        let uid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
        let slice = format!("kubepods-burstable-pod{}.slice", uid.replace('-', "_"));
        for (path, name) in [
            ("/system.slice/nginx.service".into(), "nginx"),
            ("/system.slice/system-getty.slice/getty@tty1.service".into(), "getty@tty1"),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/shop.service".into(), "shop"),
            (format!("/system.slice/docker-{id}.scope"), "container-3f2a9c0d17be"),
            (format!("/docker/{id}/system.slice/nginx.service"), "container-3f2a9c0d17be"),
            (format!("/machine.slice/libpod-{id}.scope/container"), "container-3f2a9c0d17be"),
            (
                format!("/kubepods.slice/kubepods-burstable.slice/{slice}/cri-containerd-{id}.scope"),
                &format!("pod-{uid}"),
            ),
            (format!("/../../kubepods/besteffort/pod{uid}/{id}"), &format!("pod-{uid}")),
        ] {
            assert_eq!(of_groups(&format!("9:name=systemd:/\n0::{path}\n")).as_deref(), Some(name), "{path}");
        }
        for path in ["/", "/user.slice/user-0.slice/session-3.scope", "/podium", "/.service", "/kubepods/pod12"] {
            assert_eq!(of_groups(&format!("0::{path}\n")), None, "{path}");
        }
        assert_eq!(of_groups("nonsense"), None);
        assert_eq!((&*of_program("/usr/bin/python3"), &*of_program("")), ("python3", "(unknown)"));
    }
}
