//! Links the command with the C library's and the compiler's archives, at a fixed address, if the
//! compiler has them and they fit each other (glibc 2.34 and later): every shared library is one
//! more to be mapped, relocated and bound at each start, and starting is the largest part of the
//! cost of watching a short program.
//!
//! Rust's own way to this, `-C target-feature=+crt-static`, is for a whole build, procedural macros
//! included, which can't be linked so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Libraries that the standard library is linked with.
const LIBRARIES: [&str; 7] = ["gcc_s", "util", "rt", "pthread", "m", "dl", "c"];

/// Size of an archive that holds nothing, bytes: its magic (ar.h).
const EMPTY_ARCHIVE: u64 = 8;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    // The cache identifies a build by its build ID. Most compilers ask their linkers for one
    // anyway.
    println!("cargo::rustc-link-arg-bins=-Wl,--build-id=sha1");
    let is = |what: &str, value: &str| std::env::var(what).is_ok_and(|is| is == value);
    let x86_64 = is("CARGO_CFG_TARGET_ARCH", "x86_64");
    let here = is("CARGO_CFG_TARGET_ENV", "gnu") && (x86_64 || is("CARGO_CFG_TARGET_ARCH", "aarch64"));
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from);
    if let Some(out) = out.filter(|_| here)
        && stand_ins(&out).is_some()
    {
        // The folder is an argument for the linker. A search path of the package would also apply to packages that link
        // with it.
        for arg in [&format!("-L{}", out.display()), "-static", "-no-pie"] {
            println!("cargo::rustc-link-arg-bins={arg}");
        }
        if x86_64 {
            println!("cargo::rustc-link-arg-bins=-Wl,-e,systoll_start");
        }
    }
}

/// Puts linker scripts into `folder` that replace shared libraries by archives. Returns `None` if a
/// library has no archive.
fn stand_ins(folder: &Path) -> Option<()> {
    // A libpthread.a that is not empty (glibc before 2.34) defines symbols that the C library defines too.
    fs::metadata(archive("pthread")?).is_ok_and(|m| m.len() <= EMPTY_ARCHIVE).then_some(())?;
    // The archives need each other.
    let both = format!("{} {} {}", archive("c")?, archive("gcc")?, archive("gcc_eh")?);
    for library in LIBRARIES {
        let archives = match library {
            "c" | "gcc_s" => both.clone(),
            other => archive(other)?,
        };
        fs::write(folder.join(format!("lib{library}.so")), format!("GROUP ( {archives} )\n")).ok()?;
    }
    Some(())
}

/// Returns the path of a library's archive from the linker's driver; `None` if there is no archive,
/// or no driver that can be asked.
fn archive(library: &str) -> Option<String> {
    let linker = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let asked = Command::new(linker).arg(format!("-print-file-name=lib{library}.a")).output().ok()?;
    let path = String::from_utf8(asked.stdout).ok()?.trim().to_owned();
    // A bare name means that it was not found.
    let found = Path::new(&path).is_absolute() && Path::new(&path).is_file() && !path.contains(char::is_whitespace);
    found.then_some(path)
}
