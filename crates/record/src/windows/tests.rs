use super::*;
use systoll_model::Sysno;

fn call(row: u32, nth: u64) -> RawCall {
    RawCall {
        row,
        nth,
        args: [0; 6],
        data: Vec::new(),
        fd: None,
        result: Some(0),
        entry_ns: nth,
        elapsed_ns: 1,
        waited_ns: None,
        signals_before: 0,
        faults: None,
        stack: None,
        stands_for: 0,
        asked: None,
        request: None,
        begins_request: false,
    }
}

#[test]
fn every_octave_gets_its_windows_and_the_first_and_newest_are_kept() {
    let mut table = Table::default();
    let (row, _) = table.row(ImageId::at(0), Sysno(39), &[]);
    let mut windows = Windows::new(WindowPolicy::default(), 1);
    for nth in 1..=100_000 {
        if windows.opens(&mut table, row, nth, 0) {
            let octave = nth.ilog2() as u8;
            windows.keep(
                &mut table,
                RawWindow {
                    image: ImageId::FIRST,
                    process: 0,
                    thread: 0,
                    row,
                    octave,
                    tells_requests: false,
                    calls: vec![call(row, nth)],
                },
            );
        }
    }
    // There are 17 octaves, with two windows each from the sixth on.
    assert!(windows.opened >= 17 && windows.opened <= 5 + 2 * 12, "{}", windows.opened);
    let kept: Vec<u8> = windows.all().iter().map(|w| w.octave).collect();
    assert_eq!(kept.len(), 8);
    assert_eq!(kept[0], 0);
    assert!(kept.ends_with(&[16, 16]) || kept.ends_with(&[15, 16]), "{kept:?}");
    let mut octaves = kept.clone();
    octaves.dedup();
    assert!(octaves.len() >= 6, "{kept:?}");
}

#[test]
fn threads_of_a_steady_program_that_ask_too_often_are_sampled_in_fewer_octaves() {
    let mut windows = Windows::new(WindowPolicy::default(), 1);
    let next = |windows: &mut Windows, nth: u64| windows.place_after(nth).ilog2();
    windows.note_answered(Duration::ZERO);
    assert_eq!(next(&mut windows, 1 << 10), 10, "not yet steady");
    windows.be_steady();
    assert_eq!(next(&mut windows, 1 << 10), 10, "no question so far");
    windows.note_answered(Duration::ZERO);
    windows.be_steady();
    assert_eq!([1 << 9, 1 << 10].map(|nth| next(&mut windows, nth)), [9, 10 + 1 + LEFT_OUT]);
    assert_eq!(windows.place_after(u64::MAX), u64::MAX);
    windows.note_calls_between(CALLS_PER_QUESTION);
    assert_eq!(next(&mut windows, 1 << 10), 10);
}

#[test]
fn a_place_is_drawn_in_each_part_of_each_octave() {
    let mut windows = Windows::new(WindowPolicy::default(), 7);
    for _ in 0..100 {
        let mut places: Vec<u64> =
            std::iter::successors(Some(1), |nth| Some(windows.place_after(*nth))).take(250).collect();
        assert_eq!(places[..2], [1, 2]);
        places.dedup();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(places.last(), Some(&u64::MAX));
        for octave in 0..63 {
            let there: Vec<u64> = places.iter().copied().filter(|place| place.ilog2() == octave).collect();
            let parts: Vec<u64> = there.iter().map(|nth| part_of(*nth, parts_of(octave))).collect();
            assert_eq!(parts, (0..parts_of(octave)).collect::<Vec<_>>(), "octave {octave} of {places:?}");
            let for_windows = there.iter().filter(|nth| Windows::is_for_window(**nth)).count();
            assert_eq!(for_windows, if octave >= TWO_FROM { 2 } else { 1 });
        }
    }
}

#[test]
fn a_spent_budget_refuses() {
    let mut table = Table::default();
    let (row, _) = table.row(ImageId::at(0), Sysno(39), &[]);
    let mut windows = Windows::new(WindowPolicy::default(), 1);
    windows.spend(20, Duration::from_millis(21));
    assert!(!windows.opens(&mut table, row, 1, 0));
    assert_eq!((windows.opened, windows.refused), (0, 1));
    assert!(windows.opens(&mut table, row, 2, 1_000_000_000) || windows.opens(&mut table, row, 3, 1_000_000_000));
}

#[test]
fn an_interrupted_window_is_not_charged_for_other_work() {
    let mut windows = Windows::new(WindowPolicy::default(), 1);
    let work = || {
        let begun = own_cpu();
        while own_cpu() - begun < Duration::from_millis(30) {}
    };
    work();
    windows.note_answered(Duration::from_millis(30));
    windows.spend_at_most(20, Duration::from_millis(40));
    assert!(windows.has_room(0), "{:?}", windows.spent);
    for _ in 0..SHORT_QUESTIONS {
        windows.note_answered(Duration::from_micros(1));
    }
    work();
    windows.spend_at_most(20, Duration::from_millis(40));
    assert!(!windows.has_room(0), "{:?}", windows.spent);
}

#[test]
fn a_row_of_many_calls_gets_some_windows_over_budget() {
    let mut table = Table::default();
    let (row, _) = table.row(ImageId::at(0), Sysno(39), &[]);
    let mut windows = Windows::new(WindowPolicy::default(), 1);
    windows.spend(0, Duration::from_secs(10));
    let opened: Vec<u64> = (1..=1_000_000).filter(|nth| windows.opens(&mut table, row, *nth, 0)).collect();
    // There are twelve octaves with two places in each.
    assert!((18..=24).contains(&opened.len()), "{opened:?}");
    assert!(opened.iter().all(|nth| *nth >= 1 << IN_ANY_CASE.0), "{opened:?}");
    let other_rows = (1..50).map(|image| table.row(ImageId::at(image), Sysno(39), &[]).0).collect::<Vec<_>>();
    let mut also = |row: &u32| (1..2_048).any(|nth| windows.opens(&mut table, *row, nth, 0));
    assert_eq!(other_rows.iter().copied().filter(|row| also(row)).count(), 6, "two are left of octaves 8, 9 and 10");
    let none = WindowPolicy { allowance: Duration::ZERO, share: 0.0, ..WindowPolicy::default() };
    let mut windows = Windows::new(none, 1);
    windows.spend(0, Duration::from_nanos(1));
    let (row, _) = table.row(ImageId::at(1), Sysno(39), &[]);
    assert!((1..=10_000).all(|nth| !windows.opens(&mut table, row, nth, 0)));
}

#[test]
fn many_small_rows_leave_enough_for_a_large_one() {
    let mut table = Table::default();
    let mut windows = Windows::new(WindowPolicy::default(), 1);
    for image in 0..1_000 {
        let (row, _) = table.row(ImageId::at(image), Sysno(39), &[]);
        for nth in 1..=20u64 {
            if windows.opens(&mut table, row, nth, 0) {
                windows.spend(nth.ilog2() as u8, Duration::from_micros(400));
            }
        }
    }
    let small = windows.opened;
    assert!((20..30).contains(&small) && windows.refused > 0, "{small}");
    let (row, _) = table.row(ImageId::at(1_000), Sysno(4), &[]);
    let opened = (1..=20_000u64).filter(|nth| {
        let opens = windows.opens(&mut table, row, *nth, 0);
        if opens {
            windows.spend(nth.ilog2() as u8, Duration::from_micros(400));
        }
        opens
    });
    assert!(opened.filter(|nth| *nth > 1_000).count() >= 4);
}

#[test]
fn the_kept_are_bounded_over_many_rows() {
    let mut table = Table::default();
    let mut windows = Windows::new(WindowPolicy { kept: 100, ..WindowPolicy::default() }, 7);
    for n in 0..60 {
        let (row, _) = table.row(ImageId::at(n), Sysno(39), &[]);
        for nth in [1, 2, 4] {
            let w = RawWindow {
                image: ImageId::at(n),
                process: n as u32,
                thread: 0,
                row,
                octave: 0,
                tells_requests: false,
                calls: vec![call(row, nth)],
            };
            windows.keep(&mut table, w);
        }
    }
    assert_eq!(windows.all().len(), 100);
    let listed: usize = table.rows.iter().map(|r| r.windows.len()).sum();
    assert_eq!(listed, 100);
}
