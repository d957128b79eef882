// Calls over time: how many had been made by when, for the system calls made most.

const LINES = ["#c4541a", "#2f6fb0", "#3d8b40", "#8c56b3", "#a8870f", "#5d6b78", "#b0417a"];

function timeline(data) {
  const body = at("time-body");
  const line = data.timeline;
  if (!line.series.length) {
    body.append(el("p", {}, "Not recorded: no window tells when calls were made."));
    return;
  }
  // As wide as there is room for, so that words stay readable on a telephone.
  const [width, height, left, right, top, foot] = [Math.min(Math.max(body.clientWidth, 300), 1300), 240, 56, 14, 14, 30];
  const end = line.times[line.times.length - 1] || 1;
  const most = round(Math.max(...line.series.map((s) => s.calls[s.calls.length - 1]), 4));
  const x = (t) => left + (t / end) * (width - left - right);
  const y = (n) => height - foot - (n / most) * (height - foot - top);
  const marks = [0, 0.25, 0.5, 0.75, 1];
  const moments = width < 500 ? [0, 0.5, 1] : marks;
  const paths = line.series.map((s, i) => drawn("polyline", { fill: "none", stroke: LINES[i % LINES.length], "stroke-width": 2,
    "stroke-dasharray": i >= 4 ? "6 3" : null, points: line.times.map((t, k) => `${x(t).toFixed(1)},${y(s.calls[k]).toFixed(1)}`).join(" ") }));
  const late = line.main_ns > end * 0.8;
  const main = line.main_ns === null ? [] : [
    drawn("line", { x1: x(line.main_ns), x2: x(line.main_ns), y1: top, y2: height - foot, stroke: "currentColor", "stroke-dasharray": "3 3", opacity: 0.6 }),
    drawn("text", { x: x(line.main_ns) + (late ? -5 : 5), y: top + 10, "text-anchor": late ? "end" : "start" }, "main begins")];
  body.append(
    drawn("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Calls made so far, by system call, over ${time(end)}; the table below has the totals` },
      marks.map((m) => [drawn("line", { x1: left, x2: width - right, y1: y(m * most), y2: y(m * most), stroke: "currentColor", opacity: 0.12 }),
        drawn("text", { x: left - 6, y: y(m * most) + 4, "text-anchor": "end" }, short(m * most))]),
      moments.map((m) => drawn("text", { x: x(m * end), y: height - 10, "text-anchor": m === 1 ? "end" : m ? "middle" : "start" }, time(m * end))), main, paths),
    el("ul", { class: "legend" }, line.series.map((s, i) => el("li", {},
      drawn("svg", { viewBox: "0 0 32 12", "aria-hidden": "true" }, drawn("line", { x1: 0, x2: 32, y1: 6, y2: 6, stroke: LINES[i % LINES.length], "stroke-width": 4, "stroke-dasharray": i >= 4 ? "8 4" : null })),
      el("code", {}, shown(s.name)), ` ${count(s.calls[s.calls.length - 1])}`))),
    el("p", { class: "faint" }, `${count(data.startup_calls)} of ${count(data.calls)} calls were made before main (start-up). The lines are exact where windows looked, and straight between those places.`));
}

/** The next number that four equal steps divide well. */
function round(n) {
  const size = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 4, 6, 8, 10].map((m) => m * size).find((m) => m >= n);
}

/** 12 345 as 12k. */
function short(n) {
  if (n >= 1e6) return `${digits(n / 1e6)}M`;
  if (n >= 1e4) return `${digits(n / 1e3)}k`;
  return count(Math.round(n));
}
