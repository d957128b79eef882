//! Suggests names that resemble an unknown one.

/// Names that a sentence lists, at most.
pub(crate) const FEW: usize = 12;

/// Lists the known names as the end of a sentence: all if they are few, else the nearest, or
/// nothing.
pub(crate) fn others(name: &str, known: &[String]) -> String {
    if known.is_empty() {
        return String::new();
    }
    if known.len() <= FEW {
        return format!("; there are: {}", known.join(", "));
    }
    let near = nearest(name, known.iter().map(String::as_str));
    if near.is_empty() { String::new() } else { format!("; the nearest: {}", near.join(", ")) }
}

/// Least likeness, 0 to 1, of names that may be meant: it allows two typing errors in five letters. By common letters alone,
/// `bogus` would be like `get_robust_list`, and `--nope` like `--open`.
const ALIKE: f64 = 0.59;

/// Returns true if `name` may have been typed for `other`.
pub(crate) fn is_alike(name: &str, other: &str) -> bool {
    let [name, other] = [name, other].map(|word| word.trim_start_matches('-'));
    other.starts_with(name) && !name.is_empty() || strsim::normalized_damerau_levenshtein(name, other) > ALIKE
}

/// Returns the names nearest to this one, at most three, the nearest first.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const NEAREST: usize = 3;
    let likeness = |other: &str| {
        if other.contains(name) { 1.0 } else { strsim::normalized_damerau_levenshtein(name, other) }
    };
    let mut near: Vec<(f64, &str)> = known.map(|k| (likeness(k), k)).filter(|n| n.0 > ALIKE).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.len().cmp(&b.1.len())).then(a.1.cmp(b.1)));
    near.into_iter().take(NEAREST).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::others;

    #[test]
    fn the_nearest_names_are_listed() {
        let many: Vec<String> =
            ["tz-unset", "tiny-io", "sigmask-context", "sigmask-setjmp", "sigmask-toggle", "sync-per-op", "spin-wait"]
                .into_iter()
                .chain(["stat-per-op", "umask-per-op", "split-sends", "sleep-poll", "search-path", "heap-trim"])
                .map(String::from)
                .collect();
        assert_eq!(others("tz-unsett", &many), "; the nearest: tz-unset");
        assert_eq!(others("sigmask", &many), "; the nearest: sigmask-setjmp, sigmask-toggle, sigmask-context");
        assert_eq!(others("qqq", &many), "");
        let calls: Vec<String> = systoll_model::signatures().iter().map(|s| s.sysno.to_string()).collect();
        assert_eq!(others("bogus", &calls), "");
        assert_eq!(others("reed", &calls), "; the nearest: read, readv");
        assert_eq!(others("qqq", &[]), "");
        assert_eq!(others("qqq", &many[..2]), "; there are: tz-unset, tiny-io");
    }

    #[test]
    fn a_word_with_the_same_letters_is_not_alike() {
        assert!(super::is_alike("--jsno", "--json") && super::is_alike("--out", "--output"));
        assert!(!super::is_alike("--nope", "--open") && !super::is_alike("--x", "--exclude"));
    }
}
