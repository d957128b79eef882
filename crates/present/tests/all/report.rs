//! Tests the screens of `systoll run`, as a reader sees them.

use crate::common::{Builder, counts, finding, report, stories};
use insta::assert_snapshot;
use systoll_judge::{Judgement, Kind, Unjudged, Untold};
use systoll_model::{FrameClass, Problem, ProblemKind, Process, ProcessId, Recording, RowId, RowLine};
use systoll_present::{Narrowing, ReportOptions, Style};

fn screen(story: (Recording, Judgement), width: usize) -> String {
    report(&story.0, &story.1, &ReportOptions::default(), &Style { color: false, width, whole_names: false })
}

fn screen_with(story: (Recording, Judgement), options: ReportOptions) -> String {
    report(&story.0, &story.1, &options, &Style { color: false, width: 100, whole_names: false })
}

#[test]
fn ruby_story() {
    assert_snapshot!(screen(stories::ruby(), 120), @r#"
    systoll  ruby test.rb    exit 0    6.15 s    6.12 s CPU
             1 finding: 32 % of its CPU time goes to needless system calls

      1  rt_sigprocmask   20,033,022 calls   1.95 s   32 % of CPU                                            sigmask-context
         getcontext  <  rb_yield_0 eval.c:5081  <  rb_yield eval.c:5189  <  int_dotimes numeric.c:2964
         why    glibc's getcontext asks the kernel for the signal mask each time; in 24 of 24 windows it had not changed
         fix    save frames with _setjmp/_longjmp (Ruby 1.8: configure without --enable-pthread)
                gives up: a context no longer carries its signal mask
         or     preload a getcontext that leaves the mask alone
         try    systoll prove --cure sigmask-context -- ruby test.rb                             the calls alone take 1.95 s

      20,033,214 system calls, counted exactly    --all: everything, and the figures of this box
    "#);
}

#[test]
fn ruby_story_in_a_narrow_terminal() {
    assert_snapshot!(screen(stories::ruby(), 60), @r#"
    systoll  ruby test.rb    exit 0    6.15 s    6.12 s CPU
             1 finding: 32 % of its CPU time goes to needless
             system calls

      1  rt_sigprocmask   20,033,022 calls   1.95 s
         32 % of CPU                             sigmask-context
         getcontext  <  rb_yield_0 eval.c:5081
           <  rb_yield eval.c:5189
           <  int_dotimes numeric.c:2964
         why    glibc's getcontext asks the kernel for the
                signal mask each time; in 24 of 24 windows it
                had not changed
         fix    save frames with _setjmp/_longjmp (Ruby 1.8:
                configure without --enable-pthread)
                gives up: a context no longer carries its signal
                mask
         or     preload a getcontext that leaves the mask alone
         try    systoll prove --cure sigmask-context -- ruby \
                test.rb              the calls alone take 1.95 s

      20,033,214 system calls, counted exactly
      --all: everything, and the figures of this box
    "#);
}

#[test]
fn ruby_story_in_colour() {
    let (rec, judgement) = stories::ruby();
    let text =
        report(&rec, &judgement, &ReportOptions::default(), &Style { color: true, width: 120, whole_names: false });
    assert_snapshot!(text.replace('\u{1b}', "^"), @r#"
    ^[1msystoll^[0m  ^[1mruby test.rb^[0m    exit 0    6.15 s    6.12 s CPU
             ^[1m^[31m1 finding^[0m: 32 % of its CPU time goes to needless system calls

    ^[1m  1  ^[0m^[36mrt_sigprocmask^[0m   20,033,022 calls   ^[1m^[31m1.95 s^[0m   ^[1m^[31m32 % of CPU^[0m                                            ^[1msigmask-context^[0m
         ^[36mgetcontext^[0m^[2m  <  ^[0mrb_yield_0^[2m eval.c:5081  <  ^[0mrb_yield^[2m eval.c:5189  <  ^[0mint_dotimes^[2m numeric.c:2964^[0m
         ^[2mwhy^[0m    glibc's getcontext asks the kernel for the signal mask each time; in 24 of 24 windows it had not changed
         ^[2mfix^[0m    ^[32msave frames with _setjmp/_longjmp (Ruby 1.8: configure without --enable-pthread)^[0m
                gives up: a context no longer carries its signal mask
         ^[2mor^[0m     ^[32mpreload a getcontext that leaves the mask alone^[0m
         ^[2mtry^[0m    ^[32msystoll prove --cure sigmask-context -- ruby test.rb^[0m                             ^[2mthe calls alone take 1.95 s^[0m

      20,033,214 system calls, counted exactly    ^[2m--all: everything, and the figures of this box^[0m
    "#);
}

#[test]
fn lttng_story() {
    assert_snapshot!(screen(stories::lttng(), 110), @r#"
    systoll  ./app    exit 0    0.241 s    4 ms CPU
             1 finding: 0.166 s, 69 % of the run, is waited for nothing before main begins

      1  membarrier   14 calls   waited 0.166 s   69 % of wall, before main                      membarrier-global
         synchronize_rcu_bp  <  lttng_probe_register
           <  __lttng_events_init__lttng_ust_lib liblttng-ust.so.0, constructor
         why    MEMBARRIER_CMD_GLOBAL waits until every CPU has been through the scheduler
         fix    liburcu 0.11 or newer (PRIVATE_EXPEDITED, Linux 4.14)
         more   systoll explain membarrier-global

      longest     membarrier   16.1 ms   at +5 ms    app 4711   synchronize_rcu_bp liblttng-ust.so.0, constructor
                  membarrier   12.4 ms   at +23 ms   app 4711   synchronize_rcu_bp liblttng-ust.so.0, constructor
                  recvmsg       2.4 ms   at +2 ms    app 4711
                    recvmsg  <  lttng_probe_register liblttng-ust.so.0, before main

      4,333 system calls, counted exactly    --all: everything, and the figures of this box
    "#);
}

#[test]
fn localtime_story_by_ptrace() {
    assert_snapshot!(screen(stories::localtime(), 110), @r#"
    systoll  ./app --days 'two words'    exit 0    14.2 s watched    about 1.18 s CPU
             1 finding: 94 % of its CPU time goes to needless system calls

      1  newfstatat /etc/localtime   999,999 calls   about 1.11 s   94 % of CPU                           tz-unset
         localtime  <  stamp log.c:12  <  main app.c:30
         also   mktime < rotate log.c:80, 100,000 calls
         why    localtime looks at /etc/localtime on each call while TZ is unset; in 38 of 38 windows the answer
                was the same
         fix    export TZ=:/etc/localtime
                gives up: a changed /etc/localtime is seen only after a restart
         or     localtime_r, which does not look
         try    systoll prove --cure tz-unset -- ./app --days 'two words'              the calls alone take 1.11 s

      problem     no source lines for libfoo.so.1: install its debug file

      1,004,119 system calls, counted exactly    watched by ptrace, which is slow: times are estimates
      --all: everything, and the figures of this box
    "#);
}

#[test]
fn a_healthy_program_gets_two_lines() {
    assert_eq!(screen(stories::healthy(), 100).lines().count(), 2);
    assert_snapshot!(screen(stories::healthy(), 100), @r#"
    systoll  wc -l /usr/share/dict/words    exit 0    3 ms watched    about 2 ms CPU
             nothing found worth your time: 93 system calls, exact, about 87 µs, 4.3 % of CPU
    "#);
}

#[test]
fn strangers_text_is_escaped_and_problems_are_listed() {
    assert_snapshot!(screen(stories::troubled(), 100), @r#"
    systoll  $'./x\033[31m' $'a\nb'    killed by SIGSEGV    0.500 s    CPU time unknown
             1 finding: needless system calls; what they cost is not known

      1  getpid \x1b[5mblink   1,000 calls   at a price unknown                                   repeat
         get\x9bpid  <  evil\u{202e}\x1b[2J x\r.c:1
         why    line one line two \x1b[0m
         try    systoll run -- $'a\033b'

      problems    1,200 calls were made by threads that started before bpf was attached
                  /usr/bin/sudo is set-uid: it ran unwatched
                  \x1b[1mno file for /tmp/gone.so

      1,000 system calls, not counted exactly: 1,200 calls lost
      entering the kernel cost 97 ns before the run, 145 ns after: this machine is busy
      --all: everything, and the figures of this box
    "#);
}

#[test]
fn an_empty_recording() {
    assert_snapshot!(screen(stories::empty(), 100), @r#"
    systoll  still running    0 ns watched    CPU time unknown
             no system call was seen
    "#);
}

#[test]
fn an_empty_selection_names_the_calls_that_were_made() {
    let only = Narrowing { asked: "open".into(), made_as: Vec::new(), others: 148 };
    let text = screen_with(stories::empty(), ReportOptions { only: Some(only), ..ReportOptions::default() });
    assert!(text.contains("\n         none of open; 148 other system calls\n"), "{text}");
    let made_as = vec![systoll_model::Sysno::from_name("openat").unwrap()];
    let only = Narrowing { asked: "open".into(), made_as, others: 3 };
    let text = screen_with(stories::localtime(), ReportOptions { only: Some(only), ..ReportOptions::default() });
    assert!(text.contains("only open, made as openat"), "{text}");
}

#[test]
fn whole_stacks_and_all_cures() {
    let options = ReportOptions { stacks: true, all: true, ..ReportOptions::default() };
    assert_snapshot!(screen_with(stories::localtime(), options), @r#"
    systoll  ./app --days 'two words'    exit 0    14.2 s watched    about 1.18 s CPU
             1 finding: 94 % of its CPU time goes to needless system calls

      1  newfstatat /etc/localtime   999,999 calls   about 1.11 s   94 % of CPU                 tz-unset
         __newfstatat  libc.so.6
         localtime  libc.so.6
         stamp  app log.c:12
         main  app app.c:30
         __libc_start_call_main  libc.so.6
         also   mktime < rotate log.c:80, 100,000 calls
                __newfstatat  libc.so.6
                mktime  libc.so.6
                rotate  app log.c:80
                main  app app.c:30
                __libc_start_call_main  libc.so.6
         why    localtime looks at /etc/localtime on each call while TZ is unset; in 38 of 38 windows
                the answer was the same
         fix    export TZ=:/etc/localtime
                gives up: a changed /etc/localtime is seen only after a restart
         or     localtime_r, which does not look
         try    systoll prove --cure tz-unset -- ./app --days 'two words'    the calls alone take 1.11 s

      also seen   lseek   4,000 calls   about 400 µs, below 0.1 % of CPU   repeat
                  ftell  <  rotate log.c:80
                    __lseek  libc.so.6
                    ftell  libc.so.6
                    rotate  app log.c:80
                    main  app app.c:30
                    __libc_start_call_main  libc.so.6

      problem     no source lines for libfoo.so.1: install its debug file

      the others  4,120 calls, about 580 µs, below 0.1 % of CPU: lseek 4,000, openat 120

      all calls  about 1.11 s   94 % of CPU    needless   about 1.11 s   94 %
      70,713/s while watched    one thread    entering the kernel costs 97 to 99 ns here
      watched by ptrace: slow, +12,500 ns a call

      1,004,119 system calls, counted exactly    watched by ptrace, which is slow: times are estimates
    "#);
}

#[test]
fn five_findings_are_shown_and_the_others_counted() {
    let (rec, judgement) = stories::many(7);
    let text = report(&rec, &judgement, &ReportOptions::default(), &Style::default());
    assert_eq!(text.matches("rt_sigprocmask   20,033,022 calls").count(), 5);
    assert!(text.contains("  and         2 findings, about 3.90 s: --all shows them\n"), "{text}");
    let all = ReportOptions { all: true, ..ReportOptions::default() };
    let text = report(&rec, &judgement, &all, &Style::default());
    assert_eq!(text.matches("rt_sigprocmask   20,033,022 calls").count(), 7);
    assert!(!text.contains("--all"));
}

#[test]
fn long_calls_are_listed_from_the_given_length() {
    let longer = |ns| ReportOptions { longer_ns: Some(ns), ..ReportOptions::default() };
    let text = screen_with(stories::lttng(), longer(10_000_000));
    assert_eq!(text.lines().filter(|l| l.contains("   at +")).count(), 2, "{text}");
    let text = screen_with(stories::lttng(), longer(300_000));
    assert_eq!(text.lines().filter(|l| l.contains("   at +")).count(), 4, "{text}");
    let text = screen_with(stories::lttng(), longer(1_000_000_000));
    assert!(text.contains("longest     no call took 1.00 s or longer"), "{text}");

    // Recordings keep only the slowest calls; the histogram counts the others.
    let (mut rec, judgement) = stories::lttng();
    rec.rows[0].counts.histogram.add_many(16_000_000, 100);
    let text = report(&rec, &judgement, &longer(4_000_000), &Style::default());
    assert!(text.contains("at least 98 more of 4 ms or longer, not kept one by one"), "{text}");
    // A tracer keeps calls that were long by its own clock; only the histogram has the calls that
    // were queued.
    rec.header.backend = systoll_model::BackendKind::Ptrace;
    let text = report(&rec, &judgement, &longer(4_000_000), &Style::default());
    assert!(text.contains("at least 98 more of 4 ms or longer, the wait for a processor included"), "{text}");

    // If none was kept, the report names the callers and the longest call of each.
    rec.longest.clear();
    rec.rows[0].counts.max_ns = 17_000_000;
    let text = report(&rec, &judgement, &longer(4_000_000), &Style::default());
    let line = text.lines().find(|l| l.starts_with("  longest")).unwrap_or_default();
    assert!(line.contains("17 ms") && line.contains("calls or more"), "{text}");
    assert!(text.contains("the longest of each caller, and how many took 4 ms or longer"), "{text}");
}

#[test]
fn an_interim_report_says_so() {
    let options = ReportOptions { so_far: true, ..ReportOptions::default() };
    let first = screen_with(stories::ruby(), options).lines().next().unwrap_or_default().to_owned();
    assert_eq!(first, "systoll  ruby test.rb    so far    6.15 s    6.12 s CPU");
}

#[test]
fn a_server_is_reported_in_rates_and_cores() {
    let (mut rec, judgement) = stories::ruby();
    let h = &mut rec.header;
    (h.wall_ns, h.own_cpu_ns, h.threads) = (61_500_000_000, Some(196_800_000_000), 8);
    (h.user_ns, h.sys_ns) = (150_000_000_000, 46_800_000_000);
    let all = ReportOptions { all: true, ..ReportOptions::default() };
    let text = report(&rec, &judgement, &all, &Style { color: false, width: 120, whole_names: false });
    assert!(text.contains("8 threads"), "{text}");
    assert!(text.contains("20,033,214 system calls, counted exactly"), "{text}");
    assert!(text.contains("  325,743/s"), "{text}");
    assert!(text.contains("all calls  1.95 s   0.03 of 3.20 cores"), "{text}");
    assert!(text.contains("rt_sigprocmask   20,033,022 calls, 325,740/s"), "{text}");
}

#[test]
fn an_impossible_processor_time_is_unknown() {
    let (mut rec, mut judgement) = stories::ruby();
    rec.header.own_cpu_ns = Some(1_000_000_000);
    judgement.findings[0].share_of_cpu = Some(1.95);
    let text =
        report(&rec, &judgement, &ReportOptions::default(), &Style { color: false, width: 120, whole_names: false });
    assert!(text.contains("1 finding: about 1.95 s of CPU time goes to needless system calls"), "{text}");
    assert!(!text.contains("of CPU\n"), "{text}");
    let all = ReportOptions { all: true, ..ReportOptions::default() };
    let text = report(&rec, &judgement, &all, &Style { color: false, width: 120, whole_names: false });
    assert!(
        text.contains("CPU time unknown") && text.contains("all calls  1.95 s    needless   about 1.95 s\n"),
        "{text}"
    );
    assert!(!text.contains("% of CPU") && !text.contains("% of its CPU"), "{text}");
    assert!(text.contains("the calls come to more than the program's processor time"), "{text}");
}

#[test]
fn uncertain_processor_time_and_its_shares_are_intervals() {
    let (mut rec, judgement) = stories::ruby();
    let told = |rec: &Recording| {
        report(rec, &judgement, &ReportOptions::default(), &Style { color: false, width: 120, whole_names: false })
    };
    let h = &mut rec.header;
    (h.user_ns, h.sys_ns, h.own_cpu_ns) = (5_000_000_000, 4_000_000_000, Some(6_120_000_000));
    // These bounds are no further apart than the processor times of several runs, so the report shows one figure.
    (h.own_cpu_least_ns, h.own_cpu_most_ns) = (Some(6_000_000_000), Some(6_300_000_000));
    assert!(told(&rec).contains("about 6.12 s CPU\n") && told(&rec).contains("32 % of CPU"), "{}", told(&rec));
    let h = &mut rec.header;
    (h.own_cpu_least_ns, h.own_cpu_most_ns) = (Some(5_000_000_000), Some(7_500_000_000));
    assert!(told(&rec).contains("about 6.12 s CPU (5.00 s to 7.50 s)"), "{}", told(&rec));
    assert!(told(&rec).contains("26 to 39 % of CPU"), "{}", told(&rec));
    // The program's calls took 1.95 s of its time, so the lower bound can't be less.
    rec.header.own_cpu_least_ns = Some(1_000_000_000);
    assert!(told(&rec).contains("about 6.12 s CPU (1.95 s to 7.50 s)"), "{}", told(&rec));
}

#[test]
fn starts_that_are_needless_are_no_calls() {
    let (rec, mut judgement) = stories::ruby();
    let f = &mut judgement.findings[0];
    (f.starts, f.needless) = (true, systoll_judge::Estimate { estimate: 60, low: 60, high: 60 });
    let text =
        report(&rec, &judgement, &ReportOptions::default(), &Style { color: false, width: 120, whole_names: false });
    assert!(text.contains("  1  start of   60 starts   1.95 s"), "{text}");
    assert!(text.contains("calls  starting them takes 20,033,022 calls: rt_sigprocmask"), "{text}");
    assert!(!text.contains("60 of the"), "{text}");
}

#[test]
fn a_needless_part_has_bounds() {
    let (rec, mut judgement) = stories::ruby();
    judgement.findings[0].needless = systoll_judge::Estimate { estimate: 9_000_000, low: 8_000_000, high: 9_500_000 };
    let text =
        report(&rec, &judgement, &ReportOptions::default(), &Style { color: false, width: 120, whole_names: false });
    assert!(
        text.contains("of it  about 9,000,000 of the 20,033,022 calls (8,000,000 to 9,500,000) are needless"),
        "{text}"
    );
}

#[test]
fn a_problem_spoils_exactness_only_where_calls_may_be_missing() {
    let exactness = |kind| {
        let (mut rec, judgement) = stories::ruby();
        rec.problems.push(Problem::new(kind, "something happened"));
        let text = report(
            &rec,
            &judgement,
            &ReportOptions::default(),
            &Style { color: false, width: 120, whole_names: false },
        );
        assert!(text.contains("problem     something happened"), "{text}");
        text.contains("counted exactly") && !text.contains("not counted exactly")
    };
    assert!(exactness(ProblemKind::Name));
    assert!(!exactness(ProblemKind::Audit));
}

#[test]
fn problems_that_spoil_the_counts_come_first_and_many_are_counted() {
    let (mut rec, judgement) = stories::ruby();
    for i in 0..6 {
        rec.problems.push(Problem::new(ProblemKind::Name, format!("no name {i}")));
    }
    rec.problems.push(Problem::new(ProblemKind::Lost, "some were lost"));
    let text = report(&rec, &judgement, &ReportOptions::default(), &Style::default());
    let tail = text.split_once("  problems ").map(|(_, tail)| tail).unwrap_or_default();
    let lines: Vec<_> = tail.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    assert_eq!(
        lines,
        ["some were lost", "no name 0", "no name 1", "no name 2", "no name 3", "2 more: --all shows them"]
    );
}

#[test]
fn calls_that_only_watching_made_long_are_omitted() {
    let (mut rec, judgement) = stories::lttng();
    rec.header.backend = systoll_model::BackendKind::Ptrace;
    rec.header.observer_wall_ns_per_call = 130_000.0;
    let text =
        report(&rec, &judgement, &ReportOptions::default(), &Style { color: false, width: 120, whole_names: false });
    assert!(text.contains("longest     membarrier   16.1 ms   at +5 ms"), "{text}");
    assert!(!text.contains("membarrier   12.4 ms"), "{text}");
    assert!(text.contains("              elapsed, the watching included\n\n"), "{text}");
}

#[test]
fn a_trace_of_counts_alone_is_not_called_healthy() {
    let (mut rec, judgement) = stories::healthy();
    rec.header.backend = systoll_model::BackendKind::Import;
    rec.windows.clear();
    let text = screen((rec, judgement), 100);
    let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("93 system calls, exact"), "{text}");
    assert!(told.contains("; the trace does not show which were needless"), "{text}");
    assert!(!text.contains("nothing found"), "{text}");
}

/// Checks that a copy without windows is not called healthy, which would be an invention.
#[test]
fn a_copy_by_another_tool_is_not_called_healthy() {
    let (mut rec, judgement) = stories::healthy();
    assert!(screen((rec.clone(), judgement.clone()), 100).contains("nothing found worth your time: 93 system calls"));
    rec.header.exit = None;
    rec.problems.push(Problem::new(ProblemKind::Stripped, "another tool rewrote the file"));
    let text = screen((rec, judgement), 100);
    assert!(text.contains("were needless is unknown"), "{text}");
    assert!(!text.contains("nothing found") && !text.contains("still running"), "{text}");
}

#[test]
fn no_line_of_a_narrow_screen_begins_with_a_comma() {
    for width in 30..60 {
        let text = screen(stories::ruby(), width);
        assert!(text.lines().all(|l| !l.trim_start().starts_with(',')), "{text}");
    }
}

#[test]
fn the_full_report_names_the_hooks() {
    let (mut rec, judgement) = stories::healthy();
    rec.header.sites = Some(systoll_model::Sites { timed: 1_002, counted: 3, on_arrival: 526, not_covered: 1 });
    let all = ReportOptions { all: true, ..ReportOptions::default() };
    let told = "sites       1,006 places make calls: 1,002 timed, 3 counted only, 1 not covered; 526 hooked as their files came";
    let one_line = |screen: String| screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line(screen_with((rec.clone(), judgement.clone()), all)).contains(&told));
    assert!(!screen((rec, judgement), 100).contains("counted only"));
}

#[test]
fn common_facts_of_processes_appear_once() {
    let (mut rec, judgement) = stories::ruby();
    for text in ["go: calls waited (2)", "go: calls waited (1500)", "cc: calls waited (1)", "same", "same", "odd (x)"] {
        rec.problems.push(Problem::new(ProblemKind::Price, text));
    }
    let text = report(&rec, &judgement, &ReportOptions::default(), &Style::default());
    let tail = text.split_once("  problems ").map(|(_, tail)| tail).unwrap_or_default();
    let lines: Vec<_> = tail.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["go: calls waited (1,502)", "cc: calls waited (1)", "same", "odd (x)"]);
}

#[test]
fn a_healthy_report_names_what_was_judged_and_what_was_not() {
    let (rec, mut judgement) = stories::healthy();
    judgement.untold = Untold { calls: 12, toll_ns: 9_000, unsure_calls: 1, unsure_toll_ns: 700 };
    judgement.unjudged = Unjudged { calls: 20, toll_ns: 40_000 };
    assert_eq!(screen((rec.clone(), judgement.clone()), 100).lines().count(), 2, "they help nobody who did not ask");
    let all = screen_with((rec, judgement), ReportOptions { all: true, ..ReportOptions::default() });
    assert!(all.contains("13 calls may be unnecessary (9.7 µs, 0.5 % of CPU); 20 calls, 2.0 % of CPU, could"), "{all}");
}

#[test]
fn processes_of_folded_images_are_counted_by_their_execs() {
    let mut builder = Builder::new(&["sh"]).times(30.0, 20.0);
    // One `execve` made the run's first image, 200 made the folded image of another program.
    builder.plain("execve", 201, 9_000);
    let mut rec = builder.build();
    let folded = |pid, parent, instances| Process {
        pid,
        parent: Some(ProcessId(parent)),
        exe: "/usr/bin/true".into(),
        instances,
        threads: instances,
        ..Process::default()
    };
    rec.processes.extend([folded(4712, 0, 300), folded(4800, 1, 200)]);
    let text = report(&rec, &Judgement::default(), &ReportOptions::default(), &Style::default());
    assert!(text.contains("about 301 processes"), "{text}");
}

#[test]
fn one_more_place_is_one_place() {
    let mut builder = Builder::new(&["app"]).times(30.0, 20.0);
    let rows: Vec<RowId> = (0..5)
        .map(|n| {
            let frame = builder.frame("/usr/bin/app", FrameClass::User, &format!("place_{n}"), "app.c:7");
            builder.row("getpid", Some("getpid"), &[frame], counts(1_000 - n, 90_000))
        })
        .collect();
    let rec = builder.build();
    let judgement = Judgement {
        findings: vec![finding(&rec, Kind::Repeat, Some("identity-per-op"), &rows)],
        ..Judgement::default()
    };
    let text = report(&rec, &judgement, &ReportOptions::default(), &Style::default());
    assert!(text.contains(" 1 more place\n"), "{text}");
}

#[test]
fn what_lies_inside_of_a_library_is_not_its_caller() {
    let mut builder = Builder::new(&["app"]).times(30.0, 20.0);
    // A goroutine of the library's: no frame of the stack is the user's.
    let names = ["syscall.Syscall", "net.dial", "net/http.(*Transport).func1", "runtime.goexit"];
    let frames = names.map(|name| builder.frame("/usr/bin/app", FrameClass::Runtime, name, "x.go:7"));
    let row = builder.row("connect", Some(names[2]), &frames, counts(1_000, 9_000_000));
    let mut rec = builder.build();
    rec.rows[0].user = None;
    let judgement = Judgement { findings: vec![finding(&rec, Kind::Repeat, None, &[row])], ..Judgement::default() };
    let text = report(&rec, &judgement, &ReportOptions::default(), &Style::default());
    assert!(text.contains("net/http.(*Transport).func1"), "{text}");
    assert!(!text.contains("syscall.Syscall") && !text.contains("net.dial"), "{text}");
}

#[test]
fn a_file_without_names_is_a_problem_where_its_addresses_are_shown() {
    let of = |function: &str| {
        let mut builder = Builder::new(&["app"]).times(30.0, 20.0);
        let frame = builder.frame("/usr/bin/app", FrameClass::User, function, "");
        let row = builder.row("getpid", Some("getpid"), &[frame], counts(1_000, 9_000_000));
        let mut rec = builder.build();
        for file in ["app", "sed"] {
            let text = format!(
                "/usr/bin/{file}: stripped: its functions are shown by address; its debug symbols would name them"
            );
            rec.problems.push(Problem::new(ProblemKind::Name, text));
        }
        let judgement = Judgement { findings: vec![finding(&rec, Kind::Repeat, None, &[row])], ..Judgement::default() };
        report(&rec, &judgement, &ReportOptions::default(), &Style::default())
    };
    let (by_address, by_name) = (of("app+0x1234"), of("log_line"));
    assert!(by_address.contains("/usr/bin/app: stripped") && !by_address.contains("/usr/bin/sed"), "{by_address}");
    assert!(!by_name.contains("stripped"), "{by_name}");
}

#[test]
fn a_line_that_one_sample_shows_is_not_that_of_many_calls() {
    let with = |looks: &[u64]| {
        let mut builder = Builder::new(&["bash", "x.sh"]).times(30.0, 20.0);
        let frame = builder.frame("/usr/bin/bash", FrameClass::User, "main", "x.sh:5");
        let first = builder.row("clone", Some("fork"), &[], counts(900, 9_000_000));
        let second = builder.row("execve", Some("execve"), &[frame], counts(900, 8_000_000));
        let mut rec = builder.build();
        let line = |looks: &u64| RowLine { frame, looks: *looks, weight: 1 };
        rec.rows[second.0 as usize].lines = looks.iter().map(line).collect();
        let findings = vec![finding(&rec, Kind::Repeat, None, &[first, second])];
        report(&rec, &Judgement { findings, ..Judgement::default() }, &ReportOptions::default(), &Style::default())
    };
    assert!(with(&[9]).contains("execve < main x.sh:5, 900 calls"), "{}", with(&[9]));
    for by_chance in [&[1][..], &[0]] {
        assert!(with(by_chance).contains("execve, 900 calls"), "{by_chance:?} {}", with(by_chance));
    }
}
