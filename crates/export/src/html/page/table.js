// The exact table: sorted, filtered, regrouped.

const GROUPS = [
  ["row", (r) => `${r.syscall}  ${r.api || ""}  ${r.function || ""}`], ["system call", (r) => r.syscall], ["API", (r) => r.api || "(none)"],
  ["caller", (r) => r.function || "(not known)"], ["line", (r) => (r.file ? `${r.file}:${r.line || "?"}` : r.function || "(not known)")],
  ["library", (r) => r.module || "(not known)"], ["program", (r) => r.program], ["cause", (r) => r.cause || "(not needless)"],
];
const COLUMNS = [
  ["calls", "calls", count], ["errors", "failed", count], ["bytes", "bytes", count], ["toll_ns", "toll", time],
  ["waited_ns", "waited", time], ["needless_calls", "needless", count], ["needless_ns", "cost of needless calls", time],
];
const FIRST = 50;

function table(data) {
  const state = { group: GROUPS[0], sort: "toll_ns", down: true, filter: "", all: false };
  const body = el("tbody");
  const foot = el("tfoot");
  const caption = el("caption", { "aria-live": "polite" });
  const heads = [["name", "name"], ...COLUMNS].map(([key, title]) => el("th", { scope: "col", class: key === "name" ? null : "n", "data-key": key },
    el("button", { type: "button", on: { click: () => sort(key) } }, title)));
  const more = el("button", { type: "button", class: "more", on: { click: () => { state.all = true; fill(); } } });
  const select = el("select", { id: "group", on: { change: (e) => { state.group = GROUPS[e.target.selectedIndex]; state.all = false; fill(); } } },
    GROUPS.map(([name]) => el("option", {}, name)));
  const search = el("input", { type: "search", id: "filter", placeholder: "openat, libc, main.c …", on: { input: (e) => { state.filter = e.target.value.toLowerCase(); fill(); } } });
  at("table-body").append(el("div", { class: "bar" }, el("label", { for: "group" }, "One line a"), select, el("label", { for: "filter" }, "Only with"), search),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "table-head" },
      el("table", {}, caption, el("thead", {}, el("tr", {}, heads)), body, foot)), more);

  function sort(key) {
    state.down = state.sort === key ? !state.down : key !== "name";
    state.sort = key;
    fill();
  }

  function fill() {
    const groups = regroup(data.rows.filter((r) => !state.filter || r.text.includes(state.filter)), state.group[1]);
    const order = state.down ? -1 : 1;
    const by = (g) => (state.sort === "name" ? g.name : g[state.sort] ?? -1);
    groups.sort((a, b) => (by(a) < by(b) ? -order : by(a) > by(b) ? order : 0));
    const shownGroups = state.all ? groups : groups.slice(0, FIRST);
    body.replaceChildren(...shownGroups.map((g) => el("tr", {}, el("td", { class: "name" }, shown(g.name)), COLUMNS.map(([key, , write]) => el("td", { class: "n" }, write(g[key]))))));
    const total = regroup(groups, () => "all")[0] || { calls: 0 };
    foot.replaceChildren(el("tr", { id: "totals" }, el("td", {}, "all of these"), COLUMNS.map(([key, , write]) => el("td", { class: "n", "data-key": key, "data-value": total[key] ?? "" }, write(total[key] ?? 0)))));
    caption.textContent = `${counted(groups.length, "line", "lines")}, ${counted(total.calls, "call", "calls")}`;
    more.hidden = shownGroups.length === groups.length;
    more.textContent = `Show all ${count(groups.length)}`;
    for (const head of heads) head.setAttribute("aria-sort", head.dataset.key === state.sort ? (state.down ? "descending" : "ascending") : "none");
  }
  fill();
}

/** Rows added up by name; what nobody knows stays unknown. */
function regroup(rows, name) {
  const groups = new Map();
  for (const row of rows) {
    const key = name(row);
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { name: key }));
    for (const [column] of COLUMNS) {
      const value = row[column];
      if (value !== null && value !== undefined) group[column] = (group[column] ?? 0) + value;
    }
  }
  return [...groups.values()];
}
