//! Names of signals.

/// The name of signal `number` on x86-64 (signal(7)), or `signal N` where it has none.
pub(crate) fn signal_name(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(number).ok().and_then(|n| NAMES.get(n.checked_sub(1)?));
    name.map_or_else(|| format!("signal {number}"), |name| format!("SIG{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        assert_eq!([9, 11, 31].map(signal_name), ["SIGKILL", "SIGSEGV", "SIGSYS"]);
        assert_eq!([0, -1, 34, i32::MIN].map(signal_name)[2], "signal 34");
    }
}
