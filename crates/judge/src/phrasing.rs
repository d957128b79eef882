//! What a finding says: the mechanism with its evidence, the cures, the next command.

use crate::catalogue::{Cause, Cure};
use crate::finding::{Finding, Kind};
use crate::group::{Group, symptoms};
use crate::survey::RowView;
use systoll_model::{BackendKind, Elision, Header, Recording, RowId};

/// Fills in the finding's words.
pub(crate) fn put(
    finding: &mut Finding,
    group: &Group<'_>,
    recording: &Recording,
    views: &[RowView<'_>],
    api: Option<&str>,
) {
    let mut applies = false;
    match group.cause {
        Some(cause) => {
            let calls = ClaimedCalls { rows: &finding.rows, kind: finding.kind, recording, views };
            // The mechanism of the row that the finding shows first; others may have another.
            let lead = ClaimedCalls { rows: finding.rows.get(..1).unwrap_or_default(), ..calls };
            let matched = cause.matches.iter().find(|m| lead.any(m));
            let matched = matched.or_else(|| cause.matches.iter().find(|m| calls.any(m)));
            let why = matched.and_then(|m| m.why.as_deref()).unwrap_or(&cause.why);
            let cures = offered(cause, &calls);
            // Of the environment only where it is what is offered first: a variable that is right in
            // some situations is no cure in others.
            applies = cures.first().is_some_and(|c| !c.env.is_empty()) || cures.iter().any(|c| c.shim.is_some());
            let why = fill(why, finding, api);
            finding.stop = cures.iter().map(|c| line(c)).collect();
            finding.gives_up = cures.first().map(|c| c.gives_up.clone()).unwrap_or_default();
            finding.why = why;
        }
        None => generic(finding, group),
    }
    finding.prove = next_command(group.cause, applies, finding, &recording.header);
}

/// The cures that fit, most preferable first; what the next command tries is among the first two,
/// which is all that a short report shows.
fn offered<'a>(cause: &'a Cause, calls: &ClaimedCalls<'_>) -> Vec<&'a Cure> {
    let mut cures: Vec<&Cure> = cause.stop.iter().filter(|c| c.when.as_ref().is_none_or(|w| calls.any(w))).collect();
    if let Some(at) = cures.iter().position(|c| c.shim.is_some()).filter(|at| *at > 1) {
        let shim = cures.remove(at);
        cures.insert(1, shim);
    }
    cures
}

/// Whether a cure that fits the group costs no change of code or build.
pub(crate) fn offers_free_cure(group: &Group<'_>, recording: &Recording, views: &[RowView<'_>]) -> bool {
    let calls = ClaimedCalls { rows: &group.rows, kind: group.kind, recording, views };
    let mut cures = group.cause.iter().flat_map(|c| &c.stop);
    cures.any(|c| c.kind.is_free() && c.when.as_ref().is_none_or(|w| calls.any(w)))
}

/// The calls a finding is about, to hold patterns against.
#[derive(Clone, Copy)]
struct ClaimedCalls<'a> {
    rows: &'a [RowId],
    kind: Kind,
    recording: &'a Recording,
    views: &'a [RowView<'a>],
}

impl ClaimedCalls<'_> {
    /// Whether the pattern holds for a claimed call of the finding.
    fn any(&self, pattern: &crate::pattern::Pattern) -> bool {
        self.rows.iter().any(|id| {
            let row = self.recording.row(*id);
            let Some(view) = self.views.get(id.0 as usize) else { return false };
            let waited = view.sample.filter(|_| self.kind == Kind::Blocking);
            let of_row = symptoms(self.recording, row, Kind::Blocking, None, waited);
            pattern.could_match(&of_row)
                && (view.claimed.iter().any(|claimed| pattern.matches(&of_row.with(claimed)))
                    || waited.is_some() && pattern.matches(&of_row))
        })
    }
}

fn line(cure: &Cure) -> String {
    if cure.situation.is_empty() { cure.how.clone() } else { format!("{} ({})", cure.how, cure.situation) }
}

fn fill(text: &str, finding: &Finding, api: Option<&str>) -> String {
    let syscall = finding.syscalls.first().map_or_else(|| "the call".to_owned(), ToString::to_string);
    let mut out = String::with_capacity(text.len() + 32);
    for (at, part) in text.split('{').enumerate() {
        let Some((name, rest)) = part.split_once('}').filter(|_| at > 0) else {
            out.push_str(part);
            continue;
        };
        match name {
            // Of `syscall(SYS_statx, …)` it is statx that does something.
            "api" => out.push_str(api.filter(|a| *a != "syscall").unwrap_or(&syscall)),
            "syscall" => out.push_str(&syscall),
            "what" => out.push_str(finding.what.as_deref().unwrap_or("the file")),
            "agree" => out.push_str(&finding.evidence.agree.to_string()),
            "windows" => out.push_str(&finding.evidence.windows.to_string()),
            other => out.push_str(other),
        }
        out.push_str(rest);
    }
    out
}

/// Words for waste that no cause names.
fn generic(finding: &mut Finding, group: &Group<'_>) {
    let e = finding.evidence;
    let windows = format!("in {} of {} windows", e.agree, e.windows);
    let about = group.claim.as_ref().map_or("the same", |c| c.about);
    let (why, stop) = match finding.kind {
        Kind::Repeat => (
            format!("asks for {about} again and again; {windows} the answer was known"),
            "ask once and keep the answer",
        ),
        Kind::NoOp => {
            (format!("sets {about} to what it is; {windows} nothing had changed"), "leave it out where nothing changes")
        }
        Kind::Toggle => (
            format!("sets or makes {about} and takes it back; {windows} the calls cancelled each other"),
            "set it once around the whole loop",
        ),
        Kind::Blocking if group.startup.is_none() => (format!("{about}; so it was {windows}"), "do it less often"),
        Kind::SlowPath if group.children.is_some() => (about.to_owned(), "start it less often"),
        Kind::Blocking => (
            format!("waits {} before main", group.startup.unwrap_or("for something")),
            "do it later, or not at all, unless the program can't begin without it",
        ),
        Kind::SlowPath => (format!("{about}; so it was {windows}"), "take the cheaper way"),
        Kind::Failing | Kind::SmallIo | Kind::BusyPoll => (format!("{about}; so it was {windows}"), "leave it out"),
    };
    finding.why = why;
    let instead = group.claim.as_ref().and_then(|c| c.instead);
    finding.stop = vec![instead.unwrap_or(stop).to_owned()];
    finding.gives_up = group.claim.as_ref().map(|c| c.gives_up.to_owned()).unwrap_or_default();
}

/// The next command to type, as argv: one that exists in this version. Where systoll can apply
/// the cure itself, it proves what that wins.
fn next_command(cause: Option<&Cause>, applies: bool, finding: &Finding, recording: &Header) -> Vec<String> {
    let (command, backend) = (&recording.command, recording.backend);
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let elide = answered_in_place(finding).filter(|_| backend == BackendKind::Inproc && !command.is_empty());
    let experiment = |calls: String| {
        let mut argv = words(&["systoll", "prove", "--elide", &calls, "--"]);
        argv.extend_from_slice(command);
        argv
    };
    // Whole stacks show who asks for it.
    let Some(cause) = cause else {
        if command.is_empty() {
            return words(&["systoll", "causes"]);
        }
        if let Some(calls) = elide {
            return experiment(calls);
        }
        let mut argv = words(&["systoll", "run", "-k", "--"]);
        argv.extend_from_slice(command);
        return argv;
    };
    if !applies || command.is_empty() {
        return elide.map_or_else(|| words(&["systoll", "explain", &cause.id]), experiment);
    }
    let mut argv = words(&["systoll", "prove", "--cure", &cause.id, "--"]);
    argv.extend_from_slice(command);
    argv
}

/// The finding's system calls between commas, where each of its needless calls can be answered
/// without the kernel: what that would win can be seen before the program is mended.
fn answered_in_place(finding: &Finding) -> Option<String> {
    let names: Vec<&str> = finding
        .syscalls
        .iter()
        .map(|s| s.name().and_then(Elision::from_name).map(Elision::name))
        .collect::<Option<_>>()?;
    // Masks that a call made by number sets are not followed.
    let by_number = finding.apis.iter().any(|a| &**a == "syscall") && names.contains(&"rt_sigprocmask");
    let answered = matches!(finding.kind, Kind::Repeat | Kind::NoOp) && !names.is_empty() && !by_number;
    answered.then(|| names.join(","))
}

#[cfg(test)]
mod tests {
    use crate::catalogue::PLACEHOLDERS;

    #[test]
    fn every_placeholder_is_filled() {
        let finding = crate::verdict::blank();
        for name in PLACEHOLDERS {
            let text = super::fill(&format!("a {{{name}}} b"), &finding, Some("localtime"));
            assert!(!text.contains(name) || *name == "what", "{text}");
            assert!(text.starts_with("a ") && text.ends_with(" b") && !text.contains('{'), "{text}");
        }
    }
}
