//! Expressions in the lines of text cases: `i%4`, `4096*i+8`, `i%8==0`, `j<40`.

use anyhow::{Result, bail, ensure};

/// The numbers that expressions may name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// The number of the repetition of the block, from 0.
    pub(super) i: i64,
    /// The number of the repetition of a line, from 0.
    pub(super) j: i64,
}

/// An expression of whole numbers; a comparison is 1 if it holds, and else 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Number(i64),
    I,
    J,
    Two(Box<Expression>, Operator, Box<Expression>),
}

/// An operator between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Less,
    More,
    Plus,
    Minus,
    Times,
    By,
    Rest,
}

/// The operators with their signs and precedences, longer signs before shorter ones.
const OPERATORS: [(&str, Operator, u8); 9] = [
    ("==", Operator::Equal, 1),
    ("!=", Operator::Unequal, 1),
    ("<", Operator::Less, 1),
    (">", Operator::More, 1),
    ("+", Operator::Plus, 2),
    ("-", Operator::Minus, 2),
    ("*", Operator::Times, 3),
    ("/", Operator::By, 3),
    ("%", Operator::Rest, 3),
];

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// If the text is none.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut rest = text.trim();
        let found = above(&mut rest, 0)?;
        ensure!(rest.is_empty(), "{rest:?} follows an expression");
        Ok(found)
    }

    /// Returns the value; 0 where it is no number, as behind a division by 0.
    pub(super) fn value(&self, counters: Counters) -> i64 {
        match self {
            Self::Number(number) => *number,
            Self::I => counters.i,
            Self::J => counters.j,
            Self::Two(left, operator, right) => {
                let (left, right) = (left.value(counters), right.value(counters));
                match operator {
                    Operator::Equal => i64::from(left == right),
                    Operator::Unequal => i64::from(left != right),
                    Operator::Less => i64::from(left < right),
                    Operator::More => i64::from(left > right),
                    Operator::Plus => left.wrapping_add(right),
                    Operator::Minus => left.wrapping_sub(right),
                    Operator::Times => left.wrapping_mul(right),
                    Operator::By => left.checked_div(right).unwrap_or(0),
                    Operator::Rest => left.checked_rem(right).unwrap_or(0),
                }
            }
        }
    }

    /// Returns true if the expression is a comparison.
    pub(super) fn compares(&self) -> bool {
        use Operator::{Equal, Less, More, Unequal};
        matches!(self, Self::Two(_, Equal | Unequal | Less | More, _))
    }

    /// Returns the number of times that a line with this prefix is there; `None` if the prefix is no `j<…`.
    pub(super) fn times(&self) -> Option<&Self> {
        match self {
            Self::Two(left, Operator::Less, most) if **left == Self::J => Some(most),
            _ => None,
        }
    }
}

/// Reads what binds more strongly than `least`, and leaves the text behind it in `rest`.
fn above(rest: &mut &str, least: u8) -> Result<Expression> {
    let mut left = single(rest)?;
    loop {
        *rest = rest.trim_start();
        let next =
            OPERATORS.iter().find(|(sign, ..)| rest.starts_with(sign)).filter(|(.., strength)| *strength > least);
        let Some((sign, operator, strength)) = next else { return Ok(left) };
        *rest = &rest[sign.len()..];
        left = Expression::Two(Box::new(left), *operator, Box::new(above(rest, *strength)?));
    }
}

/// Reads a number, a counter, or an expression in brackets.
fn single(rest: &mut &str) -> Result<Expression> {
    *rest = rest.trim_start();
    if let Some(inner) = rest.strip_prefix('(') {
        *rest = inner;
        let found = above(rest, 0)?;
        let Some(behind) = rest.trim_start().strip_prefix(')') else { bail!("a bracket is not closed") };
        *rest = behind;
        return Ok(found);
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (word, behind) = rest.split_at(end);
    *rest = behind;
    let hexadecimal = || i64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    Ok(match word {
        "i" => Expression::I,
        "j" => Expression::J,
        _ => match word.parse().ok().or_else(hexadecimal) {
            Some(number) => Expression::Number(number),
            None => bail!("{word:?} is no number, and neither i nor j"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_the_usual_precedences() {
        let value = |text: &str| Expression::parse(text).unwrap().value(Counters { i: 10, j: 3 });
        for (text, number) in [("i%4", 2), ("2+3*i", 32), ("(2+3)*i", 50), ("i-j-1", 6), ("0x10*i", 160), ("i/0", 0)] {
            assert_eq!(value(text), number, "{text}");
        }
        for (text, number) in [("i%5==0", 1), ("i%5 != 0", 0), ("j<3", 0), ("i>j*3", 1)] {
            assert_eq!(value(text), number, "{text}");
        }
        for text in ["", "k", "1+", "(i", "i i", "st_mode"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }
}
