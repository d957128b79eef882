//! Reads the beginning of a line: the thread, the time and the address.

/// A time as the tracer was told to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// `-ttt`: ns since 1970.
    Unix(u64),
    /// `-t`, `-tt`: ns since midnight.
    OfDay(u64),
    /// `-r`: ns since the line before.
    Since(u64),
}

/// A line without the text in front of it, which is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Led<'a> {
    pub(crate) tid: Option<u32>,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) body: &'a [u8],
}

/// Largest number of items in front of a line; strace writes fewer.
const MOST_ITEMS: usize = 6;
/// Least number of seconds that is a date for `-ttt`: `-r` tells no times as long.
const LONG_AGO_S: u64 = 100_000_000;

/// Splits the thread's id, the times and the address off the front of a line.
pub(crate) fn led(line: &[u8]) -> Led<'_> {
    let mut led = Led { tid: None, stamp: None, body: line };
    for _ in 0..MOST_ITEMS {
        let text = led.body.trim_ascii_start();
        let item = match text.first() {
            Some(b'0'..=b'9') => numbered(text),
            Some(b'[') => bracketed(text),
            Some(b'(') if text.starts_with(b"(+") => since(text),
            _ => None,
        };
        led.body = text;
        let Some(Item { told, rest }) = item.filter(|item| item.rest.len() < text.len()) else { break };
        match told {
            LeaderItem::Stamp(stamp) => led.stamp = led.stamp.or(Some(stamp)),
            // If the stamp has whole seconds only, the time since the line before tells more.
            LeaderItem::Since(ns) => {
                led.stamp = match led.stamp {
                    Some(Stamp::OfDay(day)) if day.is_multiple_of(1_000_000_000) => Some(Stamp::Since(ns)),
                    stamp => stamp,
                }
            }
            LeaderItem::Thread(tid) => led.tid = led.tid.or(Some(tid)),
            LeaderItem::Nothing => {}
        }
        led.body = rest;
    }
    led
}

/// The meaning of an item in front of a line.
#[derive(Clone, Copy)]
enum LeaderItem {
    Stamp(Stamp),
    /// The time since the line before, ns, which may stand beside a time of day.
    Since(u64),
    Thread(u32),
    /// An address, or a time that another item tells better.
    Nothing,
}

/// An item in front of a line.
#[derive(Clone, Copy)]
struct Item<'a> {
    told: LeaderItem,
    /// The text behind the item.
    rest: &'a [u8],
}

/// Reads `4882 `, `4882<sh> `, `03:51:40.903650 `, `1795269868.123456 ` or `0.000025 `.
fn numbered(text: &[u8]) -> Option<Item<'_>> {
    let (number, rest) = digits(text)?;
    match rest.first()? {
        b' ' => Some(Item { told: LeaderItem::Thread(u32::try_from(number).ok()?), rest }),
        b'<' => {
            let end = memchr::memchr(b'>', rest)?;
            let rest = rest.get(end + 1..)?;
            let told = LeaderItem::Thread(u32::try_from(number).ok()?);
            rest.starts_with(b" ").then_some(Item { told, rest })
        }
        b'.' => {
            let (fraction, rest) = fraction(rest.get(1..)?)?;
            let ns = number.checked_mul(1_000_000_000)?.checked_add(fraction)?;
            let stamp = if number >= LONG_AGO_S { Stamp::Unix(ns) } else { Stamp::Since(ns) };
            rest.starts_with(b" ").then_some(Item { told: LeaderItem::Stamp(stamp), rest })
        }
        b':' => {
            let (minutes, rest) = digits(rest.get(1..)?)?;
            let (seconds, rest) = digits(rest.strip_prefix(b":")?)?;
            let (fraction, rest) = match rest.strip_prefix(b".") {
                Some(rest) => fraction(rest)?,
                None => (0, rest),
            };
            let whole = number.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?;
            let ns = whole.checked_mul(1_000_000_000)?.checked_add(fraction)?;
            (rest.starts_with(b" ") && number < 25).then_some(Item { told: LeaderItem::Stamp(Stamp::OfDay(ns)), rest })
        }
        _ => None,
    }
}

/// Reads `[pid  4941] `, `[pid 4941<sh>] `, `[  59] `, `[00007ff4ed7c9ad7] ` or ltrace's
/// `[0x7ff4ed7c9ad7] `.
fn bracketed(text: &[u8]) -> Option<Item<'_>> {
    if let Some(rest) = text.strip_prefix(b"[pid ") {
        let (tid, rest) = digits(rest.trim_ascii_start())?;
        let end = memchr::memchr(b']', rest)?;
        return Some(Item { told: LeaderItem::Thread(u32::try_from(tid).ok()?), rest: rest.get(end + 1..)? });
    }
    let end = memchr::memchr(b']', text.get(..40.min(text.len()))?)?;
    let inner = text.get(1..end)?;
    let inner = inner.strip_prefix(b"0x").unwrap_or(inner);
    let address = !inner.is_empty() && inner.iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b' ' | b'?'));
    let rest = text.get(end + 1..)?;
    (address && rest.starts_with(b" ")).then_some(Item { told: LeaderItem::Nothing, rest })
}

/// Reads `(+     0.000025) `.
fn since(text: &[u8]) -> Option<Item<'_>> {
    let end = memchr::memchr(b')', text)?;
    let rest = text.get(end + 1..)?;
    let told = digits(text.get(2..end)?.trim_ascii()).and_then(|(seconds, rest)| {
        let (fraction, _) = fraction(rest.strip_prefix(b".")?)?;
        seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
    });
    Some(Item { told: told.map_or(LeaderItem::Nothing, LeaderItem::Since), rest })
}

fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || digits.len() > 12 {
        return None;
    }
    Some((digits.iter().fold(0, |sum, b| sum * 10 + u64::from(b - b'0')), rest))
}

/// Returns the digits behind a decimal point as ns, and the text behind them.
fn fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    let (_, rest) = digits(text)?;
    let shown = text.len() - rest.len();
    let ns = text.iter().take(shown.min(9)).fold(0, |sum, b| sum * 10 + u64::from(b - b'0'));
    Some((ns * 10u64.pow(9 - shown.min(9) as u32), rest))
}

/// Returns the time in angle brackets at the end of a line, `<0.000016>`, in ns, and the text in
/// front of it.
pub(crate) fn elapsed(text: &[u8]) -> (Option<u64>, &[u8]) {
    let text = text.trim_ascii_end();
    let found = || {
        let inner = text.strip_suffix(b">")?;
        let open = memchr::memrchr(b'<', inner)?;
        let (seconds, rest) = digits(inner.get(open + 1..)?)?;
        let (fraction, rest) = fraction(rest.strip_prefix(b".")?)?;
        let ns = seconds.checked_mul(1_000_000_000)?.checked_add(fraction)?;
        rest.is_empty().then_some((ns, text.get(..open)?))
    };
    found().map_or((None, text), |(ns, rest)| (Some(ns), rest.trim_ascii_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> (Option<u32>, Option<Stamp>, String) {
        let led = led(line.as_bytes());
        (led.tid, led.stamp, String::from_utf8_lossy(led.body).into_owned())
    }

    #[test]
    fn leaders() {
        let body = || "brk(NULL) = 0".to_owned();
        assert_eq!(said("brk(NULL) = 0"), (None, None, body()));
        assert_eq!(said("4882  brk(NULL) = 0"), (Some(4882), None, body()));
        assert_eq!(said("4882<sh> brk(NULL) = 0"), (Some(4882), None, body()));
        assert_eq!(said("[pid  4941] brk(NULL) = 0"), (Some(4941), None, body()));
        assert_eq!(said("[pid 4941<sh>] brk(NULL) = 0"), (Some(4941), None, body()));
        let day = Some(Stamp::OfDay(13_900_903_650_000));
        assert_eq!(said("4882  03:51:40.903650 brk(NULL) = 0"), (Some(4882), day, body()));
        assert_eq!(said("03:51:40 brk(NULL) = 0"), (None, Some(Stamp::OfDay(13_900_000_000_000)), body()));
        let unix = Some(Stamp::Unix(1_795_269_868_123_456_000));
        assert_eq!(said("1795269868.123456 brk(NULL) = 0"), (None, unix, body()));
        assert_eq!(said("     0.000025 brk(NULL) = 0"), (None, Some(Stamp::Since(25_000)), body()));
        assert_eq!(said("03:51:40 (+     0.000025) brk(NULL) = 0").1, Some(Stamp::Since(25_000)));
        let day = Some(Stamp::OfDay(13_900_500_000_000));
        assert_eq!(said("03:51:40.5 (+     0.000025) brk(NULL) = 0").1, day);
        assert_eq!(said("[  59] brk(NULL) = 0").2, body());
        assert_eq!(said("[00007ff4ed7c9ad7] brk(NULL) = 0").2, body());
        assert_eq!(said("[0x7ff4ed7c9ad7] brk(NULL) = 0").2, body());
        assert_eq!(said("[ Process PID=4 runs in 32 bit mode. ]").2, "[ Process PID=4 runs in 32 bit mode. ]");
    }

    #[test]
    fn times_at_the_end() {
        assert_eq!(elapsed(b"= 0 <0.000016>"), (Some(16_000), &b"= 0"[..]));
        assert_eq!(elapsed(b"= 3</tmp/a>"), (None, &b"= 3</tmp/a>"[..]));
        assert_eq!(elapsed(b"= 3</tmp/a> <1.5>\n"), (Some(1_500_000_000), &b"= 3</tmp/a>"[..]));
    }
}
