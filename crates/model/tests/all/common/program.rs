//! Makes a recording like that of a real program.

use std::sync::Arc;
use systoll_model::*;

fn frame(module: u32, address: u64, class: FrameClass, function: &str, file: Option<(&str, u32)>) -> Frame {
    let place = Location {
        function: Arc::from(function),
        file: file.map(|(f, _)| Arc::from(f)),
        line: file.map(|(_, line)| line),
    };
    Frame { module: Some(ModuleId(module)), address, class, locations: vec![place], callee: None, language: None }
}

/// A pseudo-random sequence that compresses no better than real figures.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// Returns a recording with `rows` rows of stats under `localtime`, and `windows` windows of 32 of
/// their calls each; every call has a path, a struct stat and a stack.
pub(crate) fn recording(rows: u32, windows: u32) -> Recording {
    let mut noise = Noise(7);
    let mut rec = Recording::default();
    rec.header.version = "0.1.0".into();
    rec.header.command = vec!["./app".into(), "two words".into()];
    rec.header.wall_ns = 1_182_000_000;
    rec.prices.crossing_before.min = 97.25;
    rec.prices.crossing_after.min = 98.5;
    rec.processes = vec![Process { pid: 4711, exe: "/usr/bin/app".into(), instances: 1, ..Process::default() }];
    rec.modules = vec![
        Module { path: "/usr/bin/app".into(), build_id: Some("00ff00ff".into()) },
        Module { path: "/lib/libc.so.6".into(), build_id: Some("c0ffee".into()) },
    ];
    rec.frames = vec![
        frame(1, 0xf0_5f4, FrameClass::Libc, "__fstatat64", Some(("fstatat64.c", 166))),
        frame(1, 0xc9_2a8, FrameClass::Libc, "__tz_convert", Some(("tzset.c", 573))),
    ];
    for i in 0..rows {
        let user = rec.frames.len() as u32;
        let function = format!("log_line_{i}");
        rec.frames.push(frame(0, 0x1000 + u64::from(i) * 64, FrameClass::User, &function, Some(("log.c", i + 1))));
        rec.frames.push(frame(0, 0x9_0000 + u64::from(i), FrameClass::User, "main", Some(("main.c", i + 1))));
        rec.stacks.push(Stack { frames: vec![FrameId(0), FrameId(1), FrameId(user)], complete: false });
        rec.stacks.push(Stack { frames: vec![FrameId(user + 1)], complete: false });
        let mut histogram = Histogram::default();
        (0..40).for_each(|_| histogram.add(noise.next() % 100_000));
        rec.rows.push(Row {
            process: ProcessId(0),
            syscall: Sysno(262),
            context: StackId(i * 2),
            outer: StackId(i * 2 + 1),
            api: Some("localtime".into()),
            api_module: Some(ModuleId(1)),
            user: Some(FrameId(user)),
            lines: vec![RowLine { frame: FrameId(user), looks: 3, weight: u64::from(i) }],
            counts: Counts {
                calls: 1000 + u64::from(i),
                errors: [(Errno(2), 3)].into(),
                toll_ns: Some(1_158_000 + noise.next() % 1000),
                elapsed_ns: noise.next(),
                max_ns: noise.next(),
                min_ns: Some(noise.next()),
                histogram,
                startup_calls: 1,
                ..Counts::default()
            },
        });
    }
    rec.windows = (0..windows).map(|i| window(i, rows, &mut noise)).collect();
    rec
}

fn window(index: u32, rows: u32, noise: &mut Noise) -> Window {
    let row = RowId(index % rows.max(1));
    let mut entry_ns = u64::from(index) * 1_000_000;
    let call = |i: u64| {
        entry_ns += 11_000 + noise.next() % 5_000;
        let mut stat = vec![0u8; 144];
        stat[72..80].copy_from_slice(&noise.next().to_le_bytes());
        let path = ArgData { arg: 1, at: Moment::Entry, bytes: b"/etc/localtime".to_vec(), cut: false };
        let out = ArgData { arg: 2, at: Moment::Exit, bytes: stat, cut: false };
        WindowCall {
            row: RowId((row.0 + i as u32 % 3) % rows.max(1)),
            nth: (1 << (index / rows.max(1))) + i,
            args: [-100i64 as u64, 0x7f12_3456_7890, 0x7ffd_1234_5600 + i % 2 * 64, 0, 0x11, 0],
            data: vec![path, out],
            fd: None,
            result: Some(0),
            entry_ns,
            elapsed_ns: 9_000 + noise.next() % 3_000,
            waited_ns: None,
            signals_before: 0,
            faults: None,
            stack: Some(StackId(row.0 * 2)),
            before: systoll_model::Before::Unknown,
            request: None,
        }
    };
    let calls = (0..32).map(call).collect();
    Window { process: ProcessId(0), thread: 0, row, octave: (index / rows.max(1)) as u8, calls }
}
