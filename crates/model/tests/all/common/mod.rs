//! Helpers that the integration tests share.

pub(crate) mod program;
pub(crate) mod recordings;

use std::process::Command;

/// Prints on stderr why a test did not run. Fails if SYSTOLL_TEST_STRICT is 1.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("SYSTOLL_TEST_STRICT").is_none_or(|v| v != "1"), "skipped: {why}");
    eprintln!("skipped: {why}");
}

/// Returns the standard output of a command that succeeded; `None` if there is no such command.
/// Panics with its standard error if it failed.
pub(crate) fn run(program: &str, args: &[&str]) -> Option<String> {
    let output = match Command::new(program).args(args).output() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        other => other.unwrap_or_else(|e| panic!("{program}: {e}")),
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {stderr}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns a C program that runs `statements` behind a seccomp filter that allows only
/// `exit_group`. strace decodes each call at its entry, and the kernel executes none.
pub(crate) fn behind_a_filter(declarations: &str, statements: &str) -> String {
    let includes = ["stddef.h", "linux/filter.h", "linux/seccomp.h", "sys/prctl.h", "sys/syscall.h", "unistd.h"]
        .map(|h| format!("#include <{h}>\n"));
    let filter = r#"
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38)};
  struct sock_fprog filter = {4, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter)) return 1;
"#;
    format!("{}{declarations}int main(void) {{{filter}{statements}  _exit(0);\n}}\n", includes.concat())
}
