//! The ranges that are decoded: functions, as far as tables describe them, and the gaps between them.

use super::cfi::Cfi;
use super::go;
use super::image::Image;

/// A stretch of code that is decoded from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) end: u64,
    /// True if a table says that a function starts here; false for a gap.
    pub(super) known: bool,
}

/// Divides all code of the file into extents, ascending. Call frame information takes precedence over Go's table, and
/// that table over symbols, whose sizes people write by hand. Ranges that symbols call data are left out: openssl has
/// its tables among the functions.
pub(super) fn extents(image: &Image<'_>, cfi: &Cfi<'_>) -> Vec<Extent> {
    let named = |start: u64| image.symbols.binary_search_by_key(&start, |s| s.0).is_ok();
    let by_cfi = cfi.functions.all().iter().map(|f| {
        let early = f.is_signal_trampoline && !named(f.start);
        (f.start + u64::from(early), f.end)
    });
    let mut known = Vec::new();
    add(&mut known, by_cfi.collect());
    add(&mut known, go::functions(image));
    let sized = |(start, size): &(u64, u64)| (*start, start.saturating_add(*size));
    add(&mut known, image.symbols.iter().map(sized).collect());
    let functions = known.clone();
    add(&mut known, image.objects.iter().map(sized).collect());
    let mut extents = cut(image, &known);
    extents.retain(|e| !e.known || functions.binary_search_by_key(&e.start, |f| f.0).is_ok());
    extents
}

/// Adds the ranges of `more` that begin outside of `known`, cut to the room that there is.
fn add(known: &mut Vec<(u64, u64)>, mut more: Vec<(u64, u64)>) {
    more.sort_unstable();
    let mut reached = 0;
    let mut fresh = Vec::new();
    for (start, end) in more {
        let next = known.partition_point(|k| k.0 <= start);
        let inside = next.checked_sub(1).and_then(|n| known.get(n)).is_some_and(|k| start < k.1);
        let end = known.get(next).map_or(end, |k| end.min(k.0));
        if start < reached || inside || end <= start {
            continue;
        }
        reached = end;
        fresh.push((start, end));
    }
    known.extend(fresh);
    known.sort_unstable();
}

fn cut(image: &Image<'_>, known: &[(u64, u64)]) -> Vec<Extent> {
    let mut extents = Vec::new();
    for region in &image.code {
        let mut at = region.start;
        let first = known.partition_point(|k| k.0 < region.start);
        let inside = known.iter().skip(first).take_while(|k| k.0 < region.end());
        for (start, end) in inside.map(|k| (k.0, k.1.min(region.end()))) {
            if at < start {
                extents.push(Extent { start: at, end: start, known: false });
            }
            extents.push(Extent { start, end, known: true });
            at = end;
        }
        if at < region.end() {
            extents.push(Extent { start: at, end: region.end(), known: false });
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    use super::add;

    #[test]
    fn known_extents_take_precedence() {
        let mut known = vec![(10, 20), (30, 40)];
        add(&mut known, vec![(5, 8), (12, 50), (20, 99), (41, 42), (41, 50), (60, 60)]);
        assert_eq!(known, [(5, 8), (10, 20), (20, 30), (30, 40), (41, 42)]);
    }

    #[test]
    fn overlapping_functions_are_one() {
        let mut known = Vec::new();
        add(&mut known, vec![(10, 20), (15, 30), (20, 30)]);
        assert_eq!(known, [(10, 20), (20, 30)]);
    }
}
