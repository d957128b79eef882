//! Makes a very large recording: many images of a few programs, each with many contexts, of which
//! some have windows.

use super::{CWD, Call, call, sigmask, stat};
use std::collections::HashMap;
use std::sync::Arc;
use systoll_model::*;

/// Number of calls in a window.
const WINDOW: usize = 32;
/// Number of windows of a sampled context, one in each octave.
const LOOKS: u64 = 8;
/// First octave with a window. A sampled context has 4,095 rounds.
const OCTAVE: u64 = 4;
/// Number of different programs.
const PROGRAMS: u32 = 8;

/// The calls of a program in round `n`.
type Loop = fn(u64) -> Vec<Call>;

/// The loops, each with the cause that must be found; `None` for healthy ones.
pub(crate) const LOOPS: [(Option<&str>, Loop); 12] = [
    (Some("tz-unset"), |i| vec![stat("/etc/localtime", "localtime", 1, i)]),
    (Some("identity-per-op"), |_| vec![call("getpid", "getpid", &[], 17), call("gettid", "gettid", &[], 17)]),
    (Some("sigmask-context"), |_| vec![sigmask("swapcontext", 2, Some(1), Some(1)).toll(600)]),
    (None, |i| {
        let path = format!("/srv/data/{:02}/{i}", i % 64);
        let open = call("openat", "fopen", &[CWD, 1, 0, 0], 3).path(1, &path).toll(900);
        let fstat = call("fstat", "fopen", &[3, 1], 0).output(1, &super::stat_bytes(i, i)).fd("/srv/data/x");
        let read = call("read", "fread", &[3, 1, 4096], 3000).fd("/srv/data/x").toll(500);
        vec![open, fstat, read, call("close", "fclose", &[3], 0)]
    }),
    (None, |i| {
        let wait = call("epoll_wait", "serve", &[5, 1, 64, u64::MAX], 1).toll(400).waited(9_000);
        let read = call("read", "serve", &[7 + i % 9, 1, 16_384], 700).fd("TCP:[127.0.0.1:80]").toll(700);
        vec![wait, read, call("write", "serve", &[7 + i % 9, 1, 2000], 2000).fd("TCP:[127.0.0.1:80]").toll(2_000)]
    }),
    (Some("tiny-io"), |_| vec![call("read", "getbyte", &[3, 1, 1], 1).fd("/srv/in").toll(500)]),
    (Some("heap-trim"), |i| vec![call("brk", "free", &[0x1000 * (1 + i % 2)], 0x1000 * (1 + i as i64 % 2)).toll(800)]),
    (Some("path-canonicalise"), |_| {
        let link = |path: &str| call("readlink", "realpath", &[1, 2, 1023], -22).path(0, path).toll(500);
        vec![link("/srv"), link("/srv/app"), link("/srv/app/conf")]
    }),
    (None, |_| {
        let wait = call("futex", "pthread_cond_wait", &[0x7000, 128, 1], 0).waited(20_000);
        vec![wait, call("futex", "pthread_cond_signal", &[0x7040, 129, 1], 1)]
    }),
    (Some("mmap-churn"), |_| {
        let map = call("mmap", "malloc", &[0, 0x40_0000, 3, 0x22, u64::MAX, 0], 0x7f00_0000_0000).toll(900);
        vec![map, call("munmap", "free", &[0x7f00_0000_0000, 0x40_0000], 0).toll(900)]
    }),
    // No cause matches these calls, so their rows are grouped by the properties that they share.
    (None, |_| vec![call("fstatfs", "free_space", &[3, 1], 0).output(1, &[1; 120]).toll(6_000)]),
    (None, |i| vec![call("madvise", "arena", &[0x1000 * i, 0x1000, 14], 0).toll(400)]),
];

/// Returns a recording with about `rows` rows and `looked_at` calls in windows; half of the contexts have windows.
pub(crate) fn large(rows: usize, looked_at: usize) -> Recording {
    let mut made = Large::default();
    let of_loop: usize = LOOPS.iter().map(|(_, f)| f(0).len()).sum();
    // Each process has some hundred contexts, ten of each loop; there are as many processes as it
    // takes.
    let contexts = 10;
    let processes = rows.div_ceil(of_loop * contexts);
    let groups = processes * contexts * LOOPS.len();
    let windows = looked_at / WINDOW;
    let every = ((groups * LOOKS as usize).div_ceil(windows.max(1)) as u64).max(1);
    let mut group = 0;
    for process in 0..processes as u32 {
        made.process(process);
        for context in 0..contexts {
            for (_, round) in &LOOPS {
                // The choice is drawn by a multiplication, so that no loop is in step with it.
                let drawn = (group as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                made.context(process, context, *round, drawn.is_multiple_of(every));
                group += 1;
            }
        }
    }
    made.finish()
}

#[derive(Default)]
struct Large {
    rec: Recording,
    stacks: HashMap<(String, usize), StackId>,
    now: u64,
}

impl Large {
    fn process(&mut self, id: u32) {
        let exe: Arc<str> = format!("/usr/bin/app{}", id % PROGRAMS).into();
        let process = Process { pid: 100 + id, exe, instances: 1, main_at_ns: Some(1), ..Process::default() };
        self.rec.processes.push(process);
        if self.rec.stacks.is_empty() {
            self.rec.stacks.push(Stack::default());
        }
    }

    fn stack(&mut self, function: &str, context: usize) -> StackId {
        let rec = &mut self.rec;
        *self.stacks.entry((function.to_owned(), context)).or_insert_with(|| {
            let location = Location { function: format!("{function}_{context}").into(), file: None, line: None };
            rec.frames.push(Frame { class: FrameClass::Libc, locations: vec![location], ..Frame::default() });
            rec.stacks.push(Stack { frames: vec![FrameId(rec.frames.len() as u32 - 1)], complete: false });
            StackId(rec.stacks.len() as u32 - 1)
        })
    }

    /// Adds the rows of a loop in a context, and its windows.
    fn context(&mut self, process: u32, context: usize, round: Loop, looked_at: bool) {
        let first = self.rec.rows.len();
        let rounds = if looked_at { (1 << (OCTAVE + LOOKS)) - 1 } else { 40 };
        let calls = round(1);
        for call in &calls {
            let stack = self.stack(call.api, context);
            let counts = Counts {
                calls: rounds,
                toll_ns: Some(call.toll_ns * rounds),
                waited_ns: Some(call.waited_ns * rounds),
                elapsed_ns: (call.toll_ns + call.waited_ns) * rounds,
                ..Counts::default()
            };
            self.rec.rows.push(Row {
                context: stack,
                api: Some(call.api.into()),
                ..Row::new(ProcessId(process), Sysno::from_name(call.name).unwrap(), counts)
            });
        }
        for look in (0..LOOKS).filter(|_| looked_at) {
            let octave = OCTAVE + look;
            let start = (1 << octave) + self.now % 7;
            let each = WINDOW.div_ceil(calls.len()) as u64;
            let of_rounds = (start..start + each).flat_map(|i| {
                round(i).into_iter().enumerate().map(move |(at, call)| (RowId((first + at) as u32), i, call))
            });
            let mut seen = Vec::with_capacity(WINDOW);
            for (row, nth, call) in of_rounds.take(WINDOW) {
                self.now += 1;
                let mut seen_call = super::window_call(&call, self.now);
                (seen_call.row, seen_call.nth) = (row, nth);
                seen.push(seen_call);
            }
            self.rec.windows.push(Window {
                process: ProcessId(process),
                thread: process,
                row: RowId(first as u32),
                octave: octave as u8,
                calls: seen,
            });
        }
    }

    fn finish(mut self) -> Recording {
        let toll: u64 = self.rec.rows.iter().filter_map(|r| r.counts.toll_ns).sum();
        self.rec.header.own_cpu_ns = Some(toll);
        self.rec.header.wall_ns = 2 * toll;
        self.rec.header.command = vec!["./app".into()];
        self.rec.check().unwrap();
        self.rec
    }
}
