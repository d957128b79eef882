//! The kernel's defences that make a crossing more expensive on this box.
//!
//! Source: Documentation/admin-guide/hw-vuln/ and Documentation/ABI/testing/sysfs-devices-system-cpu
//! of the kernel; the texts are those its `arch/x86/kernel/cpu/bugs.c` writes.

use std::fs;
use std::path::Path;
use systoll_model::Mitigation;

/// The folder in which the kernel lists its defences.
pub(crate) const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";

/// A defence: its file, its name, and texts of the file with their meaning for a crossing, of which
/// the first match counts.
type Rule = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

#[rustfmt::skip]
const RULES: &[Rule] = &[
    // Page tables are switched at every entry and exit.
    ("meltdown", "PTI", &[("PTI", "on"), ("", "off")]),
    // The kernel's indirect branches are protected.
    ("spectre_v2", "branches", &[
        ("Enhanced / Automatic IBRS + Retpolines", "enhanced IBRS and retpolines"), ("Retpolines, IBRS", "IBRS and retpolines"),
        ("Enhanced / Automatic IBRS + LFENCE", "enhanced IBRS and lfence"), ("Enhanced / Automatic IBRS", "enhanced IBRS"),
        ("Enhanced IBRS", "enhanced IBRS"), ("IBRS;", "IBRS at every entry"), ("Mitigation: IBRS", "IBRS at every entry"),
        ("etpoline", "retpoline"), ("LFENCE", "lfence"), ("Not affected", "free"), ("Vulnerable", "unprotected")]),
    ("spectre_v2", "IBPB", &[("IBPB: always-on", "at every switch"), ("IBPB: conditional", "conditional"), ("IBPB: disabled", "off"), ("", "off")]),
    ("spectre_v2", "BHI", &[("BHI: SW loop", "history cleared at every entry"), ("BHI: BHI_DIS_S", "in hardware")]),
    ("retbleed", "retbleed", &[("untrained return thunk", "untrained return thunk"), ("IBPB", "IBPB at every entry"),
        ("Enhanced IBRS", "enhanced IBRS"), ("IBRS", "IBRS at every entry"), ("Stuffing", "return stack stuffed")]),
    ("spec_rstack_overflow", "SRSO", &[("IBPB on VMEXIT", "only at VM exits"), ("IBPB", "IBPB at every entry"), ("Safe RET, no microcode", "safe RET, no microcode"),
        ("afe RET", "safe RET"), ("SMT disabled", "free"), ("Vulnerable", "unprotected")]),
    ("indirect_target_selection", "ITS", &[("Aligned branch/return thunks", "aligned thunks"), ("Retpolines, Stuffing RSB", "return stack stuffed")]),
    // Buffers are cleared at every return to user space.
    ("mds", "MDS", &[("Clear CPU buffers", "buffers cleared at every exit")]),
    ("tsx_async_abort", "TAA", &[("Clear CPU buffers", "buffers cleared at every exit")]),
    ("mmio_stale_data", "MMIO", &[("Clear CPU buffers", "buffers cleared at every exit")]),
    ("reg_file_data_sampling", "RFDS", &[("Clear Register File", "buffers cleared at every exit")]),
    ("tsa", "TSA", &[("Clear CPU buffers", "buffers cleared at every exit")]),
    // The old default slows programs with a seccomp filter in user space.
    ("spec_store_bypass", "SSB", &[("prctl and seccomp", "slows programs with a seccomp filter"), ("seccomp", "slows programs with a seccomp filter")]),
];

/// Returns the defences of [`RULES`] that this box has, or `None` if the kernel does not list them.
pub(crate) fn mitigations(folder: &Path) -> Option<Vec<Mitigation>> {
    folder.is_dir().then(|| {
        let state = |(file, name, texts): &Rule| {
            let told = fs::read_to_string(folder.join(file)).ok()?.trim().to_owned();
            summary(&told, texts).map(|state| Mitigation { name: (*name).into(), state: state.into(), told })
        };
        RULES.iter().filter_map(state).collect()
    })
}

fn summary(told: &str, texts: &[(&str, &'static str)]) -> Option<&'static str> {
    texts.iter().find(|(text, _)| told.contains(text)).map(|(_, state)| *state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states_of(files: &[(&str, &str)]) -> Vec<String> {
        let folder = std::env::temp_dir().join(format!("systoll-mitigations-{}-{}", std::process::id(), files.len()));
        fs::create_dir_all(&folder).unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
        let found = mitigations(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        found.iter().map(|m| format!("{} {}", m.name, m.state)).collect()
    }

    #[test]
    fn an_epyc_guest() {
        let found = states_of(&[
            ("meltdown", "Not affected\n"),
            ("mds", "Not affected\n"),
            ("retbleed", "Not affected\n"),
            ("spec_rstack_overflow", "Vulnerable: Safe RET, no microcode\n"),
            ("spectre_v2", "Mitigation: Retpolines; STIBP: disabled; RSB filling; PBRSB-eIBRS: Not affected\n"),
        ]);
        assert_eq!(found, ["PTI off", "branches retpoline", "IBPB off", "SRSO safe RET, no microcode"]);
    }

    #[test]
    fn a_skylake() {
        let found = states_of(&[
            ("meltdown", "Mitigation: PTI\n"),
            ("mds", "Mitigation: Clear CPU buffers; SMT vulnerable\n"),
            ("retbleed", "Mitigation: IBRS\n"),
            ("spectre_v2", "Mitigation: IBRS; IBPB: conditional; STIBP: conditional; RSB filling; BHI: Not affected\n"),
        ]);
        assert_eq!(
            found,
            [
                "PTI on",
                "branches IBRS at every entry",
                "IBPB conditional",
                "retbleed IBRS at every entry",
                "MDS buffers cleared at every exit",
            ]
        );
    }

    #[test]
    fn a_kernel_that_does_not_tell() {
        assert_eq!(mitigations(Path::new("/nonexistent")), None);
    }
}
