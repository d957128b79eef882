//! Valid inputs to start from: without them, a random change never gets past the first check.

use flate2::read::GzDecoder;
use std::io::Read;
use std::sync::Arc;
use systoll_model::{
    ArgData, Counts, Errno, Exit, Frame, FrameClass, FrameId, Location, LongCall, Module, ModuleId, Moment, Package,
    Problem, ProblemKind, Process, ProcessId, Recording, Row, RowId, Stack, StackId, Sysno, Window, WindowCall,
};

/// Returns two recordings' files without their gzip, the second much smaller.
pub fn recordings() -> Vec<Vec<u8>> {
    let small = Recording { windows: Vec::new(), longest: Vec::new(), ..run() };
    [run(), small].iter().map(unpacked).collect()
}

/// Returns the text of some causes that come with systoll.
pub fn causes() -> Vec<Vec<u8>> {
    let text = [
        include_str!("../../crates/judge/causes/tz-unset.toml"),
        include_str!("../../crates/judge/causes/sigmask-setjmp.toml"),
        include_str!("../../crates/judge/causes/clock-in-kernel.toml"),
        include_str!("../../crates/judge/causes/membarrier-global.toml"),
    ];
    text.iter().map(|t| t.as_bytes().to_vec()).collect()
}

fn unpacked(recording: &Recording) -> Vec<u8> {
    let (mut file, mut bytes) = (Vec::new(), Vec::new());
    recording.write(&mut file).expect("the seed is whole");
    GzDecoder::new(file.as_slice()).read_to_end(&mut bytes).expect("it was just packed");
    bytes
}

/// Returns a recording of a program that calls localtime 4,096 times and reads a missing file.
pub fn run() -> Recording {
    let mut recording = Recording {
        processes: vec![Process {
            pid: 100,
            exe: "/usr/bin/app".into(),
            argv: vec!["app".into(), "-v".into()],
            instances: 1,
            threads: 1,
            main_at_ns: Some(1_000_000),
            exit: Some(Exit::Code(0)),
            ..Process::default()
        }],
        modules: vec![module("/usr/bin/app"), module("/usr/lib/libc.so.6")],
        frames: vec![
            frame("fstatat64", 1, FrameClass::Libc),
            frame("log_line", 0, FrameClass::User),
            frame("main", 0, FrameClass::User),
        ],
        stacks: vec![stack(&[]), stack(&[0, 1]), stack(&[2])],
        rows: vec![row("newfstatat", Some("localtime"), 4096), row("openat", Some("fopen"), 3)],
        problems: vec![Problem::new(ProblemKind::Name, "a file had no names")],
        packages: vec![Package { home: "/usr/lib/app".into(), version: "1.2".into() }],
        ..Recording::default()
    };
    recording.rows[1].counts.errors.insert(Errno(2), 3);
    recording.header.command = vec!["app".into(), "-v".into()];
    recording.header.exit = Some(Exit::Code(0));
    recording.header.own_cpu_ns = Some(9_000_000);
    recording.header.wall_ns = 90_000_000;
    recording.header.observer_wall_ns_per_call = 12_000.0;
    recording.header.toll_estimated = true;
    recording.windows = (0..12).map(window).collect();
    recording.longest = vec![LongCall { row: RowId(1), ns: 5_000_000, at_ns: 1, thread: "app".into(), startup: true }];
    recording
}

fn module(path: &str) -> Module {
    Module { path: path.into(), build_id: Some("0123456789abcdef0123".into()) }
}

fn frame(function: &str, module: u32, class: FrameClass) -> Frame {
    let location = Location { function: function.into(), file: Some("src/app.c".into()), line: Some(7) };
    let locations = vec![location];
    let (module, callee) = (Some(ModuleId(module)), Some("localtime".into()));
    Frame { module, address: 0x1234, class, locations, callee, language: None }
}

fn stack(frames: &[u32]) -> Stack {
    Stack { frames: frames.iter().map(|f| FrameId(*f)).collect(), complete: false }
}

fn row(syscall: &str, api: Option<&str>, calls: u64) -> Row {
    let mut counts = Counts { calls, toll_ns: Some(calls * 1100), waited_ns: Some(0), ..Counts::default() };
    counts.histogram.add_many(14_000, calls);
    counts.elapsed_ns = calls * 14_000;
    Row {
        process: ProcessId(0),
        syscall: Sysno::from_name(syscall).expect("a system call's name"),
        context: StackId(1),
        outer: StackId(2),
        api: api.map(Arc::from),
        api_module: Some(ModuleId(1)),
        user: Some(FrameId(1)),
        lines: Vec::new(),
        counts,
    }
}

fn window(octave: u8) -> Window {
    let calls = (0..32u64).map(|n| stat((1 << octave) + n)).collect();
    Window { process: ProcessId(0), thread: 100, row: RowId(0), octave, calls }
}

fn stat(nth: u64) -> WindowCall {
    let piece = |arg, at, bytes: &[u8]| ArgData { arg, at, bytes: bytes.to_vec(), cut: false };
    WindowCall {
        row: RowId(0),
        nth,
        args: [(-100i64) as u64, 0x7000_0000, 0x7fff_0000, 0, 0, 0],
        data: vec![piece(1, Moment::Entry, b"/etc/localtime"), piece(2, Moment::Exit, &[7; 144])],
        fd: None,
        result: Some(0),
        entry_ns: nth * 20_000,
        elapsed_ns: 14_000,
        waited_ns: Some(0),
        signals_before: 0,
        faults: None,
        stack: Some(StackId(1)),
        before: systoll_model::Before::OtherWay,
        request: None,
    }
}

/// Returns a new image, and one whose words point to each other.
pub fn images() -> Vec<Vec<u8>> {
    use systoll_hooks::assemble::new_image;
    use systoll_hooks::layout::{IMAGE, image};
    let mut fresh = vec![0; crate::IMAGE_BYTES as usize];
    for (at, word) in new_image(1, 0x5305_3053) {
        let at = if at < 0x8000 { Some(at) } else { at.checked_sub(image::SLOTS).map(|at| at + 0xe000) };
        if let Some(place) = at.and_then(|at| fresh.get_mut(at as usize..at as usize + 8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }
    let words = |word: fn(u64) -> u64| (0..crate::IMAGE_BYTES / 8).flat_map(|i| word(i).to_le_bytes()).collect();
    let nodes = words(|i| match i % 8 {
        1 => {
            if i % 24 < 8 {
                0x8000 + i % 4096 / 8 * 0x240
            } else {
                0
            }
        }
        3 | 4 => IMAGE + image::NODES + i.wrapping_mul(2654435761) % 256 * 64,
        _ => i,
    });
    vec![fresh, nodes, words(|_| u64::MAX), words(|i| IMAGE + 8 * i)]
}

/// Returns images whose threads wait in the queue, one for each question.
pub fn asking() -> Vec<Vec<u8>> {
    use systoll_hooks::layout::{image, slot, state};
    let fresh = images().swap_remove(0);
    let asks = |question: u64| {
        let mut bytes = fresh.clone();
        let mut set = |at: u64, word: u64| bytes[at as usize..at as usize + 8].copy_from_slice(&word.to_le_bytes());
        set(image::TICKET, 8);
        for n in 0..8 {
            set(image::RING + 8 * n, 1 << 16 | (n % 2 + 1));
        }
        for slot in [0xe000, 0xe000 + 0xc000] {
            set(slot + slot::STATE, state::WAITING.into());
            set(slot + slot::RESUME, question << 48 | 0x1000);
        }
        bytes
    };
    (0..0x28).map(asks).collect()
}

/// Returns texts, and memory contents whose words point to each other.
pub fn memories() -> Vec<Vec<u8>> {
    let heap = |factor: u64| {
        (0..1024u64).flat_map(move |i| (0x1_0000 + i.wrapping_mul(factor) % 1024 * 8).to_le_bytes()).collect()
    };
    let mut debug: Vec<u8> = heap(7);
    let head = [*b"xdebugpy", (3u64 << 24 | 13 << 16).to_le_bytes(), 0u64.to_le_bytes()].concat();
    debug.splice(0..head.len(), head);
    let texts = [
        &b"55d0c0a00000-55d0c0a26000 r-xp 00002000 fe:01 1234 /usr/bin/a b (deleted)\n7ffc0000-7ffd0000 rw-s 0 0:0 0 [stack]\n"[..],
        b"7f0000001000 40 JS:*render file:///srv/app.js:5:16\n7f0000001080 10 int A.leaf(int)\n0x7f0000002000 20 LA;::leaf\n",
        b"Name:\tx\nNSpid:\t7\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n",
    ];
    texts.iter().map(|t| t.to_vec()).chain([heap(1), heap(2654435761), debug]).collect()
}

/// Returns small programs that every system has.
pub fn programs() -> Vec<Vec<u8>> {
    ["/bin/true", "/lib64/ld-linux-x86-64.so.2"].iter().filter_map(|p| std::fs::read(p).ok()).collect()
}

/// Returns the plans and the code that systoll stores of these programs.
pub fn kept() -> Vec<Vec<u8>> {
    use systoll_hooks::{assemble, plan};
    let plans: Vec<_> = programs().iter().filter_map(|elf| plan::plan(elf).ok()).collect();
    let code = |plan| assemble::assemble(plan, &assemble::Options::default(), 1 << 26).ok();
    plans.iter().map(plan::Plan::to_bytes).chain(plans.iter().filter_map(code).map(|blob| blob.to_bytes())).collect()
}

/// Returns budgets that use every key.
pub fn budgets() -> Vec<Vec<u8>> {
    let texts = [
        "per = \"served {} requests\"\nothers = 0\nfindings = [\"tz-unset\"]\n\n[[limit]]\nsyscall = \"getpid,%file\"\ncalls = 12\n",
        "exact = false\nexit = 1\n[[limit]]\ncaller = \"main\"\nphase = \"main\"\ncalls = \"10..=20\" # mine\n",
        "per = 10\n[[limit]]\nline = \"app.c:7\"\nrate = \"..=2.5\"\n[[limit]]\napi = \"f\"\nlibrary = \"l.so\"\nfailed = \"1..\"\n",
        "[[limit]]\nprogram = \"app\"\nphase = \"start-up\"\ncalls = \"..=50\"\n",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
