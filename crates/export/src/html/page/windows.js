// Windows as strace would have written them, what findings are about marked; the box and its prices.

function windows(data) {
  const body = at("windows-body");
  if (!data.windows.length) {
    body.append(el("p", {}, "No window was kept in this recording."));
    return;
  }
  body.append(el("p", { class: "faint" }, "Some 32 consecutive calls of a thread, recorded whole now and then. Marked: calls of rows that a finding is about."));
  const first = Math.max(data.windows.findIndex((w) => w.cause), 0);
  body.append(...data.windows.map((w, i) => el("details", { open: i === first },
    el("summary", {}, `${shown(w.program)}, thread ${w.thread}, at ${time(w.calls[0].at_ns)}: ${counted(w.calls.length, "call", "calls")}, opened by `, el("code", {}, shown(w.opened_by)), w.cause ? ` (${shown(w.cause)})` : ""),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `window ${i + 1}` },
      el("table", { class: "strace" }, el("thead", {}, el("tr", {}, ["after", "call", "took"].map((h) => el("th", { scope: "col", class: h === "call" ? null : "n" }, h)))),
        el("tbody", {}, w.calls.map((c, k) => el("tr", { class: c.cause ? "claimed" : null, title: c.cause ? shown(c.cause) : null },
          el("td", { class: "n faint" }, k ? `+${time(Math.max(0, c.at_ns - w.calls[k - 1].at_ns))}` : ""), el("td", { class: "call" }, shown(c.text)), el("td", { class: "n" }, time(c.took_ns))))))))));
  if (data.left_out.windows) body.append(el("p", { class: "faint" }, `${counted(data.left_out.windows, "more window is", "more windows are")} in the recording.`));
}

function prices(data) {
  const host = data.host;
  const crossing = [data.crossing_ns.before, data.crossing_ns.after].filter((n) => n !== null).map(time).join(" before the run, ");
  const facts = [["processor", `${shown(host.cpu)}, ${host.cpus} online`], ["kernel", shown(host.kernel)], ["clock", shown(host.clock_source)],
    ["virtualisation", host.virtualization ? shown(host.virtualization) : "none seen"], ["a system call that does nothing", crossing ? `${crossing}${data.crossing_ns.after !== null ? " after it" : ""}` : "not measured"],
    ["watching adds to a call", data.observer_ns_per_call === null ? "not known" : time(data.observer_ns_per_call)]];
  const rows = Object.entries(data.prices).sort((a, b) => (b[1].ns ?? 0) - (a[1].ns ?? 0));
  at("prices-body").append(el("dl", { class: "figures" }, facts.map(([what, value]) => el("div", {}, el("dt", {}, what), el("dd", {}, value)))));
  if (!rows.length) return;
  at("prices-body").append(el("p", {}, "What one call costs on this box:"), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "prices" },
    el("table", {}, el("thead", {}, el("tr", {}, ["call", "price", "from", "to", "how it is known"].map((h, i) => el("th", { scope: "col", class: i && i < 4 ? "n" : null }, h)))),
      el("tbody", {}, rows.map(([name, p]) => el("tr", {}, el("td", { class: "name" }, shown(name)), [p.ns, p.low, p.high].map((n) => el("td", { class: "n" }, time(n))), el("td", {}, p.source)))))));
}
