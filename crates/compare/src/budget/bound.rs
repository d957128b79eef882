//! Holds the bounds of a figure in a budget.

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use std::fmt;

/// The interval that a figure may lie in, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The lower end.
    pub low: f64,
    /// The upper end; infinite if there is none.
    pub high: f64,
}

/// The forms of a bound, as a message to the user.
const FORMS: &str = "a number, or \"..=50\" (at most), \"10..\" (at least), \"10..=20\"";

impl Bound {
    /// Returns the bound that only `figure` keeps.
    pub fn exactly(figure: f64) -> Self {
        Self { low: figure, high: figure }
    }

    /// Returns true if `figure` lies within the bound.
    pub fn holds(self, figure: f64) -> bool {
        (self.low..=self.high).contains(&figure)
    }

    /// Returns the distance from `figure` to the bound; 0 within it.
    pub fn excess(self, figure: f64) -> f64 {
        (figure - self.high).max(self.low - figure).max(0.0)
    }

    /// Returns true if only one end was given.
    pub fn is_one_sided(self) -> bool {
        self.high.is_infinite() || self.low <= 0.0 && self.high > 0.0
    }

    /// Parses `12`, `..=50`, `10..` or `10..=20`.
    fn parse(text: &str) -> Option<Self> {
        let number = |t: &str| t.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        let bound = match text.split_once("..") {
            None => Self::exactly(number(text)?),
            Some((low, "")) => Self { low: number(low)?, high: f64::INFINITY },
            Some((low, high)) => {
                let low = if low.trim().is_empty() { Some(0.0) } else { number(low) };
                Self { low: low?, high: number(high.strip_prefix('=')?)? }
            }
        };
        (bound.low <= bound.high).then_some(bound)
    }
}

impl fmt::Display for Bound {
    /// Writes the bound for people: `12`, `at most 50`, `10 to 20`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.low, self.high) {
            (low, high) if low == high => write!(f, "{low}"),
            (low, high) if high.is_infinite() => write!(f, "at least {low}"),
            (low, high) if low <= 0.0 => write!(f, "at most {high}"),
            (low, high) => write!(f, "{low} to {high}"),
        }
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BoundVisitor)
    }
}

struct BoundVisitor;

impl Visitor<'_> for BoundVisitor {
    type Value = Bound;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORMS)
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Bound, E> {
        u64::try_from(n).map_or_else(|_| Err(E::custom(FORMS)), |n| self.visit_u64(n))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Bound, E> {
        Ok(Bound::exactly(n as f64))
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Bound, E> {
        if n.is_finite() && n >= 0.0 { Ok(Bound::exactly(n)) } else { Err(E::custom(FORMS)) }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bound, E> {
        Bound::parse(text).ok_or_else(|| E::custom(format!("{text:?} is none: {FORMS}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_are_written_in_four_ways() {
        let show = |text: &str| Bound::parse(text).map(|b| b.to_string());
        assert_eq!(show("12").as_deref(), Some("12"));
        assert_eq!(show("..=50").as_deref(), Some("at most 50"));
        assert_eq!(show("10..").as_deref(), Some("at least 10"));
        assert_eq!(show("10..=20").as_deref(), Some("10 to 20"));
        assert_eq!(show("2.5..=3").as_deref(), Some("2.5 to 3"));
        for wrong in ["", "..", "..50", "20..=10", "-1", "nan", "1..=inf", "a", "..="] {
            assert_eq!(show(wrong), None, "{wrong}");
        }
        assert!(Bound::parse("..=3").unwrap().holds(3.0) && !Bound::parse("1..").unwrap().holds(0.0));
    }

    proptest! {
        #[test]
        fn no_text_does_harm(text in ".{0,20}", figure in any::<u64>()) {
            if let Some(bound) = Bound::parse(&text) {
                prop_assert!(bound.low <= bound.high);
                prop_assert_eq!(bound.holds(figure as f64), bound.excess(figure as f64) == 0.0);
            }
        }
    }
}
