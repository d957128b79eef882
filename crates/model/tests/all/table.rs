//! Compares the system call table with the kernel's header and with strace's.

use crate::common::{behind_a_filter, run, skip};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use systoll_model::{ArgKind, Class, Machine, Moment, Sysno, signatures};

#[test]
fn numbers_ascend_and_names_and_arguments_are_whole() {
    let all = signatures();
    assert!(all.is_sorted_by_key(|s| s.sysno));
    let names: BTreeSet<_> = all.iter().map(|s| s.name).collect();
    assert_eq!(names.len(), all.len());
    assert_eq!(all.len(), 385);
    for s in all {
        assert!(s.args.len() <= 6, "{}", s.name);
        assert_eq!(Sysno::from_name(s.name), Some(s.sysno));
        assert_eq!(s.sysno.name(), Some(s.name));
        assert!(!s.waits || s.may_block, "{}", s.name);
        for arg in s.args {
            let text = format!("{:?}", arg.kind);
            for (at, _) in text.match_indices("arg: ").chain(text.match_indices("bound: ")) {
                let digit = text[at..].chars().find_map(|c| c.to_digit(10)).unwrap_or(9) as usize;
                assert!(digit < s.args.len(), "{}: {} counts by an argument it has not", s.name, arg.name);
            }
        }
    }
    assert_eq!(Sysno(337).signature(), None);
    assert_eq!(Sysno(471).name(), Some("rseq_slice_yield"));
    for (eax, made) in [(39, "getpid"), (0x4000_0027, "syscall_0x40000027"), (0x4000_0200, "syscall_0x40000200")] {
        assert_eq!(Sysno::made(eax).to_string(), made);
        assert_eq!(Sysno::from_display(made), Some(Sysno(eax)));
        assert_eq!(Sysno::made(eax).is_x32(), eax > 39);
    }
    for eax in [511, 600, 0x4000_0228, 0x7fff_ffff, 0x8000_0004, 0xc000_0027, u32::MAX] {
        assert_eq!(Sysno::made(eax).to_string(), "unknown_syscall", "{eax:#x}");
    }
    assert_eq!(Sysno::from_display("unknown_syscall"), Some(Sysno::UNKNOWN));
    assert!(!Sysno::UNKNOWN.is_x32() && !Sysno(Sysno::I386 | Sysno::X32).is_x32());
    assert_eq!(Sysno(Sysno::I386 | 4).to_string(), "i386_syscall_0x4");
}

#[test]
fn memory_is_read_when_it_is_there() {
    let stat = Sysno::from_name("newfstatat").and_then(Sysno::signature).expect("newfstatat");
    let args = [-100i64 as u64, 0x1000, 0x2000, 0, 0, 0];
    assert_eq!(stat.memory(Moment::Entry, &args).collect::<Vec<_>>(), [(1, ArgKind::Path)]);
    assert_eq!(stat.memory(Moment::Exit, &args).map(|(i, _)| i).collect::<Vec<_>>(), [2]);
    let mask = Sysno::from_name("rt_sigprocmask").and_then(Sysno::signature).expect("rt_sigprocmask");
    assert_eq!(mask.memory(Moment::Entry, &[0, 0, 0x2000, 8, 0, 0]).count(), 0, "NULL is not read");
}

#[test]
fn numbers_are_the_headers() {
    let header = Path::new("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
    let Ok(text) = std::fs::read_to_string(header).or_else(|_| std::fs::read_to_string("/usr/include/asm/unistd_64.h"))
    else {
        return skip("no asm/unistd_64.h here (Debian: linux-libc-dev)");
    };
    let mut seen = 0;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("#define __NR_") else { continue };
        let mut words = rest.split_whitespace();
        let (Some(name), Some(Ok(number))) = (words.next(), words.next().map(str::parse)) else { continue };
        // Later kernels may have calls with numbers that this table lacks.
        if number <= 471 {
            assert_eq!(Sysno(number).name(), Some(name));
            seen += 1;
        }
    }
    assert!(seen > 300, "only {seen} calls in the header");
}

#[test]
fn numbers_of_aarch64_are_the_headers() {
    let Ok(text) = std::fs::read_to_string("/usr/include/asm-generic/unistd.h") else {
        return skip("no asm-generic/unistd.h here (Debian: linux-libc-dev)");
    };
    // Calls have other names there if their numbers of 32-bit machines have later been given to others.
    let by_old_name = |name: &str| match name {
        "fstatat" => Sysno::from_name("newfstatat"),
        name => Sysno::from_name(name),
    };
    let mut seen = 0;
    for line in text.lines() {
        let rest = line.strip_prefix("#define __NR_").or_else(|| line.strip_prefix("#define __NR3264_"));
        let mut words = rest.unwrap_or_default().split_whitespace();
        let (Some(name), Some(Ok(number))) = (words.next(), words.next().map(str::parse)) else { continue };
        let here = Machine::Aarch64.call(number);
        if number > 471 || (244..260).contains(&number) || name.ends_with("64") && here == Sysno::UNKNOWN {
            continue;
        }
        // Machines that pass 64-bit numbers in pairs of registers have the first in place of sync_file_range; the second
        // is the number of calls.
        if ["sync_file_range2", "syscalls"].contains(&name) {
            continue;
        }
        // 32-bit machines have these calls with times of 64 bits.
        if (403..424).contains(&number) {
            assert_eq!(here, Sysno::UNKNOWN, "{name}");
            continue;
        }
        let plain = name.strip_suffix("64").and_then(Sysno::from_name);
        assert_eq!(Some(here), by_old_name(name).or(plain), "{name} {number}");
        seen += 1;
    }
    assert!(seen > 300, "only {seen} calls in the header");
}

/// Body of a C program that makes every call with arbitrary arguments.
const EVERY_CALL: &str = r#"
  /* rt_sigreturn, uretprobe and uprobe do not return here, whatever the filter says. */
  for (long n = 0; n < 450; n++)
    if (n != SYS_exit_group && n != SYS_rt_sigreturn && n != 335 && n != 336)
      syscall(n, -1L, -1L, -1L, -1L, -1L, -1L);
"#;

#[test]
fn classes_are_straces() {
    let dir = tempdir();
    let source = dir.join("every.c");
    let program = dir.join("every");
    std::fs::write(&source, behind_a_filter("", EVERY_CALL)).expect("write the program");
    let (cc, out) = (source.display().to_string(), program.display().to_string());
    if run("cc", &["-O1", "-o", &out, &cc]).is_none() || run("strace", &["-V"]).is_none() {
        return skip("needs cc and strace");
    }
    let version = run("strace", &["-V"]).expect("strace ran a moment ago");
    // Another version of strace may class calls differently; the table names the version it
    // follows.
    if !version.starts_with("strace -- version 6.1\n") {
        return skip("the table follows strace 6.1");
    }
    let mut theirs: BTreeMap<String, Vec<Class>> = BTreeMap::new();
    for class in Class::all() {
        let trace = dir.join("trace").display().to_string();
        let filter = format!("trace={}", class.name());
        let args = ["-f", "-e", &filter, "-e", "signal=none", "-o", &trace, &out];
        assert!(run("strace", &args).is_some(), "strace {}", class.name());
        for line in std::fs::read_to_string(&trace).expect("trace").lines() {
            let call = line.split_once(' ').map_or(line, |(_, rest)| rest.trim_start());
            let name = call.split('(').next().unwrap_or_default().to_owned();
            let classes = theirs.entry(name).or_default();
            if classes.last() != Some(&class) {
                classes.push(class);
            }
        }
    }
    std::fs::remove_dir_all(&dir).expect("clean up");
    for s in signatures().iter().filter(|s| s.sysno.0 < 450 && s.name != "rt_sigreturn") {
        let ours: Vec<_> = s.classes.iter().collect();
        assert_eq!(theirs.get(s.name).cloned().unwrap_or_default(), ours, "{}", s.name);
    }
}

fn tempdir() -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("systoll-table-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary folder");
    dir
}
