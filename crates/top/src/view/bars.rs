//! Draws bars of work and waiting, and the graph of the last minutes.

use super::canvas::Canvas;
use crate::figures::percent;
use crate::history::Point;
use ratatui::layout::Rect;
use systoll_present::{Role, units};

/// Blocks of zero to eight eighths of a column's height.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Blocks of zero to seven eighths of a column's width.
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Returns a bar of work: the share of `ns` in `whole`, as blocks of at most `width` columns.
pub(super) fn work(ns: u64, whole: u64, width: usize) -> String {
    let eighths = (ns as f64 / whole.max(1) as f64 * (width * 8) as f64).round() as usize;
    let eighths = eighths.min(width * 8);
    "█".repeat(eighths / 8) + PARTS.get(eighths % 8).copied().unwrap_or_default()
}

/// Returns a bar of waiting: the share of `ns` in `whole`, as blocks of at most `width` columns.
pub(super) fn wait(ns: u64, whole: u64, width: usize) -> String {
    let columns = (ns as f64 / whole.max(1) as f64 * width as f64).round() as usize;
    "░".repeat(columns.min(width))
}

/// Draws a graph of what calls cost in each interval, the newest at the right, below a line that says what it is.
pub(super) fn draw_graph(points: impl Iterator<Item = Point>, area: Rect, canvas: &mut Canvas<'_>) {
    let points: Vec<Point> = points.collect();
    let shown = points.get(points.len().saturating_sub(area.width.into())..).unwrap_or_default();
    let share = |point: &Point| point.figures.toll_ns as f64 / point.span_ns.max(1) as f64;
    let most = shown.iter().map(share).fold(0.0, f64::max);
    let span = shown.iter().fold(0u64, |sum, point| sum.saturating_add(point.span_ns));
    if area.height < 2 || shown.is_empty() {
        return;
    }
    let label = format!(" toll, the last {}, up to {} of a CPU", units::time(span), percent(most));
    canvas.text(area.x, area.y, Role::Faint, &label, area.right());
    let rows = area.height - 1;
    let first = area.right().saturating_sub(u16::try_from(shown.len()).unwrap_or(area.width));
    for (x, point) in (first..area.right()).zip(shown) {
        let height = if most > 0.0 { share(point) / most * f64::from(rows) * 8.0 } else { 0.0 };
        // A cost above zero is always visible.
        let height = if point.figures.toll_ns > 0 { height.round().max(1.0) as u16 } else { 0 };
        for row in 0..rows {
            let eighths = height.saturating_sub(8 * row).min(8);
            let sign = EIGHTHS.get(usize::from(eighths)).copied().unwrap_or(" ");
            canvas.text(x, area.bottom() - 1 - row, Role::Name, sign, area.right());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_never_longer_than_its_width() {
        let widths = |ns: u64| (work(ns, 1_000, 6).chars().count(), wait(ns, 1_000, 6).chars().count());
        assert_eq!([0, 1, 170, 500, 1_000, u64::MAX].map(widths), [(0, 0), (0, 0), (1, 1), (3, 3), (6, 6), (6, 6)]);
        assert_eq!(work(520, 1_000, 6), "███▏");
        assert_eq!((work(5, 0, 6).chars().count(), work(0, 0, 6).as_str()), (6, ""));
    }
}
