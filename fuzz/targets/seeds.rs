//! Writes the seeds of each target into corpus/TARGET/, where cargo-fuzz looks.
#![forbid(unsafe_code)]

use std::path::Path;
use systoll_fuzz::{seeds, traces};

fn main() -> std::io::Result<()> {
    let files = ["/bin/true", "/lib64/ld-linux-x86-64.so.2"];
    let files = files.iter().map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    let all = [
        ("recording", seeds::recordings()),
        ("trace", traces::traces()),
        ("cause", seeds::causes()),
        ("ledger", systoll_fuzz::ledgers()),
        ("mcp", systoll_fuzz::clients()),
        ("file", files),
        ("image", seeds::images()),
        ("shared", [seeds::images(), seeds::asking()].concat()),
        ("plan", seeds::programs()),
        ("stored", seeds::kept()),
        ("target", seeds::memories()),
        ("stack", seeds::programs()),
        ("request", systoll_fuzz::requests()),
    ];
    for (target, seeds) in all {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        std::fs::create_dir_all(&dir)?;
        for (n, seed) in seeds.iter().enumerate() {
            std::fs::write(dir.join(n.to_string()), seed)?;
        }
    }
    Ok(())
}
