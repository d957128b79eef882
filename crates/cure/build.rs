//! Builds the shims: small libraries that a program loads before its C library. systoll's own file
//! contains them; one is written out when it is used.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shim whose constructor runs before those of all other libraries.
const FIRST: &str = "membarrier";

/// Each shim and its sources under `shim/`.
const SHIMS: [(&str, &[&str]); 7] = [
    ("clock", &["clock.S"]),
    ("context", &["context.S", "make.c"]),
    ("membarrier", &["membarrier.S"]),
    ("processors", &["processors.c"]),
    ("random", &["random.c"]),
    ("setjmp", &["setjmp.S"]),
    ("sleeps", &["sleeps.c"]),
];

/// Flags of the compiler. No library is needed: one build serves glibc and musl of any version.
/// Vector registers are not used, since a caller's arguments may be in them. One segment of code
/// and one of data, since every program of a tree maps it.
const FLAGS: [&str; 14] = [
    "-shared",
    "-nostdlib",
    "-fPIC",
    "-O2",
    "-w",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-lto",
    "-fcf-protection=full",
    "-mgeneral-regs-only",
    "-Wl,-z,now,-z,relro,-z,noexecstack,-z,noseparate-code",
    "-Wl,--hash-style=gnu",
    "-Wl,--build-id=sha1",
    "-Wl,-s",
];

fn main() {
    let var = |name: &str| std::env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let sources = Path::new(&var("CARGO_MANIFEST_DIR")).join("shim");
    let out = PathBuf::from(var("OUT_DIR"));
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = compiler(&var("TARGET").to_string_lossy());
    let mut list = String::from("&[\n");
    // The shims' assembly is x86-64's: elsewhere there are none, and what they would cure is only reported.
    let here = var("CARGO_CFG_TARGET_ARCH") == "x86_64";
    for (name, files) in SHIMS.into_iter().filter(|_| here) {
        let built = out.join(format!("libsystoll-{name}.so"));
        compile(&compiler, name, &sources, files, &built);
        writeln!(list, "    Shim {{ name: {name:?}, bytes: include_bytes!({:?}) }},", built.display().to_string())
            .expect("a String grows");
    }
    list.push_str("]\n");
    std::fs::write(out.join("shims.rs"), list).expect("OUT_DIR is writable");
}

/// Returns the C compiler: the environment's choice, read as by other build scripts, else the first
/// of the usual names that can be started. A Rust program's linker is one of them.
fn compiler(target: &str) -> Vec<OsString> {
    for name in [format!("CC_{target}"), format!("CC_{}", target.replace('-', "_")), "CC".to_owned()] {
        println!("cargo::rerun-if-env-changed={name}");
        let named = std::env::var(&name).unwrap_or_default();
        let words: Vec<_> = named.split_whitespace().map(OsString::from).collect();
        if !words.is_empty() {
            return words;
        }
    }
    let usual = ["cc", "gcc", "clang"];
    let starts = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    match usual.iter().find(|name| starts(name)) {
        Some(name) => vec![name.into()],
        None => panic!("a C compiler is needed: none of {} can be started; CC may name another", usual.join(", ")),
    }
}

fn compile(compiler: &[OsString], name: &str, sources: &Path, files: &[&str], built: &Path) {
    let (program, words) = compiler.split_first().expect("a compiler has a name");
    let out = Command::new(program)
        .args(words)
        .args(FLAGS)
        .arg(format!("-Wl,-soname,libsystoll-{name}.so"))
        .args((name == FIRST).then_some("-Wl,-z,initfirst"))
        .arg("-o")
        .arg(built)
        .args(files)
        .current_dir(sources)
        .output()
        .unwrap_or_else(|e| panic!("can't run {}: {e}", program.display()));
    assert!(
        out.status.success(),
        "{} can't build the shim {name}:\n{}",
        program.display(),
        String::from_utf8_lossy(&out.stderr)
    );
}
