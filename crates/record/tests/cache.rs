//! Tests that the cache is private and bounded, and that only entries of this user's own build are
//! used.

#![allow(clippy::print_stderr, reason = "whoever runs tests must see what was skipped")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use systoll_hooks::plan::plan;
use systoll_record::inproc::build::Build;
use systoll_record::inproc::cache::{Cache, DEFAULT_LIMIT, Key, Kind};
use systoll_symbols::FileState;
use tempfile::{TempDir, tempdir};

/// Kind of the entries in these tests; any would do, as all are kept alike.
const BLOB: Kind = Kind::Code;

fn fresh() -> (TempDir, Cache) {
    let dir = tempdir().unwrap();
    let cache = Cache::at(dir.path(), DEFAULT_LIMIT);
    assert!(cache.is_usable());
    (dir, cache)
}

fn key(cache: &Cache, content: &str) -> Key {
    cache.key(content.as_bytes()).unwrap()
}

/// Returns the entries, without the secret.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(dir.join("systoll")).unwrap().map(|e| e.unwrap().path());
    all.filter(|p| !p.ends_with("secret")).collect()
}

fn only(dir: &Path) -> PathBuf {
    let mut all = entries(dir);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Reports that a test can't be run here.
fn skip(why: &str) {
    assert!(std::env::var("SYSTOLL_TEST_STRICT").as_deref() != Ok("1"), "not to be skipped: {why}");
    eprintln!("skipped: {why}");
}

/// Returns a file of this machine that makes system calls.
fn elf() -> Option<Vec<u8>> {
    let path = "/lib64/ld-linux-x86-64.so.2";
    let elf = fs::read(path).ok();
    if elf.is_none() {
        skip(&format!("{path} is not here"));
    }
    elf
}

#[test]
fn stored_payloads_are_found() {
    let (_dir, cache) = fresh();
    let (one, two) = (key(&cache, "one"), key(&cache, "two"));
    assert_ne!(one, two);
    assert_eq!(cache.get(BLOB, &one), None);
    assert!(cache.put(BLOB, &one, b"first") && cache.put(BLOB, &two, b""));
    assert_eq!(cache.get(BLOB, &one).as_deref(), Some(&b"first"[..]));
    assert_eq!(cache.get(BLOB, &two).as_deref(), Some(&b""[..]));
    assert!(cache.put(BLOB, &one, b"second"));
    assert_eq!(cache.get(BLOB, &one).as_deref(), Some(&b"second"[..]));
    assert_eq!(cache.get(Kind::Plan, &one), None);
}

/// Returns the build "one" or "two" of this program.
fn build(name: &str) -> &'static Build {
    Box::leak(Box::new(Build::named(format!("build {name}").as_bytes())))
}

#[test]
fn entries_of_another_build_are_not_found() {
    let dir = tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| Cache::of_build(dir.path(), DEFAULT_LIMIT, build(name)));
    let x = key(&one, "x");
    assert_eq!(key(&two, "x"), x, "the file is the same");
    for kind in Kind::ALL {
        assert!(one.put(kind, &x, b"by one"));
        assert_eq!(two.get(kind, &x), None, "{kind:?}");
        assert!(two.put(kind, &x, b"by two"));
        assert_eq!(one.get(kind, &x).as_deref(), Some(&b"by one"[..]), "{kind:?}");
    }
    // The entry is not found under the other build's name either.
    let (by_one, by_two) = (one.path_of(BLOB, &x).unwrap(), two.path_of(BLOB, &x).unwrap());
    fs::copy(by_one, by_two).unwrap();
    assert_eq!(two.get(BLOB, &x), None);
    // Entries of every kind depend on the build, plans and states included.
    let Some(elf) = elf() else { return };
    one.plan(&elf).unwrap();
    one.key_of(Some(&state()), None, || Some(b"content".to_vec()));
    let key = two.key_of(Some(&state()), None, || Some(b"other".to_vec()));
    assert_eq!(key, two.key(b"other"), "another build reads the file again");
    assert!(two.kept_plan(&two.key(&elf).unwrap()).is_none());
}

#[test]
fn entries_of_builds_that_are_gone_make_room() {
    let dir = tempdir().unwrap();
    let caches = ["one", "two"].map(|name| Cache::of_build(dir.path(), 10_000, build(name)));
    let put = |cache: &Cache, n: u8| {
        assert!(cache.put(BLOB, &key(cache, &format!("file {n}")), &[n; 1000]));
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    (0..8).for_each(|n| put(&caches[0], n));
    (0..40).for_each(|n| put(&caches[1], n));
    let sizes: Vec<u64> = entries(dir.path()).iter().map(|p| fs::metadata(p).unwrap().len()).collect();
    assert!(sizes.iter().sum::<u64>() <= 10_000, "{sizes:?}");
    let left = (0..8).filter(|n| caches[0].get(BLOB, &key(&caches[0], &format!("file {n}"))).is_some()).count();
    assert_eq!(left, 0);
}

#[test]
fn it_is_there_next_time() {
    let (dir, cache) = fresh();
    cache.put(BLOB, &key(&cache, "x"), b"kept");
    let again = Cache::at(dir.path(), DEFAULT_LIMIT);
    assert_eq!(again.get(BLOB, &key(&again, "x")).as_deref(), Some(&b"kept"[..]));
}

#[test]
fn plans_come_back_as_they_were() {
    let Some(elf) = elf() else { return };
    let (dir, cache) = fresh();
    let new = plan(&elf).unwrap();
    assert_eq!(cache.plan(&elf).unwrap(), new);
    let before = fs::metadata(only(dir.path())).unwrap();
    assert_eq!(cache.plan(&elf).unwrap(), new);
    let after = fs::metadata(only(dir.path())).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()), "read, not written again");
    // A different file with the same build-id is another file.
    let mut other = elf.clone();
    *other.last_mut().unwrap() ^= 1;
    assert_ne!(cache.key(&other), cache.key(&elf));
}

#[test]
fn the_folder_is_private() {
    let (dir, cache) = fresh();
    cache.put(BLOB, &key(&cache, "x"), b"mine");
    let folder = dir.path().join("systoll");
    assert_eq!((mode(&folder), mode(&only(dir.path())), mode(&folder.join("secret"))), (0o700, 0o600, 0o600));
}

#[test]
fn a_folder_open_to_others_is_not_used() {
    let Some(elf) = elf() else { return };
    let (dir, cache) = fresh();
    cache.plan(&elf).unwrap();
    fs::set_permissions(dir.path().join("systoll"), fs::Permissions::from_mode(0o770)).unwrap();
    let cache = Cache::at(dir.path(), DEFAULT_LIMIT);
    assert!(!cache.is_usable() && cache.key(b"x").is_none());
    assert_eq!(cache.plan(&elf).unwrap(), plan(&elf).unwrap(), "work goes on");
}

#[test]
fn a_folder_of_others_is_not_used() {
    let dir = tempdir().unwrap();
    let nobody = Some(65534);
    if std::os::unix::fs::chown(dir.path(), nobody, nobody).is_err() {
        return skip("only root can give folders away");
    }
    assert!(!Cache::at(dir.path(), DEFAULT_LIMIT).is_usable());
    assert!(!Cache::at(&dir.path().join("cache"), DEFAULT_LIMIT).is_usable());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left in another's home");
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("systoll")).unwrap();
    fs::set_permissions(dir.path().join("systoll"), fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(dir.path().join("systoll"), nobody, nobody).unwrap();
    assert!(!Cache::at(dir.path(), DEFAULT_LIMIT).is_usable());
}

#[test]
fn links_are_not_followed() {
    let (dir, cache) = fresh();
    let x = key(&cache, "x");
    cache.put(BLOB, &x, b"mine");
    let entry = only(dir.path());
    let elsewhere = dir.path().join("elsewhere");
    fs::rename(&entry, &elsewhere).unwrap();
    symlink(&elsewhere, &entry).unwrap();
    assert_eq!(cache.get(BLOB, &x), None);
    let before = fs::read(&elsewhere).unwrap();
    assert!(cache.put(BLOB, &x, b"again"));
    assert_eq!(fs::read(&elsewhere).unwrap(), before, "written through a link");
    assert_eq!(cache.get(BLOB, &x).as_deref(), Some(&b"again"[..]));
    let other = tempdir().unwrap();
    symlink(dir.path().join("systoll"), other.path().join("systoll")).unwrap();
    assert!(!Cache::at(other.path(), DEFAULT_LIMIT).is_usable());
}

#[test]
fn damage_is_noticed_and_mended() {
    let (dir, cache) = fresh();
    let x = key(&cache, "x");
    cache.put(BLOB, &x, b"some payload");
    let whole = fs::read(only(dir.path())).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|n| whole[..n].to_vec()).collect();
    damaged.extend((0..whole.len()).map(|n| {
        let mut bytes = whole.clone();
        bytes[n] ^= 0x10;
        bytes
    }));
    damaged.push([&whole[..], b"x"].concat());
    for bytes in damaged {
        cache.put(BLOB, &x, b"some payload");
        fs::write(only(dir.path()), &bytes).unwrap();
        assert_eq!(cache.get(BLOB, &x), None, "{bytes:?}");
        assert_eq!(entries(dir.path()).len(), 0, "thrown away");
    }
}

#[test]
fn a_damaged_plan_is_made_again() {
    let Some(elf) = elf() else { return };
    let (dir, cache) = fresh();
    let good = cache.plan(&elf).unwrap();
    let path = only(dir.path());
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(cache.plan(&elf).unwrap(), good);
    assert_eq!(cache.plan(&elf).unwrap(), good);
}

#[test]
fn entries_of_others_are_not_believed() {
    let ((dir, cache), (other_dir, other)) = (fresh(), fresh());
    let x = key(&cache, "x");
    cache.put(BLOB, &x, b"mine");
    other.put(BLOB, &key(&other, "x"), b"theirs");
    let path = only(dir.path());
    fs::copy(only(other_dir.path()), &path).unwrap();
    assert_eq!(cache.get(BLOB, &x), None);
    // An entry of ours under the name of another file is not used either.
    cache.put(BLOB, &x, b"mine");
    let y = key(&cache, "y");
    cache.put(BLOB, &y, b"for y");
    let (first, second) = (entries(dir.path()).remove(0), entries(dir.path()).remove(1));
    fs::copy(&first, &second).unwrap();
    assert_eq!([cache.get(BLOB, &x), cache.get(BLOB, &y)].iter().flatten().count(), 1);
    // An entry that others can write is not used either.
    cache.put(BLOB, &x, b"mine");
    cache.put(BLOB, &y, b"for y");
    for path in entries(dir.path()) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o620)).unwrap();
    }
    assert_eq!((cache.get(BLOB, &x), cache.get(BLOB, &y)), (None, None));
}

#[test]
fn a_lost_secret_costs_the_entries_only() {
    for secret in [None, Some(&b"short"[..]), Some(&[7; 32][..])] {
        let (dir, cache) = fresh();
        cache.put(BLOB, &key(&cache, "x"), b"mine");
        let path = dir.path().join("systoll/secret");
        match secret {
            None => fs::remove_file(&path).unwrap(),
            Some(bytes) => fs::write(&path, bytes).unwrap(),
        }
        let cache = Cache::at(dir.path(), DEFAULT_LIMIT);
        let x = key(&cache, "x");
        assert_eq!(cache.get(BLOB, &x), None);
        assert!(cache.put(BLOB, &x, b"again") && cache.get(BLOB, &x).is_some());
    }
}

#[test]
fn odd_files_neither_hang_nor_break_it() {
    let (dir, cache) = fresh();
    let x = key(&cache, "x");
    cache.put(BLOB, &x, b"mine");
    let path = only(dir.path());
    fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg("-m600").arg(&path).status();
    if made.is_ok_and(|s| s.success()) {
        assert_eq!(cache.get(BLOB, &x), None);
        assert!(cache.put(BLOB, &x, b"again"));
        fs::remove_file(&path).unwrap();
    }
    fs::create_dir(&path).unwrap();
    assert_eq!(cache.get(BLOB, &x), None);
    assert!(!cache.put(BLOB, &x, b"again"));
    assert_eq!(entries(dir.path()), [path], "nothing half-written is left");
}

#[test]
fn it_does_not_grow_without_bound() {
    let dir = tempdir().unwrap();
    let cache = Cache::at(dir.path(), 10_000);
    let keys: Vec<Key> = (0..40).map(|n| key(&cache, &format!("file {n}"))).collect();
    for (n, key) in keys.iter().enumerate() {
        assert!(cache.put(BLOB, key, &[n as u8; 1000]));
        // Ages are measured by the file system's clock, which is coarse.
        std::thread::sleep(std::time::Duration::from_millis(5));
        let size: u64 = entries(dir.path()).iter().map(|p| fs::metadata(p).unwrap().len()).sum();
        assert!(size <= 10_000, "{size}");
        assert!(cache.get(BLOB, key).is_some(), "the newest is there");
    }
    assert_eq!(cache.get(BLOB, &keys[0]), None);
    assert!(entries(dir.path()).len() >= 6);
    assert!(!cache.put(BLOB, &keys[0], &[0; 10_001]), "more than all there is");
    assert!(dir.path().join("systoll/secret").exists());
}

#[test]
fn leftovers_of_the_dead_are_cleared() {
    let dir = tempdir().unwrap();
    // With this limit, each new entry is large enough that the folder's size is checked.
    let cache = Cache::at(dir.path(), 64);
    let [old, new] = ["new-1-0", "new-2-0"].map(|name| dir.path().join("systoll").join(name));
    for path in [&old, &new] {
        fs::write(path, b"half").unwrap();
    }
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    fs::File::options().write(true).open(&old).unwrap().set_modified(yesterday).unwrap();
    cache.put(BLOB, &key(&cache, "x"), b"mine");
    assert!(!old.exists() && new.exists());
}

#[test]
fn without_a_folder_plans_are_made_anew() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    for cache in [
        Cache::none(),
        Cache::at(&file, DEFAULT_LIMIT),
        Cache::at(&dir.path().join("no/such"), DEFAULT_LIMIT),
        Cache::at(Path::new("/proc"), DEFAULT_LIMIT),
    ] {
        assert!(!cache.is_usable());
        assert_eq!(cache.key(b"x"), None);
        if let Some(elf) = elf() {
            assert_eq!(cache.plan(&elf), plan(&elf));
        }
    }
    // One level of folders is made, as on an account's first day.
    assert!(Cache::at(&dir.path().join("cache"), DEFAULT_LIMIT).is_usable());
    assert_eq!(mode(&dir.path().join("cache")), 0o700);
}

#[test]
fn concurrent_readers_see_whole_entries() {
    let dir = tempdir().unwrap();
    std::thread::scope(|scope| {
        for n in 0..4u8 {
            let dir = dir.path();
            scope.spawn(move || {
                let cache = Cache::at(dir, DEFAULT_LIMIT);
                for _ in 0..50 {
                    let x = key(&cache, "x");
                    cache.put(BLOB, &x, &[n; 3000]);
                    let got = cache.get(BLOB, &x);
                    assert!(got.is_none_or(|bytes| bytes.len() == 3000 && bytes.iter().all(|b| *b == bytes[0])));
                }
            });
        }
    });
    assert!(entries(dir.path()).iter().all(|p| !p.to_string_lossy().contains("new-")));
}

/// Returns the state of a file on ext4 that was last changed long ago.
fn state() -> FileState {
    FileState { device: 1, inode: 2, size: 3, modified: (1000, 0), changed: (1000, 5), file_system: 0xef53 }
}

#[test]
fn a_file_in_a_known_state_is_not_read_again() {
    let (dir, cache) = fresh();
    let first = cache.key_of(Some(&state()), Some("ab"), || Some(b"content".to_vec()));
    assert_eq!(first, cache.key(b"content"));
    let again = Cache::at(dir.path(), DEFAULT_LIMIT);
    assert_eq!(again.key_of(Some(&state()), Some("ab"), || panic!("it is known")), first);
    let others = [
        FileState { device: 9, ..state() },
        FileState { inode: 9, ..state() },
        FileState { size: 9, ..state() },
        FileState { modified: (1000, 1), ..state() },
        FileState { changed: (1000, 6), ..state() },
    ];
    for other in others {
        let other = cache.key_of(Some(&other), Some("ab"), || Some(b"other".to_vec()));
        assert_eq!(other, cache.key(b"other"));
    }
    let rebuilt = cache.key_of(Some(&state()), Some("cd"), || Some(b"other".to_vec()));
    assert_eq!(rebuilt, cache.key(b"other"));
}

#[test]
fn file_states_that_can_miss_changes_are_not_used() {
    let (dir, cache) = fresh();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    let doubtful = [
        Some(FileState { file_system: 0x0102_1994, ..state() }),
        Some(FileState { changed: (now, 0), ..state() }),
        Some(FileState { changed: (now + 1000, 0), ..state() }),
        None,
    ];
    for state in doubtful {
        for content in [&b"one"[..], b"another"] {
            assert_eq!(cache.key_of(state.as_ref(), None, || Some(content.to_vec())), cache.key(content));
        }
    }
    assert_eq!(entries(dir.path()).len(), 0);
    assert_eq!(cache.key_of(Some(&state()), None, || None), None);
}
