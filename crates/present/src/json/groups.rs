//! The JSON of reports that are grouped by `--by`.

use super::common::user;
use super::wire::{WireGroup, WireGrouping};
use crate::access::{frame, module};
use crate::sentences::Sentences;
use systoll_judge::{Common, Group, Grouping};
use systoll_model::{FrameId, Recording};

pub(super) fn grouped<'a>(sentences: Sentences<'a>, grouping: &Grouping) -> WireGrouping<'a> {
    let (rec, own) = (sentences.rec, sentences.own_cpu_ns());
    WireGrouping {
        by: grouping.by.name(),
        sampled: grouping.sampled,
        calls: grouping.total.calls,
        groups: grouping.groups.iter().map(|g| group(rec, own, g)).collect(),
    }
}

fn group<'a>(rec: &'a Recording, own: Option<u64>, g: &Group) -> WireGroup<'a> {
    let function = |id: FrameId| Some(frame(rec, id)?.location()?.function.to_string());
    let (mut place, mut process, mut tid) = (None, None, None);
    let name = match &g.common {
        Common::Function(id) => {
            // The group has many lines of this function, and the frame's line is only one of them.
            place = user(rec, *id).map(|user| super::parts::User { line: None, ..user });
            function(*id)
        }
        Common::Line(id) => {
            place = user(rec, *id);
            function(*id)
        }
        Common::Api(api, _) => Some(api.to_string()),
        Common::Library(id) => module(rec, Some(*id)).map(|m| m.path.to_string()),
        Common::Process(id) => {
            process = Some(u64::from(id.0) + 1);
            rec.processes.get(id.0 as usize).map(|p| p.name().to_owned())
        }
        Common::Thread { process: of, tid: number, name } => {
            process = Some(u64::from(of.0) + 1);
            tid = Some(*number).filter(|n| *n != 0);
            Some(name.to_string()).filter(|n| !n.is_empty())
        }
        Common::File(target) => Some(target.to_string()),
        Common::None => Some(String::new()),
        Common::Unknown => None,
    };
    WireGroup {
        name,
        calls: g.calls,
        low: g.low,
        high: g.high,
        failed: g.failed,
        toll_ns: g.toll_ns,
        waited_ns: g.waited_ns,
        share_of_cpu: g.toll_ns.zip(own).map(|(ns, own)| ns as f64 / own as f64),
        looked_at: g.looked_at,
        user: place,
        process,
        tid,
        rows: g.rows.iter().map(|r| r.0).collect(),
    }
}
