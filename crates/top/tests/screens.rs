//! Tests of the screens as users see them.

use insta::assert_snapshot;
use std::sync::Arc;
use systoll_judge::{Catalogue, Options, judge};
use systoll_model::*;
use systoll_top::{Choice, Event, GroupBy, Judged, Look, State, Tally, text};

const SECOND: u64 = 1_000_000_000;

/// Returns a recording of a server after some seconds: it asks for its process id, reads and waits.
fn server(seconds: u64) -> Recording {
    let mut recording = Recording::default();
    let header = &mut recording.header;
    header.command = ["app", "--port", "8080"].map(str::to_owned).to_vec();
    (header.wall_ns, header.user_ns, header.sys_ns) = (seconds * SECOND, seconds * SECOND / 10, seconds * SECOND / 4);
    header.own_cpu_ns = Some(seconds * SECOND * 35 / 100);
    recording.modules.push(Module { path: "/usr/bin/app".into(), build_id: None });
    let process = |pid, exe: &str| Process {
        pid,
        exe: exe.into(),
        argv: vec![],
        instances: 1,
        main_at_ns: Some(1),
        ..Process::default()
    };
    recording.processes = vec![process(4711, "/usr/bin/app"), process(4712, "/usr/bin/app")];
    for (function, file, line) in
        [("serve", "server.c", 140), ("log_line", "log.c", 7), ("loop", "server.c", 61), ("main", "server.c", 200)]
    {
        let location = Location { function: function.into(), file: Some(Arc::from(file)), line: Some(line) };
        recording.frames.push(Frame { module: Some(ModuleId(0)), locations: vec![location], ..Frame::default() });
        let frames = vec![FrameId(recording.frames.len() as u32 - 1)];
        recording.stacks.push(Stack { frames, complete: true });
    }
    let mut row = |process, call: &str, place, calls, toll_ns, waited_ns, failed| {
        let counts = Counts {
            calls: seconds * calls,
            toll_ns: Some(seconds * toll_ns),
            waited_ns: Some(seconds * waited_ns),
            errors: (failed > 0).then_some((Errno(11), seconds * failed)).into_iter().collect(),
            ..Counts::default()
        };
        recording.rows.push(Row {
            context: StackId(place),
            outer: StackId(3),
            api: Some(call.into()),
            user: Some(FrameId(place)),
            ..Row::new(ProcessId(process), Sysno::from_name(call).unwrap(), counts)
        });
    };
    row(0, "read", 0, 46_000, 61_000_000, 0, 400);
    row(0, "getpid", 1, 210_000, 31_500_000, 0, 0);
    row(1, "epoll_wait", 2, 900, 2_000_000, 820_000_000, 0);
    let asked = |nth: u64| WindowCall {
        row: RowId(1),
        nth,
        result: Some(4711),
        entry_ns: nth * 4_000,
        elapsed_ns: 150,
        ..WindowCall::default()
    };
    let window = |octave: u8| Window {
        process: ProcessId(0),
        thread: 0,
        row: RowId(1),
        octave,
        calls: (0..16).map(|n| asked((1 << octave) + n)).collect(),
    };
    recording.windows = (4..20).map(window).collect();
    recording
}

fn state(look: Look) -> State {
    let mut state = State::new(Choice::default(), look);
    for seconds in [1, 2, 3, 5] {
        let recording = server(seconds);
        state.push(Tally::of(&recording));
        let judgement = judge(&recording, &Catalogue::builtin(), &Options::default());
        state.judge(Judged::new(recording, judgement));
    }
    state
}

/// Presses keys that do not leave.
fn press(state: &mut State, keys: impl IntoIterator<Item = Event>) {
    for key in keys {
        assert!(!state.on(key), "{key:?}");
    }
}

#[test]
fn the_table_at_80_columns() {
    assert_snapshot!(text(&state(Look::default()), 80, 20), @r"
    systoll  app --port 8080                           2 processes  watched 5.00 s
    256,900 calls/s take 9.4 % of a CPU, of 35.0 % in all   waited 82.0 %
    toll, the last 5.00 s, up to 9.4 % of a CPU
                                                                               ████
                                                                               ████
      %CPU  calls/s    each  %wait  work wait  call < function < caller
       6.1   46,000 1.33 µs         ████       read < serve server.c:140
       3.1  210,000  150 ns         ██▏        getpid < log_line log.c:7
       0.2      900 2.22 µs   82.0  ▏    ░░░░  epoll_wait < loop server.c:61










    q leave ? help / filter g by row s sort toll p pause Enter more f findings
    ");
}

#[test]
fn colours_end_with_their_line_and_change_no_letter() {
    let plain = text(&state(Look::default()), 80, 20);
    let coloured = text(&state(Look { has_colour: true, ..Look::default() }), 80, 20);
    let sequence = |part: &str| part.split_once('m').map_or(String::new(), |(_, rest)| rest.to_owned());
    let mut stripped = String::new();
    for line in coloured.lines() {
        let mut parts = line.split('\u{1b}');
        stripped += parts.next().unwrap_or_default();
        stripped += &parts.clone().map(sequence).collect::<String>();
        stripped += "\n";
        assert!(parts.next_back().is_none_or(|last| last.starts_with("[0m")), "{line:?}");
    }
    assert_eq!(stripped, plain);
    assert!(coloured.contains("\u{1b}[36m") && coloured.contains("\u{1b}[1m"), "{coloured:?}");
}

#[test]
fn the_table_at_120_columns() {
    assert_snapshot!(text(&state(Look::default()), 120, 20), @r"
    systoll  app --port 8080                                                                   2 processes  watched 5.00 s
    256,900 calls/s take 9.4 % of a CPU, of 35.0 % in all   waited 82.0 %
    toll, the last 5.00 s, up to 9.4 % of a CPU
                                                                                                                       ████
                                                                                                                       ████
      %CPU  calls/s    each  errors/s  %wait  work      wait       call < function < caller
       6.1   46,000 1.33 µs       400         █████████            read < serve server.c:140
       3.1  210,000  150 ns                   ████▋                getpid < log_line log.c:7
       0.2      900 2.22 µs             82.0  ▎         ░░░░░░░░░  epoll_wait < loop server.c:61










    q leave  ? help  / filter  g by row  s sort toll  p pause  Enter more  f findings
    ");
}

#[test]
fn a_text_for_scripts_has_no_keys_and_no_graph() {
    let state = state(Look { is_batch: true, ..Look::default() });
    assert_snapshot!(text(&state, 80, systoll_top::height(&state)), @r"
    systoll  app --port 8080                           2 processes  watched 5.00 s
    256,900 calls/s take 9.4 % of a CPU, of 35.0 % in all   waited 82.0 %
      %CPU  calls/s    each  %wait  work wait  call < function < caller
       6.1   46,000 1.33 µs         ████       read < serve server.c:140
       3.1  210,000  150 ns         ██▏        getpid < log_line log.c:7
       0.2      900 2.22 µs   82.0  ▏    ░░░░  epoll_wait < loop server.c:61
    ");
}

#[test]
fn a_line_closely_in_ascii() {
    let mut state = state(Look { is_ascii: true, ..Look::default() });
    state.resize(80, 40);
    press(&mut state, [Event::Down, Event::Enter]);
    let text = text(&state, 80, 40);
    assert!(text.is_ascii(), "{text}");
    assert_snapshot!(text, @r"
    systoll  app --port 8080                           2 processes  watched 5.00 s
    256,900 calls/s take 9.4 % of a CPU, of 35.0 % in all   waited 82.0 %

    getpid < log_line log.c:7
    now     210,000 calls/s, 3.1 % of a CPU, 150 ns each, waited 0 %
    in all  1,050,000 calls, 0.158 s, 150 ns each, waited 0 ns
    ####

    getpid   1,050,000 calls, called by
        getpid
        log_line  app log.c:7
        main  app server.c:200

    what a thread did, one call after the other
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711
       150 ns  getpid() = 4711









    q leave ? help Esc back p pause PgDn on
    ");
}

#[test]
fn keys_group_sort_filter_and_leave() {
    let mut state = state(Look::default());
    state.resize(80, 24);
    let names = |state: &State| state.lines().iter().map(|line| line.group.names().join(" ")).collect::<Vec<_>>();
    assert_eq!(names(&state), ["read serve server.c:140", "getpid log_line log.c:7", "epoll_wait loop server.c:61"]);
    assert!(!state.on(Event::Char('c')));
    assert_eq!(names(&state)[0], "getpid log_line log.c:7", "most calls first");
    state.on(Event::Char('r'));
    assert_eq!(names(&state)[0], "epoll_wait loop server.c:61");
    press(&mut state, "r5".chars().map(Event::Char));
    assert_eq!((state.choice.group, names(&state)), (GroupBy::Process, vec!["app 4711".into(), "app 4712".into()]));
    press(&mut state, "1/SERVER.C".chars().map(Event::Char));
    assert_eq!(names(&state).len(), 2, "q would be typed: {:?}", state.choice);
    state.on(Event::Enter);
    state.on(Event::Escape);
    assert_eq!(names(&state).len(), 3);
    assert!(state.on(Event::Char('q')));
}

#[test]
fn the_mouse_selects_and_sorts() {
    let mut state = state(Look::default());
    state.resize(80, 24);
    // The first two lines are the head, the next three the graph; then come the headings.
    state.on(Event::Click(12, 5));
    assert_eq!(state.lines()[0].group.names()[0], "getpid");
    state.on(Event::Click(40, 7));
    assert_eq!(state.selection(&state.lines()), 1);
    state.on(Event::Click(40, 7));
    assert!(matches!(state.page, systoll_top::Page::Detail(_)));
}

#[test]
fn what_is_held_does_not_change() {
    let mut state = state(Look::default());
    state.on(Event::Char('p'));
    let held = state.lines();
    state.push(Tally::of(&server(9)));
    assert_eq!(state.lines(), held);
    state.on(Event::Char('p'));
    assert_ne!(state.lines(), held);
}

#[test]
fn calls_of_several_lines_of_a_script_are_shared_out() {
    let mut recording = server(1);
    recording.frames[2].language = Some(Language::Python);
    recording.frames[0].language = Some(Language::Python);
    let line = |frame, weight| RowLine { frame: FrameId(frame), looks: 3, weight };
    recording.rows[2].lines = vec![line(2, 30), line(0, 10)];
    let mut state = State::new(Choice::default(), Look::default());
    state.push(Tally::of(&recording));
    let lines = state.lines();
    let of = |name: &str| lines.iter().find(|line| line.group.names().join(" ") == name).unwrap();
    let more = of("epoll_wait server.c:61 in loop");
    assert_eq!((more.now.calls, more.is_sampled), (675, true));
    assert_eq!(of("epoll_wait server.c:140 in serve").now.calls, 225);
}
