//! Suggests the flags with which a run-time that compiles scripts as it runs names their functions.

use super::screen::Report;
use crate::access::{frame, module, row, stack};
use crate::style::{Line, Role};
use systoll_judge::Finding;
use systoll_model::{Language, Problem};

/// A run-time that names the functions of scripts only if it is started with a flag.
struct RunTime {
    language: Language,
    /// Test for the names of the run-time's files. A program that maps such a file runs it.
    is_file: fn(&str) -> bool,
    /// The command, with the flag.
    how: &'static str,
    /// Text of the problem that recordings without names have.
    problem: &'static str,
}

/// The run-times and their flags, tried with Node 18 to 22 and OpenJDK 17. The file that Java
/// writes at its end (-XX:+DumpPerfMapAtExit) comes too late for watched programs.
const RUN_TIMES: [RunTime; 2] = [
    RunTime {
        language: Language::JavaScript,
        is_file: |file| file == "node" || file == "nodejs" || file.starts_with("libnode.so"),
        how: "functions of JavaScript are named with: node --perf-basic-prof-only-functions \
              --interpreted-frames-native-stack …",
        problem: ": no names of JavaScript's functions: ",
    },
    RunTime {
        language: Language::Java,
        is_file: |file| file == "libjvm.so" || file == "libjava.so",
        how: "methods of Java are named with: java -XX:+PreserveFramePointer …, and while it runs: \
              jcmd PID Compiler.perfmap (OpenJDK 17 and later)",
        problem: ": no names of Java's methods: ",
    },
];

impl Report<'_> {
    /// Returns a line for each run-time that made calls of a finding without a known function.
    pub(super) fn flags(&self) -> Vec<Line> {
        // A recording has this problem if the run-time's frames could not be read.
        let is_needed = |r: &&RunTime| self.rec.problems.iter().any(|problem| problem.text.contains(r.problem));
        let lacks = |r: &&RunTime| is_needed(r) && self.judgement.findings.iter().any(|f| self.lacks_function(f, r));
        RUN_TIMES.iter().filter(lacks).flat_map(|r| self.closing_line("to name", Role::Plain, r.how)).collect()
    }

    fn lacks_function(&self, finding: &Finding, run_time: &RunTime) -> bool {
        let strands = self.judgement.strands(self.rec);
        finding.strands.iter().filter_map(|id| row(strands, *id)).any(|row| {
            let own = |id| stack(strands, id).map_or(&[][..], |stack| &stack.frames).iter().copied();
            let frames = || own(row.context).chain(own(row.outer)).chain(row.user);
            let known = frames().any(|id| frame(self.rec, id).is_some_and(|f| f.language == Some(run_time.language)));
            let runs = frames().any(|id| {
                let path = frame(self.rec, id).and_then(|f| module(self.rec, f.module)).map_or("", |m| &m.path);
                (run_time.is_file)(path.rsplit('/').next().unwrap_or(path))
            });
            runs && !known
        })
    }
}

/// Returns true if [`Report::flags`] covers the problem.
pub(super) fn is_told_by_flags(problem: &Problem) -> bool {
    RUN_TIMES.iter().any(|run_time| problem.text.contains(run_time.problem))
}
