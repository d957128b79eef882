//! Makes the path of a run's table among many:
//! `day=2026-11-22/service=shop/host=web-7/RUN.parquet`, as Hive, Spark, DuckDB, Trino and
//! ClickHouse read folders as columns.
//!
//! Invariant: whatever a name holds, it becomes the name of one folder, of at most [`LONGEST`]
//! bytes, and leads nowhere else.

use std::path::PathBuf;
use systoll_model::Recording;

/// Labels of a run that the user gives. They replace the recording's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The service that the program is; empty for the command's file name.
    pub service: String,
    /// The build that ran, in the user's own words; may be empty.
    pub release: String,
    /// The name of the box; empty for the recording's.
    pub host: String,
}

/// Returns the path of a run's table within a folder of many.
pub(super) fn place(rec: &Recording, labels: &Labels) -> PathBuf {
    let h = &rec.header;
    let program = h.command.first().map_or("", |c| c.rsplit('/').next().unwrap_or_default());
    let said = |label: &str, recorded: &str| folder(if label.is_empty() { recorded } else { label });
    PathBuf::from(format!("day={}", day(h.started_unix)))
        .join(format!("service={}", said(&labels.service, program)))
        .join(format!("host={}", said(&labels.host, &h.node)))
        .join(format!("{}.parquet", run_id(rec)))
}

/// Largest length of a value in a folder's name, bytes; file systems allow 255 for the whole name.
const LONGEST: usize = 200;

/// Writes a name as Hive writes it in a folder's name: characters that are no letter, digit or
/// plain sign as `%` and two digits. A name that is too long is cut and ends with a hash of all of
/// it.
fn folder(name: &str) -> String {
    if name.is_empty() {
        return "unknown".into();
    }
    let number = format!("-{:016x}", hash(&[name.as_bytes()]));
    // The name is cut between characters: readers could not decode half of one.
    let (mut out, mut cut) = (String::new(), 0);
    for (at, c) in name.char_indices() {
        // Another first character would be Hive's own name for "no value", or hide the folder.
        if c.is_ascii_alphanumeric() || (at > 0 && matches!(c, '.' | '_' | '-')) {
            out.push(c);
        } else {
            let mut bytes = [0; 4];
            out.extend(c.encode_utf8(&mut bytes).bytes().map(|b| format!("%{b:02X}")));
        }
        if out.len() <= LONGEST - number.len() {
            cut = out.len();
        }
        if out.len() > LONGEST {
            out.truncate(cut);
            return out + &number;
        }
    }
    out
}

/// Returns a run's own name: its start, and a hash of figures that no two runs share.
pub(super) fn run_id(rec: &Recording) -> String {
    let h = &rec.header;
    let figures = [h.started_unix, h.seed, h.wall_ns, h.user_ns, h.sys_ns, rec.calls()].map(u64::to_le_bytes);
    let words = h.command.iter().map(String::as_bytes).chain([h.node.as_bytes()]);
    let parts: Vec<&[u8]> = figures.iter().map(<[u8; 8]>::as_slice).chain(words).collect();
    format!("{}-{:016x}", h.started_unix.min(LAST_SECOND), hash(&parts))
}

/// Computes FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>), which is the same in every
/// version of this program.
fn hash(parts: &[&[u8]]) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    // A byte that no text has ends each part.
    parts.iter().fold(0xcbf2_9ce4_8422_2325, |hash, part| step(part.iter().fold(hash, |h, b| step(h, *b)), 0xff))
}

/// The last second of the year 9999, since 1970.
const LAST_SECOND: u64 = 253_402_300_799;

/// Returns the day of a time in seconds since 1970, in UTC, as ISO 8601 writes it. The formulas are
/// Hinnant's (<https://howardhinnant.github.io/date_algorithms.html>): years start in March, which
/// puts leap days last.
pub fn day(unix: u64) -> String {
    let days = unix.min(LAST_SECOND) / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_the_calendars() {
        let of = [0, 951_782_399, 951_782_400, 1_795_344_000, u64::MAX].map(day);
        assert_eq!(of, ["1970-01-01", "2000-02-28", "2000-02-29", "2026-11-22", "9999-12-31"]);
    }

    #[test]
    fn names_are_one_folder_whatever_they_hold() {
        assert_eq!(
            ["shop", "a b", "", "../../etc", "_x"].map(folder),
            ["shop", "a%20b", "unknown", "%2E.%2F..%2Fetc", "%5Fx"]
        );
        assert_eq!(folder("__HIVE_DEFAULT_PARTITION__"), "%5F_HIVE_DEFAULT_PARTITION__");
        for name in ["x".repeat(1 << 20), "é".repeat(1 << 20), "/\0\n'=".repeat(1000)] {
            let (one, other) = (folder(&name), folder(&(name + "y")));
            assert!(one.len() <= LONGEST && one != other, "{one}");
            assert!(one.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-%".contains(&b)), "{one}");
        }
        assert!(folder(&"é".repeat(1000)).starts_with("%C3%A9%C3%A9"));
    }

    #[test]
    fn runs_have_names_of_their_own() {
        let mut rec = Recording::default();
        let first = run_id(&rec);
        assert_eq!(first, run_id(&rec));
        rec.header.command = vec!["a".into(), "b".into()];
        let second = run_id(&rec);
        rec.header.command = vec!["ab".into()];
        assert!(first != second && second != run_id(&rec));
    }
}
