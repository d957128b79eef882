//! Tests that any state is drawn, whatever recordings hold, whatever is typed and however small the
//! screen is.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use systoll_judge::{Catalogue, Options, judge};
use systoll_model::*;
use systoll_top::{Choice, Event, Judged, Look, State, Tally, draw, height, page_height, text};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z_/.\u{1b}\n\u{202e}日]{0,40}", "[a-z]{0,200}", Just("read".to_owned())]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0u64..1_000_000, Just(0), Just(u64::MAX)]
}

fn frame() -> impl Strategy<Value = Frame> {
    let language = option::of(prop::sample::select(Language::ALL.to_vec()));
    (name(), option::of(name()), option::of(any::<u32>()), language, option::of(0u32..2)).prop_map(
        |(function, file, line, language, module)| Frame {
            module: module.map(ModuleId),
            locations: vec![Location { function: function.into(), file: file.map(Into::into), line }],
            language,
            ..Frame::default()
        },
    )
}

fn row() -> impl Strategy<Value = Row> {
    let counts = (number(), number(), option::of(number()), option::of(number()), number()).prop_map(
        |(calls, failed, toll_ns, waited_ns, max_ns)| Counts {
            calls,
            errors: [(Errno(2), failed)].into(),
            toll_ns,
            waited_ns,
            max_ns,
            ..Counts::default()
        },
    );
    let lines = vec((0u32..4, 1u64..9, number()), 0..3);
    (0u32..3, 0u32..480, 0u32..3, option::of(name()), option::of(0u32..4), lines, counts).prop_map(
        |(process, syscall, stack, api, user, lines, counts)| Row {
            process: ProcessId(process),
            syscall: Sysno(syscall),
            context: StackId(stack),
            outer: StackId(stack),
            api: api.map(Into::into),
            api_module: None,
            user: user.map(FrameId),
            lines: lines
                .into_iter()
                .map(|(frame, looks, weight)| RowLine { frame: FrameId(frame), looks, weight })
                .collect(),
            counts,
        },
    )
}

prop_compose! {
    fn recording()(
        rows in vec(row(), 1..8), frames in vec(frame(), 4), exes in vec(name(), 3), command in vec(name(), 0..3),
        stacks in vec(vec((0u32..4).prop_map(FrameId), 0..5), 3), times in vec(number(), 6),
        problem in name(), calls in vec((any::<u64>(), option::of(any::<i64>()), number()), 1..20),
    ) -> Recording {
        let mut recording = Recording::default();
        recording.header.command = command;
        recording.header.wall_ns = times[0];
        recording.header.user_ns = times[1];
        recording.header.own_cpu_ns = Some(times[2]);
        recording.modules = vec![Module { path: "/lib/a.so".into(), build_id: None }, Module::default()];
        let process = |(pid, exe): (u32, String)| Process {
            pid, exe: exe.into(), instances: times[3].max(1), end_ns: times[4], ..Process::default()
        };
        recording.processes = (0..).zip(exes).map(process).collect();
        recording.frames = frames;
        recording.stacks = stacks.into_iter().map(|frames| Stack { frames, complete: true }).collect();
        recording.problems = vec![Problem::new(ProblemKind::Lost, problem)];
        let call = |(arg, result, elapsed_ns)| WindowCall {
            row: RowId(0), nth: 1, args: [arg; 6], result, elapsed_ns, ..WindowCall::default()
        };
        recording.windows = vec![Window {
            process: ProcessId(0), thread: 0, row: RowId(0), octave: 0, calls: calls.into_iter().map(call).collect(),
        }];
        recording.rows = rows;
        recording
    }
}

fn event() -> impl Strategy<Value = Event> {
    let keys = prop::sample::select("q?hfpm/gstcwnrkj12345x".chars().collect::<Vec<_>>()).prop_map(Event::Char);
    let others = prop::sample::select(vec![
        Event::Enter,
        Event::Escape,
        Event::Backspace,
        Event::Up,
        Event::Down,
        Event::PageUp,
        Event::PageDown,
        Event::Home,
        Event::End,
    ]);
    prop_oneof![
        keys,
        others,
        any::<char>().prop_map(Event::Char),
        (0u16..310, 0u16..110).prop_map(|(x, y)| Event::Click(x, y)),
        any::<i16>().prop_map(Event::Wheel),
    ]
}

/// Returns a text without the sequences of bold, faint and coloured.
fn without_looks(text: &str) -> String {
    ["0", "1", "2", "7", "31", "32", "33", "36"]
        .iter()
        .fold(text.to_owned(), |text, look| text.replace(&format!("\x1b[{look}m"), ""))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_state_is_drawn_at_every_size(
        recordings in vec(recording(), 0..4),
        events in vec(event(), 0..30),
        sizes in vec((1u16..301, 1u16..101), 1..4),
        (has_colour, is_ascii, is_batch) in any::<(bool, bool, bool)>(),
    ) {
        let mut state = State::new(Choice::default(), Look { has_colour, is_ascii, is_batch });
        let sizes = sizes.into_iter().chain([(1, 1), (80, 24)]);
        let mut events = events.into_iter();
        for (recording, (columns, lines)) in recordings.iter().cycle().map(Some).chain([None]).zip(sizes) {
            if let Some(recording) = recording {
                prop_assert_eq!(recording.check(), Ok(()));
                state.push(Tally::of(recording));
                let judgement = judge(recording, &Catalogue::builtin(), &Options::default());
                state.judge(Judged::new(recording.clone(), judgement));
            }
            let area = Rect::new(0, 0, columns, lines);
            for event in events.by_ref().take(8) {
                state.resize(columns, lines);
                state.on(event);
                let mut buffer = Buffer::empty(area);
                let length = draw(&state, area, &mut buffer);
                let is_safe = |symbol: &str| !symbol.chars().any(acts_on_terminals);
                prop_assert!(buffer.content.iter().all(|cell| is_safe(cell.symbol())));
                // The same state gives the same screen.
                let mut again = Buffer::empty(area);
                draw(&state, area, &mut again);
                prop_assert!(buffer == again, "{:?}", state.page);
                state.note_length(length, page_height(lines));
            }
            let text = without_looks(&text(&state, columns, height(&state)));
            prop_assert!(!text.contains('\x1b'));
            prop_assert!(text.lines().all(|line| ratatui::text::Span::raw(line).width() <= columns.into()), "{}", text);
        }
    }
}
