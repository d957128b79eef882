//! Layouts of structs on x86-64, by the names that strace gives their fields.

use super::sets::signals;
use crate::lex::{find, members, within};
use crate::literal::{number, string};

/// A field: its name, its offset in the struct, bytes, and its size, bytes.
type Field = (&'static str, usize, usize);

/// The structs, each as its fields. Most fields are in one struct only, so that the first field
/// shown tells the struct; a field of several structs has the same offset in all.
#[rustfmt::skip]
static LAYOUTS: &[&[Field]] = &[
    &[("st_dev", 0, 8), ("st_ino", 8, 8), ("st_nlink", 16, 8), ("st_mode", 24, 4), ("st_uid", 28, 4), ("st_gid", 32, 4),
      ("st_rdev", 40, 8), ("st_size", 48, 8), ("st_blksize", 56, 8), ("st_blocks", 64, 8), ("st_atime", 72, 8),
      ("st_atime_nsec", 80, 8), ("st_mtime", 88, 8), ("st_mtime_nsec", 96, 8), ("st_ctime", 104, 8),
      ("st_ctime_nsec", 112, 8)],
    &[("stx_mask", 0, 4), ("stx_blksize", 4, 4), ("stx_attributes", 8, 8), ("stx_nlink", 16, 4), ("stx_uid", 20, 4),
      ("stx_gid", 24, 4), ("stx_mode", 28, 2), ("stx_ino", 32, 8), ("stx_size", 40, 8), ("stx_blocks", 48, 8),
      ("stx_attributes_mask", 56, 8), ("stx_atime", 64, 16), ("stx_btime", 80, 16), ("stx_ctime", 96, 16),
      ("stx_mtime", 112, 16), ("stx_rdev_major", 128, 4), ("stx_rdev_minor", 132, 4), ("stx_dev_major", 136, 4),
      ("stx_dev_minor", 140, 4), ("stx_mnt_id", 144, 8)],
    &[("tv_sec", 0, 8), ("tv_nsec", 8, 8), ("tv_usec", 8, 8)],
    &[("it_interval", 0, 16), ("it_value", 16, 16)],
    &[("rlim_cur", 0, 8), ("rlim_max", 8, 8)],
    &[("ws_row", 0, 2), ("ws_col", 2, 2), ("ws_xpixel", 4, 2), ("ws_ypixel", 6, 2)],
    &[("fd", 0, 4), ("revents", 6, 2)],
    &[("iov_base", 0, 8), ("iov_len", 8, 8)],
    &[("sa_handler", 0, 8), ("sa_sigaction", 0, 8), ("sa_flags", 8, 8), ("sa_restorer", 16, 8), ("sa_mask", 24, 8)],
    &[("ss_sp", 0, 8), ("ss_flags", 8, 4), ("ss_size", 16, 8)],
    &[("l_type", 0, 2), ("l_whence", 2, 2), ("l_start", 8, 8), ("l_len", 16, 8), ("l_pid", 24, 4)],
    &[("l_onoff", 0, 4), ("l_linger", 4, 4)],
    &[("sysname", 0, 65), ("nodename", 65, 65), ("release", 130, 65), ("version", 195, 65), ("machine", 260, 65),
      ("domainname", 325, 65)],
    &[("f_type", 0, 8), ("f_bsize", 8, 8), ("f_blocks", 16, 8), ("f_bfree", 24, 8), ("f_bavail", 32, 8),
      ("f_files", 40, 8), ("f_ffree", 48, 8), ("f_fsid", 56, 8), ("f_namelen", 64, 8), ("f_frsize", 72, 8),
      ("f_flags", 80, 8)],
    &[("flags", 0, 8), ("mode", 8, 8), ("resolve", 16, 8)],
    &[("events", 0, 4), ("data", 4, 8)],
    &[("u32", 0, 4), ("u64", 0, 8)],
    &[("ru_utime", 0, 16), ("ru_stime", 16, 16)],
    &[("sched_priority", 0, 4)],
    &[("sem_num", 0, 2), ("sem_op", 2, 2), ("sem_flg", 4, 2)],
    &[("tms_utime", 0, 8), ("tms_stime", 8, 8), ("tms_cutime", 16, 8), ("tms_cstime", 24, 8)],
    &[("uptime", 0, 8), ("loads", 8, 24), ("totalram", 32, 8), ("freeram", 40, 8), ("sharedram", 48, 8),
      ("bufferram", 56, 8), ("totalswap", 64, 8), ("freeswap", 72, 8), ("procs", 80, 2)],
];

/// The events of a `pollfd`, which lie behind its descriptor.
const POLLED: Field = ("events", 4, 2);

/// Largest depth of structs within each other. The kernel's have a depth of two.
const DEEPEST: u32 = 4;

/// Returns the bytes of a struct, `size` of them, and true if fields were left out or could not be
/// read.
pub(super) fn bytes(text: &[u8], size: usize) -> Option<(Vec<u8>, bool)> {
    nested(text, size, DEEPEST)
}

/// Returns the same as [`bytes`] for a struct that holds others, at most `deep` within each other.
fn nested(text: &[u8], size: usize, deep: u32) -> Option<(Vec<u8>, bool)> {
    let deeper = deep.checked_sub(1)?;
    let inner = within(text, b'{', b'}')?;
    let all = members(inner, 64);
    let first = name_of(all.first()?)?;
    let layout = LAYOUTS.iter().find(|fields| fields.iter().any(|(name, ..)| name.as_bytes() == first))?;
    let mut bytes = vec![0; size];
    let mut vague = false;
    for member in all {
        let field = name_of(member).and_then(|name| field(layout, name));
        let value = field.and_then(|_| member.get(member.iter().position(|b| *b == b'=')? + 1..));
        let written = field.zip(value).is_some_and(|(field, value)| write(&mut bytes, field, value, deeper));
        vague |= !written;
    }
    Some((bytes, vague))
}

/// Returns the bytes of an array of structs, at most `size`, and true if some could not be read.
pub(super) fn structs(all: &[&[u8]], size: usize) -> Option<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let mut vague = false;
    for text in all {
        if *text == b"..." {
            vague = true;
            continue;
        }
        if let Some(old) = old_event(text) {
            bytes.extend(old);
            continue;
        }
        let each = match name_of(within(text, b'{', b'}')?)? {
            b"fd" => 8,
            b"iov_base" => 16,
            b"events" => 12,
            b"tv_sec" => 16,
            b"sem_num" => 6,
            _ => return None,
        };
        let (one, less) = self::bytes(text, each)?;
        bytes.extend(one);
        vague |= less;
        if bytes.len() >= size {
            break;
        }
    }
    bytes.truncate(size);
    Some((bytes, vague))
}

/// Returns an `epoll_event` as strace wrote it before 4.21: `{EPOLLOUT, {u32=16, u64=16}}`.
fn old_event(text: &[u8]) -> Option<[u8; 12]> {
    let all = members(within(text, b'{', b'}')?, 2);
    let (events, data) = (all.first().filter(|events| events.starts_with(b"EPOLL"))?, all.get(1)?);
    let whole = members(within(data, b'{', b'}')?, 2).into_iter().find_map(|member| member.strip_prefix(b"u64="))?;
    let mut bytes = [0; 12];
    let (first, rest) = bytes.split_at_mut(4);
    first.copy_from_slice(&(number(events)? as u32).to_le_bytes());
    rest.copy_from_slice(&number(whole)?.to_le_bytes());
    Some(bytes)
}

fn name_of(member: &[u8]) -> Option<&[u8]> {
    member.get(..member.iter().position(|b| *b == b'=')?)
}

fn field(layout: &[Field], name: &[u8]) -> Option<Field> {
    let named = layout.iter().find(|(known, ..)| known.as_bytes() == name).copied();
    let polled = layout.first().is_some_and(|(first, ..)| *first == "fd") && name == POLLED.0.as_bytes();
    named.or(polled.then_some(POLLED))
}

/// Writes a field's value. Returns true if it could be read.
fn write(bytes: &mut [u8], (name, at, width): Field, value: &[u8], deep: u32) -> bool {
    let value = match find(value, b" /* ", 1) {
        Some(comment) => value.get(..comment).unwrap_or(value),
        None => value,
    };
    let read = if value.starts_with(b"{") {
        nested(value, width, deep).filter(|(_, vague)| !vague).map(|(inner, _)| inner)
    } else if let Some(text) = string(value, width) {
        Some(text.bytes)
    } else if name == "sa_mask" {
        signals(value).map(|set| set.to_le_bytes().to_vec())
    } else {
        number(value).map(|n| n.to_le_bytes().into_iter().take(width).collect())
    };
    let Some(read) = read else { return name == "iov_base" };
    for (to, from) in bytes.iter_mut().skip(at).take(width).zip(read) {
        *to = from;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_field_tells_its_struct() {
        let mut seen = BTreeSet::new();
        for (name, ..) in LAYOUTS.iter().flat_map(|l| l.iter()) {
            assert!(seen.insert(*name), "{name} is in two structs");
        }
    }

    #[test]
    fn old_events_are_read_as_new_ones() {
        let old = old_event(b"{EPOLLIN|EPOLLOUT, {u32=16, u64=4294967312}}");
        assert_eq!(old, Some([5, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0]));
        assert_eq!((old_event(b"{EPOLLIN"), old_event(b"{events=EPOLLIN, data={u32=1, u64=1}}")), (None, None));
    }

    #[test]
    fn structs_within_each_other_end_soon() {
        let deep = [b"{tv_sec=".repeat(100_000), b"1".to_vec(), b"}".repeat(100_000)].concat();
        assert_eq!(bytes(&deep, 16).map(|(_, vague)| vague), Some(true));
    }

    #[test]
    fn whole_structs_are_not_vague() {
        let (bytes, vague) = bytes(b"{it_interval={tv_sec=0, tv_nsec=0}, it_value={tv_sec=1, tv_nsec=5}}", 32).unwrap();
        assert_eq!((bytes[16], bytes[24], vague), (1, 5, false));
        let (bytes, vague) =
            super::bytes(b"{sa_handler=SIG_IGN, sa_mask=[INT], sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x10}", 32)
                .unwrap();
        assert_eq!((bytes[0], bytes[11], bytes[16], bytes[24], vague), (1, 0x14, 0x10, 2, false));
        let (bytes, vague) = super::bytes(b"{events=EPOLLIN, data={u32=5, u64=4294967301}}", 12).unwrap();
        assert_eq!((&bytes[..], vague), (&[1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0][..], false));
        let (_, vague) = super::bytes(b"{st_mode=S_IFREG|0644, st_size=1, ...}", 144).unwrap();
        assert!(vague);
        let (bytes, vague) =
            super::bytes(b"{st_dev=makedev(0xfe, 0), st_mtime=1795269868 /* 2026-11-21T14:04:28+0000 */}", 144)
                .unwrap();
        assert_eq!((bytes[1], &bytes[88..92], vague), (0xfe, &1_795_269_868u32.to_le_bytes()[..], false));
        assert!(super::bytes(b"{unheard=1}", 8).is_none() && super::bytes(b"{", 8).is_none());
    }
}
