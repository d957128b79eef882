//! The JSON of rounds.

use super::parts::{Estimate, User, estimate, finite};
use crate::access::{frame, module};
use crate::sentences::Sentences;
use serde::Serialize;
use systoll_judge::{Numbers, Round, RoundCall, RoundStep, Times, Variety};

#[derive(Serialize)]
pub(super) struct WireRound<'a> {
    count: Estimate,
    steps: Vec<WireStep<'a>>,
    user: Option<User<'a>>,
    calls: u64,
    toll_ns: u64,
    waited_ns: Option<u64>,
    share_of_cpu: Option<f64>,
    share_of_wall: Option<f64>,
    claimed: WireClaimed,
    looked_at: u64,
    agree: u64,
    threads: u64,
    processes: u64,
    startup: bool,
    of_the_rest: bool,
    rows: Vec<u32>,
    told: WireRoundTold,
}

#[derive(Serialize)]
struct WireClaimed {
    calls: u64,
    toll_ns: u64,
    waited_ns: u64,
}

#[derive(Serialize)]
struct WireStep<'a> {
    times: WireTimes,
    calls: Vec<WireRoundCall<'a>>,
}

#[derive(Serialize)]
struct WireTimes {
    least: u64,
    most: u64,
    mean: Option<f64>,
}

#[derive(Serialize)]
struct WireRoundCall<'a> {
    syscall: String,
    calls: u64,
    share: Option<f64>,
    times: WireTimes,
    object: Option<&'a str>,
    objects: Option<WireVariety>,
    size: Option<WireNumbers>,
    offset: Option<WireNumbers>,
    option: Option<&'a str>,
    errno: Option<String>,
    data: Option<WireVariety>,
}

#[derive(Serialize)]
struct WireVariety {
    looks: u64,
    different: u64,
}

#[derive(Serialize)]
struct WireNumbers {
    low: Option<u64>,
    high: Option<u64>,
    step: Option<u64>,
}

#[derive(Serialize)]
struct WireRoundTold {
    motif: String,
    cost: String,
    place: Option<String>,
    notes: Vec<String>,
    seen: Vec<String>,
}

/// Converts a round of the report.
pub(super) fn wire_round<'a>(sentences: Sentences<'a>, round: &'a Round) -> WireRound<'a> {
    let told = sentences.round(round);
    WireRound {
        count: estimate(round.count),
        steps: round.steps.iter().map(step).collect(),
        user: user(sentences, round),
        calls: round.calls,
        toll_ns: round.toll_ns,
        waited_ns: round.waited_ns,
        share_of_cpu: round.share_of_cpu.and_then(finite),
        share_of_wall: round.share_of_wall.and_then(finite),
        claimed: WireClaimed {
            calls: round.claimed.calls,
            toll_ns: round.claimed.toll_ns,
            waited_ns: round.claimed.waited_ns,
        },
        looked_at: round.looked_at,
        agree: round.agree,
        threads: round.threads,
        processes: round.processes(sentences.rec),
        startup: round.startup,
        of_the_rest: round.is_of_rest,
        rows: round.rows.iter().map(|row| row.row.0).collect(),
        told: WireRoundTold {
            motif: told.motif,
            cost: told.cost,
            place: told.place,
            notes: told.notes,
            seen: told.seen,
        },
    }
}

fn user<'a>(sentences: Sentences<'a>, round: &Round) -> Option<User<'a>> {
    let place = round.place?;
    let frame = frame(sentences.rec, place.frame)?;
    let location = frame.locations.get(place.location)?;
    Some(User {
        function: &location.function,
        file: location.file.as_deref(),
        line: location.line,
        module: module(sentences.rec, frame.module).map(|m| &*m.path),
    })
}

fn step(step: &RoundStep) -> WireStep<'_> {
    let once = Times { least: 1, most: 1, mean: 1.0 };
    let of = match step {
        RoundStep::Call(_) => once,
        RoundStep::Inner { times, .. } => *times,
    };
    WireStep { times: times(of), calls: step.calls().iter().map(call).collect() }
}

fn times(times: Times) -> WireTimes {
    WireTimes { least: times.least, most: times.most, mean: finite(times.mean) }
}

fn call(call: &RoundCall) -> WireRoundCall<'_> {
    WireRoundCall {
        syscall: call.syscall.to_string(),
        calls: call.calls,
        share: finite(call.share),
        times: times(call.times),
        object: call.object.as_ref().map(|object| &*object.pattern),
        objects: call.object.as_ref().map(|object| variety(object.variety)),
        size: call.size.map(numbers),
        offset: call.offset.map(numbers),
        option: call.option.as_deref(),
        errno: call.errno.map(|errno| errno.to_string()),
        data: call.data.map(variety),
    }
}

fn variety(variety: Variety) -> WireVariety {
    WireVariety { looks: variety.looks, different: variety.different }
}

fn numbers(numbers: Numbers) -> WireNumbers {
    match numbers {
        Numbers::Same(n) => WireNumbers { low: Some(n), high: Some(n), step: None },
        Numbers::Between(low, high) => WireNumbers { low: Some(low), high: Some(high), step: None },
        Numbers::Steps(step) => WireNumbers { low: None, high: None, step: Some(step) },
    }
}
