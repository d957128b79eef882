//! Tests of the tables as a whole.

use super::effects::EFFECT_LINES;
use super::state_lines::STATE_LINES;
use super::vocabulary::When;
use super::*;
use systoll_model::Sysno;
use systoll_model::constants::PR_SET_NAME;

#[test]
fn every_line_names_a_call_the_kernel_has() {
    for name in Semantics::named_calls() {
        assert!(Sysno::from_name(name).is_some(), "{name}");
    }
    for call in EFFECT_LINES {
        let lines = EFFECT_LINES.iter().filter(|e| e.call == call.call).count();
        assert!(lines <= Effects::MOST, "{}: {lines}", call.call);
    }
    for line in STATE_LINES {
        if let Across::Unless(calls) = line.about.across {
            assert!(calls.iter().all(|c| Sysno::from_name(c).is_some()), "{}", line.about.thing);
        }
    }
}

/// Returns the form of a line's key, regardless of the arguments' positions.
fn shape(entry: &StateLine) -> Vec<(&'static str, u64)> {
    let part = |source: &Source| match *source {
        Source::Arg(_) => ("argument", u64::MAX),
        Source::ArgMask(_, mask) => ("argument", mask),
        Source::Args(n) => ("arguments", n.into()),
        Source::In(_) | Source::InAbsolute(_) => ("memory", 0),
        Source::Fd(_) => ("descriptor", 0),
        Source::File(_) => ("file", 0),
        Source::Path { .. } => ("path", 0),
        Source::Const(n) => ("number", n),
        Source::Call => ("call", Sysno::from_name(entry.call).map_or(0, |s| s.0.into())),
        _ => ("other", 0),
    };
    entry.key.iter().map(part).collect()
}

#[test]
fn what_sets_one_state_has_one_key_or_leaves_the_others_in_doubt() {
    let sets: Vec<&StateLine> = STATE_LINES.iter().filter(|e| matches!(e.act, Act::Set { .. })).collect();
    let voids = |entry: &StateLine| {
        let of = EFFECT_LINES.iter().filter(|e| e.call == entry.call);
        of.map(|e| e.effect).any(|effect| match effect {
            Effect::Changes(state) | Effect::ChangesOf(_, state) => state.id() == entry.about.id(),
            Effect::Identity => entry.about.id() == ATTRIBUTES.id(),
            _ => false,
        })
    };
    // Options of prctl are different state, as are pieces that one call tells apart by its command.
    let apart = |one: &StateLine, other: &StateLine| {
        one.call == other.call
            && one.when.iter().chain(other.when).any(|w| matches!(w, When::OneOf(0, _) | When::Is(0, PR_SET_NAME)))
    };
    // Lines whose keys begin with different numbers are different state as well.
    let number = |line: &StateLine| if let Some(Source::Const(n)) = line.key.first() { Some(*n) } else { None };
    let numbered =
        |one: &StateLine, other: &StateLine| number(one).zip(number(other)).is_some_and(|(one, other)| one != other);
    for (n, one) in sets.iter().enumerate() {
        for other in &sets[n + 1..] {
            if one.about.id() != other.about.id() || apart(one, other) || numbered(one, other) {
                continue;
            }
            let well = shape(one) == shape(other) || one.about.shared != Shared::No || (voids(one) && voids(other));
            assert!(well, "{} and {} set {} by different keys", one.call, other.call, one.about.thing);
        }
    }
}
