//! Parses values of options: numbers, times, columns, languages.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::time::Duration;
use systoll_judge::{By, CodeLanguage};
use systoll_model::EnvChange;
use systoll_present::{TableColumn, TableSort};

/// Shortest interval of the agent, in which two of its shortest spans have room.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// The columns of the `-c` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(pub Vec<TableColumn>);

/// The property by which calls are regrouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regroup {
    /// A property of each call.
    By(By),
    /// The request for which a server makes the call.
    Request,
}

impl Regroup {
    /// Name of [`Regroup::Request`].
    const REQUEST: &str = "request";

    /// Returns all names.
    pub(super) fn names() -> Vec<&'static str> {
        By::ALL.iter().map(|by| by.name()).chain([Self::REQUEST]).collect()
    }

    /// Returns the property of each call, unless it is the request.
    pub(crate) fn by(self) -> Option<By> {
        match self {
            Self::By(by) => Some(by),
            Self::Request => None,
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        if name == Self::REQUEST { Some(Self::Request) } else { By::named(name).map(Self::By) }
    }
}

pub(super) fn by() -> impl TypedValueParser<Value = Regroup> {
    PossibleValuesParser::new(Regroup::names())
        .try_map(|name| Regroup::from_name(&name).ok_or("nothing calls are regrouped by"))
}

/// Parses a language: its name, a common alias, or the program that runs it (`js` and `node` for
/// `javascript`).
pub(super) fn language() -> impl TypedValueParser<Value = CodeLanguage> {
    let value = |language: &CodeLanguage| {
        PossibleValue::new(language.name()).aliases(language.files()).aliases(language.aliases())
    };
    PossibleValuesParser::new(CodeLanguage::ALL.iter().map(value))
        .try_map(move |name| CodeLanguage::meant(&name).ok_or("no language of a cure"))
}

pub(super) fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "a whole number, e.g. 20".to_owned())
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    in_unit(text, "s")
}

/// Parses the time between two repetitions of something.
pub(super) fn period(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("a time from one report to the next, e.g. 10s".to_owned()),
        period => Ok(period),
    }
}

/// Parses the agent's interval, in which a span must have room.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if interval < SHORTEST_INTERVAL { Err("at least 1s: a span takes half a second".to_owned()) } else { Ok(interval) }
}

/// Parses a time; without a unit it is in microseconds, as in strace.
pub(super) fn overhead(text: &str) -> Result<Duration, String> {
    in_unit(text, "us")
}

fn in_unit(text: &str, usual: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| "a number and a unit, e.g. 10ms, 2.5s, 1m".to_owned())?;
    let seconds = match if unit.is_empty() { usual } else { unit } {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{unit} is no unit of time: ns, us, ms, s, m or h")),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| "too long".to_owned())
}

/// Parses a share of a whole: `0.5%`, or a number from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    let share = number.parse::<f64>().ok().map(|number| number / whole);
    share.filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(|| "a share, e.g. 0.5%, or 0.005".to_owned())
}

/// Parses a number of bytes: `500M`, `2G`, or a plain number.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("{unit} is no unit of bytes: K, M, G or T")),
    };
    let number: u64 = number.parse().map_err(|_| "a number and a unit, e.g. 500M".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "too much".to_owned())
}

/// Parses a day as fleets' folders are named. Any other word would sort before or after all of
/// them.
pub(super) fn day(text: &str) -> Result<String, String> {
    let is_day = match text.split('-').collect::<Vec<_>>()[..] {
        [year, month, day] => {
            let within = |part: &str, digits: usize, most: u32| {
                let is_number = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
                is_number && part.parse().is_ok_and(|n: u32| (1..=most).contains(&n))
            };
            within(year, 4, 9999) && within(month, 2, 12) && within(day, 2, 31)
        }
        _ => false,
    };
    if is_day { Ok(text.to_owned()) } else { Err("a day is written YYYY-MM-DD, e.g. 2026-11-22".to_owned()) }
}

/// Parses a price in any currency.
pub(super) fn money(text: &str) -> Result<f64, String> {
    let price: Option<f64> = text.parse().ok();
    price.filter(|price| price.is_finite() && *price >= 0.0).ok_or_else(|| "a price, e.g. 0.04".to_owned())
}

pub(super) fn env_change(text: &str) -> Result<EnvChange, String> {
    let change = match text.split_once('=') {
        Some((name, value)) => (name, EnvChange::Set(name.into(), value.into())),
        None => (text, EnvChange::Remove(text.into())),
    };
    match change {
        ("", _) => Err("a variable needs a name".into()),
        (_, change) => Ok(change),
    }
}

pub(super) fn sort_by(text: &str) -> Result<TableSort, String> {
    TableSort::from_name(text).ok_or_else(|| format!("{}, or nothing", column_names()))
}

pub(super) fn column_names() -> String {
    TableColumn::ALL.map(TableColumn::name).join(", ")
}

/// Joins names for a sentence: `a, b or c`.
pub(super) fn any_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

pub(super) fn columns(text: &str) -> Result<Columns, String> {
    let mut columns = Vec::new();
    for name in text.split(',') {
        let column = match TableColumn::from_name(name) {
            Some(column) => column,
            None => return Err(format!("there is no column {name:?}: {}", column_names())),
        };
        if columns.contains(&column) {
            return Err(format!("column {name} stands there twice"));
        }
        columns.push(column);
    }
    Ok(Columns(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_prices_are_parsed() {
        assert!(day("2026-11-22").is_ok());
        for wrong in [
            "yesterday",
            "2026-1-2",
            "2026-13-01",
            "2026-11-00",
            "2026-11",
            "22-11-2026",
            "2026-11-22T00:00",
            "+026-11-22",
            "",
        ] {
            assert!(day(wrong).is_err(), "{wrong}");
        }
        assert_eq!(money("0.04"), Ok(0.04));
        assert!(["nan", "inf", "-1", "free", ""].iter().all(|wrong| money(wrong).is_err()));
    }

    #[test]
    fn shares_and_sizes_have_units() {
        assert_eq!((share("0.5%"), share("0.02")), (Ok(0.005), Ok(0.02)));
        assert!(["0", "0%", "101%", "-1%", "nan", "%", ""].iter().all(|text| share(text).is_err()));
        assert_eq!((bytes("500M"), bytes("7")), (Ok(500 << 20), Ok(7)));
        assert!(["", "M", "1.5G", "9999999999T", "1 G"].iter().all(|text| bytes(text).is_err()));
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(duration("2.5s"), Ok(Duration::from_millis(2500)));
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        assert!(period("0").is_err() && period("0ms").is_err() && period("1ms").is_ok());
        assert!(interval("999ms").is_err() && interval("1s").is_ok());
        assert!(duration("ms").is_err() && duration("1 day").is_err() && duration("-1s").is_err());
    }
}
