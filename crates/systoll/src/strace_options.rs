//! Suggests substitutes for strace's options that users type by habit after `systoll run`.

/// An option of strace that systoll lacks, with its substitute.
struct Habit {
    /// The option's letter and its long names.
    typed: &'static [&'static str],
    /// The suggestion: purpose and command, one sentence a line.
    instead: &'static str,
}

const fn habit(typed: &'static [&'static str], instead: &'static str) -> Habit {
    Habit { typed, instead }
}

const NO_STREAM: &str = "systoll counts calls and keeps no stream of them: strace";

/// Options from the manual of strace 6.13.
const HABITS: &[Habit] = &[
    habit(&["-p", "--attach", "--pid"], "processes that run are watched by another command: systoll attach PID"),
    habit(
        &["-t", "-r", "--absolute-timestamps", "--timestamps", "--relative-timestamps"],
        "systoll keeps no stream of calls with their times: strace -t; the report so far at times: --every 10s",
    ),
    habit(&["-T", "--syscall-times"], "each call that took long, with its time: --longer 1ms"),
    habit(
        &["-C", "--summary"],
        "the table alone: -c; table and report of one run: --save REC, then systoll report [-c] REC",
    ),
    habit(&["-P", "--trace-path"], "calls by what they are about, paths and sockets: --by fd"),
    habit(
        &["-z", "-Z", "--successful-only", "--failed-only"],
        "calls that failed: -c has a column of errors, --json has each row's by errno",
    ),
    habit(
        &[
            "-s",
            "-v",
            "-x",
            "-X",
            "-a",
            "--string-limit",
            "--no-abbrev",
            "--strings-in-hex",
            "--const-print-style",
            "--columns",
        ],
        NO_STREAM,
    ),
    habit(&["--syscall-number"], NO_STREAM),
    habit(&["-i", "--instruction-pointer"], "who makes the calls: --by caller, or -k for whole stacks"),
    habit(&["-A", "--output-append-mode"], "-o replaces its file; to add to one: 2>> FILE"),
    habit(&["-b", "--detach-on"], "systoll goes on watching after an execve: strace -b execve"),
    habit(&["-d", "--debug"], "what can be watched here, and how: systoll doctor"),
    habit(&["-D", "-DD", "-DDD", "--daemonize", "--daemonized"], "systoll remains the program's parent: strace -D"),
    habit(&["-u", "--user"], "systoll runs as the user that it watches for: runuser -u USER -- systoll run -- CMD"),
    habit(&["-I", "--interruptible"], "systoll passes the signals that it gets on to the program: no option is needed"),
    habit(&["-Y", "--decode-pids"], "what each process did: --by process"),
    habit(&["--output-separately"], "what each process did: --by process"),
    habit(&["--seccomp-bpf"], "systoll stops the program at few calls as it is: no option is needed"),
    habit(&["--kill-on-exit"], "systoll ends by the signals that end the program: no option is needed"),
    habit(&["--signal"], "systoll lists no signals: leave it out"),
    habit(&["--status"], "calls that failed: -c has a column of errors, --json has each row's by errno"),
    habit(
        &[
            "--inject",
            "--fault",
            "--secontext",
            "--tips",
            "--kvm",
            "--read",
            "--write",
            "--raw",
            "--verbose",
            "--abbrev",
        ],
        "that is strace's alone: strace",
    ),
];

/// Returns the message for an option of strace that was typed after `command`.
pub(crate) fn instead(command: &str, option: &str) -> Option<String> {
    let name = option.split('=').next().unwrap_or(option);
    let habit = HABITS.iter().find(|habit| habit.typed.contains(&name))?;
    Some(format!("systoll: {command} has no {name}\n         {}\n", habit.instead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_strace_option_has_a_hint() {
        let mut all = crate::cli::command();
        let run = all.find_subcommand_mut("run").unwrap();
        let ours = |name: &str| {
            run.get_arguments().any(|arg| {
                arg.get_long().is_some_and(|long| name == format!("--{long}"))
                    || arg.get_short().is_some_and(|short| name == format!("-{short}"))
            })
        };
        // These are the letters that `strace -h` lists.
        for letter in "abcdefhiknopqrstuvwxyzACDEIOPSTUVXYZ".chars() {
            let name = format!("-{letter}");
            let told = instead("run", &name).is_some() || matches!(letter, 'h' | 'V');
            assert!(ours(&name) || told, "{name}");
        }
        let typed: Vec<&str> = HABITS.iter().flat_map(|habit| habit.typed).copied().collect();
        for name in &typed {
            assert_eq!(typed.iter().filter(|other| *other == name).count(), 1, "{name} twice");
        }
        assert_eq!(
            instead("run", "--attach=1").unwrap(),
            "systoll: run has no --attach\n         \
             processes that run are watched by another command: systoll attach PID\n"
        );
        assert_eq!(instead("run", "--jsno"), None);
    }
}
