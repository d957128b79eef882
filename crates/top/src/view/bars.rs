//! Bars: what was worked and waited, and the graph of the last minutes.

use super::canvas::Canvas;
use crate::figures::percent;
use crate::history::Point;
use crate::tally::Figures;
use ratatui::layout::Rect;
use systoll_present::{Role, units};

/// Eighths of a column's height.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Returns the bar of a line, `width` columns for the time `whole` ns: what was worked, what was waited.
pub(super) fn bar(figures: &Figures, whole: u64, width: usize) -> (String, String) {
    let columns = |ns: u64| (ns as f64 / whole.max(1) as f64 * width as f64).round() as usize;
    let worked = columns(figures.toll_ns).min(width);
    let both = columns(figures.toll_ns.saturating_add(figures.waited_ns)).clamp(worked, width);
    ("█".repeat(worked), "░".repeat(both - worked))
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
        // What is more than nothing is seen.
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
    fn a_bar_shows_work_before_waiting_and_never_more_than_its_width() {
        let figures = |toll_ns, waited_ns| Figures { toll_ns, waited_ns, ..Figures::default() };
        let widths = |f: Figures| {
            let (worked, waited) = bar(&f, 1_000, 10);
            (worked.chars().count(), waited.chars().count())
        };
        assert_eq!(widths(figures(300, 500)), (3, 5));
        assert_eq!(widths(figures(0, 0)), (0, 0));
        assert_eq!(widths(figures(u64::MAX, u64::MAX)), (10, 0));
        assert_eq!(widths(figures(200, u64::MAX)), (2, 8));
    }
}
