//! Compares the libraries that are found before a program maps them with the ones that the loader
//! maps.

use crate::common::Bench;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use systoll_symbols::{Preloaded, PreloadedFile, libraries_of};

/// Returns the inodes of the files that `program` needs, as this crate finds them.
fn by_us(program: &Path, most: usize) -> Vec<u64> {
    let preloaded = Preloaded::default();
    let file = preloaded.open(program).unwrap();
    let loader = libraries_of(Some(&file)).remove(0);
    let inode = |file: &PreloadedFile| file.state().unwrap().inode;
    preloaded.open_needed(&file, &loader, most).iter().map(inode).collect()
}

/// Returns the inodes of the files that the loader lists, in its order.
fn by_the_loader(program: &Path) -> Vec<u64> {
    let loader = libraries_of(None).remove(0);
    let said = Command::new(loader).arg("--list").arg(program).output().unwrap();
    assert!(said.status.success(), "{program:?}");
    let said = String::from_utf8(said.stdout).unwrap();
    // Lines are `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`; the loader's own has its path
    // alone.
    let paths = said.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    paths.map(|path| std::fs::metadata(path).unwrap().ino()).collect()
}

#[test]
fn libraries_are_those_that_the_loader_maps() {
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let programs =
        [own, PathBuf::from("/usr/bin/env"), PathBuf::from("/usr/bin/python3"), PathBuf::from("/usr/bin/gdb")];
    for program in programs.iter().filter(|path| path.is_file()) {
        let (ours, theirs) = (by_us(program, 512), by_the_loader(program));
        assert!(!ours.is_empty(), "{program:?}");
        // The loader lists itself last if only other libraries need it.
        let sorted = |mut all: Vec<u64>| {
            all.sort_unstable();
            all
        };
        assert_eq!(sorted(ours), sorted(theirs), "{program:?}");
        assert_eq!(by_us(program, 1).len(), 1, "{program:?}");
    }
}

#[test]
fn libraries_lie_where_files_say() {
    let bench = Bench::new();
    std::fs::create_dir(bench.dir.path().join("below")).unwrap();
    let library = ["-shared", "-fPIC", "-Wl,--no-as-needed"];
    let inner = [&library[..], &["-Wl,-soname,libinner.so"]].concat();
    let Some(_) = bench.compile("gcc", &inner, "int inner(void) { return 1; }", "below/libinner.so") else { return };
    let outer = [&library[..], &["below/libinner.so", "-Wl,-rpath,$ORIGIN/below", "-Wl,-soname,libouter.so"]].concat();
    let Some(_) = bench.compile("gcc", &outer, "int outer(void) { return 2; }", "libouter.so") else { return };
    let flags = ["-Wl,--no-as-needed", "libouter.so", "-Wl,-rpath,${ORIGIN}", "-Wl,-rpath-link,below"];
    let Some(program) = bench.compile("gcc", &flags, "int main(void) { return 0; }", "program") else { return };
    let inode = |name: &str| std::fs::metadata(bench.dir.path().join(name)).unwrap().ino();
    let found = by_us(&program, 512);
    assert_eq!(found.first(), Some(&inode("libouter.so")));
    assert!(found.contains(&inode("below/libinner.so")));
    let theirs = by_the_loader(&program);
    assert!(found.iter().all(|ours| theirs.contains(ours)) && found.len() == theirs.len(), "{found:?} {theirs:?}");
}
