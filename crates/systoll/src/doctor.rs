//! Implements `systoll doctor`.

use crate::cli::PlainArgs;
use crate::failure::Failure;
use crate::output::Output;
use std::process::ExitCode;
use systoll_model::InertJson;
use systoll_present::{DoctorCheck, doctor_json, write_doctor};
use systoll_record::{automatic, backends};

/// Reports what can be watched here, why other things can't be, and which commands would help.
pub(crate) fn doctor(args: &PlainArgs) -> Result<ExitCode, Failure> {
    let mut output = Output::open(None, Output::Stdout)?;
    let style = output.style(args.color.when);
    let mut checked = Vec::new();
    let first = automatic().into_iter().next().map(|b| b.kind());
    for backend in backends() {
        let mut probe = backend.probe();
        if first == Some(probe.kind) {
            probe.found.push("tried first by systoll run".into());
        }
        let name = format!("watch with {}", probe.kind.name());
        checked.push(DoctorCheck { what: name, works: probe.can_run, detail: probe.found.join("; "), help: None });
        checked.extend(probe.missing.into_iter().map(|(detail, help)| DoctorCheck {
            what: format!("{}, limits", probe.kind.name()),
            works: false,
            detail,
            help,
        }));
    }
    checked.push(compiler());
    let host = systoll_price::host();
    let can_watch = checked.iter().any(|c| c.works && c.what.starts_with("watch"));
    output.write("list", |w| {
        if args.json {
            serde_json::to_writer_pretty(InertJson(&mut *w), &doctor_json(&host, &checked))?;
            writeln!(w)
        } else {
            write_doctor(w, &host, &checked, &style)
        }
    })?;
    Ok(if can_watch { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn compiler() -> DoctorCheck {
    let found = systoll_cure::compiler();
    DoctorCheck {
        what: "demo programs".into(),
        works: found.is_some(),
        detail: found.map_or_else(
            || "systoll demo builds its programs with a C compiler, and there is none".into(),
            |c| format!("built with {c}"),
        ),
        help: Some("apt-get install gcc".into()),
    }
}
