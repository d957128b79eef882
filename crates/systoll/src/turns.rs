//! Orders and answers between `prove --live` and the systoll that watches for it, a line each.
//!
//! Another process watches, so that a load may be started and waited for meanwhile, and so that the program is left as
//! it was if the one in the foreground is killed: the end of its orders ends the watching.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use systoll_model::{InPlace, Missed, Recording, Sysno};
use systoll_record::{Control, TurnOrder, TurnTotals};

/// The orders, as they are written.
const ORDERS: [(&str, TurnOrder); 3] =
    [("answer", TurnOrder::Answer), ("make", TurnOrder::Make), ("read", TurnOrder::Read)];

/// The state in which processes were left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftState {
    /// Longest time for which threads were stopped at once, ns.
    pub(crate) longest_stop_ns: u64,
    /// The recording's problems about processes that were let go early, or in which something of systoll is left.
    pub(crate) problems: Vec<String>,
}

/// An answer of the watching systoll.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The totals after an order.
    Totals(TurnTotals),
    /// The processes have been left.
    Left(LeftState),
    /// The processes can't be watched; holds the reason and the command that helps.
    Refused(String, Option<String>),
}

/// Writes an order.
pub(crate) fn write_order(w: &mut dyn Write, order: TurnOrder) -> std::io::Result<()> {
    let word = ORDERS.iter().find(|(_, known)| *known == order).map_or("", |(word, _)| word);
    writeln!(w, "{word}")?;
    w.flush()
}

/// Takes orders from standard input and answers on standard output.
pub(crate) struct Obeying {
    orders: Receiver<TurnOrder>,
    /// True if no order can come any more.
    over: bool,
}

impl Obeying {
    /// Begins to read orders.
    pub(crate) fn new() -> Self {
        let (sender, orders) = channel();
        // Without the thread no order comes, and the watching ends at once.
        let _ = std::thread::Builder::new().name("systoll-orders".into()).spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                let order = ORDERS.iter().find(|(word, _)| *word == line).map(|(_, order)| *order);
                if order.is_none_or(|order| sender.send(order).is_err()) {
                    return;
                }
            }
        });
        Self { orders, over: false }
    }
}

impl Control for Obeying {
    fn progress(&mut self, _: u64, _: usize, _: bool) {}

    fn every(&self) -> Option<std::time::Duration> {
        None
    }

    fn snapshot(&mut self, _: Recording) {}

    fn leaves(&self) -> bool {
        self.over
    }

    fn order(&mut self) -> Option<TurnOrder> {
        match self.orders.try_recv() {
            Ok(order) => Some(order),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.over = true;
                None
            }
        }
    }

    fn totals(&mut self, totals: TurnTotals) {
        // If the answer has no reader, no further order comes.
        let _ = say(&Answer::Totals(totals));
    }
}

/// Writes an answer to standard output.
pub(crate) fn say(answer: &Answer) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", written(answer))?;
    out.flush()
}

fn written(answer: &Answer) -> Value {
    match answer {
        Answer::Totals(totals) => json!({
            "at_ns": totals.at_ns,
            "cpu_ns": totals.cpu_ns,
            "made": totals.made.iter().map(|(syscall, n)| (syscall.0, *n)).collect::<Vec<_>>(),
            "in_place": totals.in_place.iter().map(written_in_place).collect::<Vec<_>>(),
            "unanswered": totals.unanswered,
            "processes": totals.processes,
        }),
        Answer::Left(left) => json!({ "longest_stop_ns": left.longest_stop_ns, "problems": left.problems }),
        Answer::Refused(reason, advice) => json!({ "refused": reason, "advice": advice }),
    }
}

fn written_in_place(p: &InPlace) -> Value {
    let missed: Vec<_> = p.missed.iter().map(|(why, n)| (why.name(), *n)).collect();
    json!({ "syscall": p.syscall.0, "answered": p.answered, "needed": p.needed, "missed": missed })
}

/// Parses a line as an answer; returns `None` if it is not one.
pub(crate) fn read(line: &str) -> Option<Answer> {
    let value: Value = serde_json::from_str(line).ok()?;
    if let Some(reason) = value["refused"].as_str() {
        return Some(Answer::Refused(reason.to_owned(), value["advice"].as_str().map(str::to_owned)));
    }
    if let Some(longest_stop_ns) = value["longest_stop_ns"].as_u64() {
        return Some(Answer::Left(LeftState { longest_stop_ns, problems: texts(&value["problems"])? }));
    }
    let made: Option<BTreeMap<Sysno, u64>> =
        value["made"].as_array()?.iter().map(|pair| Some((sysno(&pair[0])?, pair[1].as_u64()?))).collect();
    let in_place: Option<Vec<InPlace>> = value["in_place"].as_array()?.iter().map(in_place).collect();
    Some(Answer::Totals(TurnTotals {
        at_ns: value["at_ns"].as_u64()?,
        cpu_ns: value["cpu_ns"].as_u64()?,
        made: made?,
        in_place: in_place?,
        unanswered: texts(&value["unanswered"])?,
        processes: usize::try_from(value["processes"].as_u64()?).ok()?,
    }))
}

fn sysno(value: &Value) -> Option<Sysno> {
    Some(Sysno(u32::try_from(value.as_u64()?).ok()?))
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn in_place(value: &Value) -> Option<InPlace> {
    let missed = |pair: &Value| {
        let why = Missed::ALL.into_iter().find(|why| Some(why.name()) == pair[0].as_str())?;
        Some((why, pair[1].as_u64()?))
    };
    Some(InPlace {
        syscall: sysno(&value["syscall"])?,
        answered: value["answered"].as_u64()?,
        needed: value["needed"].as_u64()?,
        missed: value["missed"].as_array()?.iter().map(missed).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_read_back() {
        let in_place = InPlace {
            syscall: Sysno(14),
            answered: 5,
            needed: 1,
            missed: vec![(Missed::Down, 7), (Missed::Unseen, 2)],
        };
        let totals = TurnTotals {
            at_ns: u64::MAX,
            cpu_ns: 3,
            made: BTreeMap::from([(Sysno(39), 4), (Sysno(1), u64::MAX)]),
            in_place: vec![in_place],
            unanswered: vec!["/bin/\"x\"\n: why".into()],
            processes: 2,
        };
        let left = LeftState { longest_stop_ns: 9, problems: vec!["a".into()] };
        let refused = Answer::Refused("no".into(), Some("do".into()));
        for answer in [Answer::Totals(totals), Answer::Left(left), refused] {
            let line = written(&answer).to_string();
            assert!(!line.contains('\n'));
            assert_eq!(read(&line), Some(answer));
        }
        for line in ["", "{}", "[]", "{\"made\":[[1]],\"in_place\":[]}", "nonsense"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
