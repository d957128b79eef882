//! Tests `systoll box`: the screen line by line, and its JSON against
//! docs/reference/box.schema.json.

use crate::common::schema::violations;
use serde_json::{Value, json};
use systoll_model::{BoxFigure, BoxReport, Figure, Host, Mitigation, Probe, Seccomp, Spread};
use systoll_present::{Style, box_json, write_box};

fn steady(ns: f64) -> Spread {
    Spread { min: ns, median: ns * 1.01, high: ns * 1.03 }
}

fn usual(probe: Probe) -> f64 {
    match probe {
        Probe::FunctionCall => 0.42,
        Probe::ClockVdso => 23.0,
        Probe::TimeVdso => 1.9,
        Probe::Crossing => 97.0,
        Probe::CrossingAlone => 95.0,
        Probe::ClockKernel => 118.0,
        Probe::Sigprocmask => 101.0,
        Probe::StatLocaltime => 1_080.0,
        Probe::StatPlain => 695.0,
        Probe::ReadByte => 170.0,
        Probe::ReadBulk => 5_900.0,
        Probe::WriteByte => 210.0,
        Probe::WriteBulk => 7_200.0,
        Probe::FutexWake => 99.0,
        Probe::MembarrierGlobal => 8_400_000.0,
        Probe::MembarrierPrivate => 230.0,
        Probe::MembarrierPrivateRunning => 2_100.0,
        Probe::SeccompAdds => 27.0,
        Probe::SeccompArgumentAdds => 41.0,
    }
}

fn report() -> BoxReport {
    let on = |probe| match probe {
        Probe::StatLocaltime => Some("a symbolic link".to_owned()),
        Probe::StatPlain => Some("/etc/passwd".to_owned()),
        _ => None,
    };
    let figure = |probe| BoxFigure { probe, on: on(probe), figure: Figure::Measured(steady(usual(probe))) };
    let mitigation = |name: &str, state: &str| Mitigation {
        name: name.into(),
        state: state.into(),
        told: format!("Mitigation: {state}"),
    };
    BoxReport {
        host: Host {
            cpu: "AMD EPYC 9R14".into(),
            cpus: 2,
            kernel: "6.18.1".into(),
            clock_source: "kvm-clock".into(),
            virtualization: Some("Firecracker, KVM".into()),
            page: 4096,
        },
        mitigations: Some(vec![mitigation("PTI", "off"), mitigation("branches", "retpoline")]),
        seccomp: Seccomp::None,
        crossing_before: steady(97.0),
        crossing_after: steady(97.0),
        figures: Probe::ALL.into_iter().map(figure).collect(),
        watch_ns: vec![("ptrace".into(), steady(12_500.0))],
    }
}

fn set(report: &mut BoxReport, probe: Probe, figure: Figure) {
    report.figures.iter_mut().find(|f| f.probe == probe).unwrap().figure = figure;
}

fn screen(report: &BoxReport, style: Style) -> String {
    let mut out = vec![];
    write_box(&mut out, report, &style).unwrap();
    String::from_utf8(out).unwrap()
}

fn plain(report: &BoxReport) -> String {
    screen(report, Style { color: false, width: 100, whole_names: false })
}

#[test]
fn a_quiet_box() {
    let expected = "  \
  AMD EPYC 9R14, 2 CPUs, in a VM (Firecracker, KVM)    Linux 6.18.1    clock source kvm-clock
  mitigations   PTI off   retpoline

  crossing                       ns
    a function call             0.4
    clock_gettime, vDSO          23
    time, vDSO                  1.9
    getppid                      97    the gate: every call pays about this
    clock_gettime, kernel       118    the same answer as the vDSO's, five times as expensive
    rt_sigprocmask              101    no change to the mask
    stat /etc/localtime       1,080    a symbolic link; /etc/passwd 695
    read 1 byte                 170    64 KiB: 0.09 ns a byte
    write 1 byte                210    64 KiB: 0.11 ns a byte
    futex wake                   99    no thread waits
    membarrier GLOBAL     8,484,000    nearly all of it waiting
      PRIVATE_EXPEDITED         230    2,121 while another of its threads runs
  a seccomp filter adds          27    41 if it looks at an argument
  being watched adds: ptrace 12,500
";
    assert_eq!(plain(&report()), expected);
}

#[test]
fn missing_figures_have_reasons() {
    let mut report = report();
    set(&mut report, Probe::MembarrierGlobal, Figure::NotMeasured("membarrier: EINVAL".into()));
    set(&mut report, Probe::MembarrierPrivateRunning, Figure::NotMeasured("only one processor may be used".into()));
    set(&mut report, Probe::SeccompAdds, Figure::NotMeasured("seccomp: EPERM\x1b[2J".into()));
    report.mitigations = None;
    report.watch_ns.clear();
    let screen = plain(&report);
    assert!(screen.contains("membarrier GLOBAL             -    not measured: membarrier: EINVAL\n"), "{screen}");
    assert!(screen.contains("230    while another thread runs: not measured: only one processor"), "{screen}");
    assert!(screen.contains("adds           -    not measured: seccomp: EPERM\\x1b[2J\n"), "{screen}");
    assert!(screen.contains("mitigations   not known"), "{screen}");
    assert!(!screen.contains("being watched"), "{screen}");
}

#[test]
fn a_wide_spread_is_shown() {
    let mut report = report();
    let wide = Spread { min: 97.0, median: 120.0, high: 180.0 };
    set(&mut report, Probe::Sigprocmask, Figure::Measured(wide));
    set(&mut report, Probe::MembarrierGlobal, Figure::Measured(Spread { min: 7e6, median: 8e6, high: 2e7 }));
    let quiet = plain(&report);
    assert!(quiet.contains(" 97    no change to the mask; 97 to 180 here, 120 in the middle\n"), "{quiet}");
    assert!(quiet.contains(" 8,000,000    nearly all of it waiting; 7,000,000 to 20,000,000 here\n"), "{quiet}");
    assert!(!quiet.contains("not quiet"));
    report.crossing_after = wide;
    assert!(plain(&report).contains("\n  this box was not quiet: a getppid took 97 to 180 ns"));
}

#[test]
fn a_return_that_is_dear_is_named() {
    let mut report = report();
    set(&mut report, Probe::Crossing, Figure::Measured(steady(164.0)));
    set(&mut report, Probe::CrossingAlone, Figure::Measured(steady(116.0)));
    let wide = screen(&report, Style { color: false, width: 120, whole_names: false });
    assert!(
        wide.contains("164    the gate: every call pays about this; 116 without the return that follows\n"),
        "{wide}"
    );
}

#[test]
fn a_clock_without_a_vdso_is_named() {
    let mut report = report();
    set(&mut report, Probe::ClockVdso, Figure::Measured(steady(116.0)));
    let screen = plain(&report);
    assert!(screen.contains("as expensive as the kernel's"), "{screen}");
    assert!(!screen.contains("the same answer"), "{screen}");
}

#[test]
fn present_filters_are_named() {
    let with = |seccomp| plain(&BoxReport { seccomp, ..report() });
    assert!(
        with(Seccomp::Filters(2)).ends_with("\n  every figure includes 2 seccomp filters that were here already\n")
    );
    assert!(with(Seccomp::Filters(0)).contains("a seccomp filter that was here already"));
    assert!(with(Seccomp::Unknown).contains("not known"));
}

#[test]
fn on_narrow_screens_notes_follow_their_figures() {
    let mut report = report();
    report.watch_ns = vec![("inproc".into(), steady(32.0)), ("ptrace".into(), steady(12_500.0))];
    let narrow = screen(&report, Style { color: false, width: 40, whole_names: false });
    let gate = "    getppid                      97\n        the gate: every call pays about\n        this\n";
    assert!(narrow.contains(gate), "{narrow}");
    assert!(narrow.ends_with("  being watched adds: inproc 32,\n        ptrace 12,500\n"), "{narrow}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
}

#[test]
fn it_fits_and_without_colour_has_no_escapes() {
    for width in [60, 80, 120] {
        let text = screen(&report(), Style { color: false, width, whole_names: false });
        assert!(!text.contains('\x1b'));
        let too_long: Vec<_> = text.lines().filter(|l| l.chars().count() > width).collect();
        assert_eq!(too_long, Vec::<&str>::new(), "width {width}");
    }
    let coloured = screen(&report(), Style { color: true, width: 100, whole_names: false });
    assert!(coloured.contains('\x1b'));
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/reference/box.schema.json")).unwrap()
}

#[test]
fn json_conforms_to_the_schema() {
    let mut missing = report();
    missing.figures.iter_mut().for_each(|f| f.figure = Figure::NotMeasured("no child".into()));
    missing.mitigations = None;
    missing.seccomp = Seccomp::Unknown;
    missing.host = Host::default();
    let filtered = BoxReport { seccomp: Seccomp::Filters(0), watch_ns: vec![], ..report() };
    for report in [report(), missing, filtered] {
        assert_eq!(violations(&schema(), &box_json(&report)), Vec::<String>::new());
    }
}

#[test]
fn json_and_report_agree() {
    let json = box_json(&report());
    let ids: Vec<_> = json["figures"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert_eq!(ids, Probe::ALL.map(|p| p.id()));
    assert_eq!(json["figures"][3]["ns"]["min"], json!(97.0));
    assert_eq!(json["noisy"], json!(false));
    assert_eq!(json["watch_ns"][0]["backend"], json!("ptrace"));
    let mut broken = json.clone();
    broken["figures"][0]["id"] = json!("unheard-of");
    assert!(!violations(&schema(), &broken).is_empty());
}
