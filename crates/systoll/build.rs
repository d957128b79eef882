//! Links the part of the compiler's library that unwinds panics into the command, where the compiler
//! has it as an archive. As a shared library it is one more to be mapped and bound at each start, and
//! it asks the processor's model by a dozen `cpuid`, each of which takes microseconds in a virtual machine.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu")
        && let Some(folder) = folder_of("libgcc_eh.a")
    {
        println!("cargo::rustc-link-search=native={folder}");
        println!("cargo::rustc-link-lib=static=gcc_eh");
    }
}

/// Where the linker's driver has a library of its own; `None` where it has none, or is none that can
/// be asked.
fn folder_of(library: &str) -> Option<String> {
    let linker = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let asked = Command::new(linker).arg(format!("-print-file-name={library}")).output().ok()?;
    let path = String::from_utf8(asked.stdout).ok()?;
    let path = Path::new(path.trim());
    // A name alone says that it was not found.
    (path.is_absolute() && path.is_file()).then(|| path.parent()?.to_str().map(str::to_owned))?
}
