// The verdict, the run's figures, findings and remarks.

function verdict(data) {
  document.title = `systoll: ${shown(data.command)}`;
  at("command").textContent = shown(data.command);
  const found = data.findings;
  const text = at("verdict");
  const exact = data.exact ? "exact" : "not exact";
  if (found.length) {
    const share = data.own_cpu_ns ? `, ${percent(data.needless_toll_ns / data.own_cpu_ns)} of its processor time` : "";
    text.append(el("strong", { class: "bad" }, counted(found.length, "finding", "findings")),
      `: needless calls cost ${time(data.needless_toll_ns)}${share}`);
  } else {
    text.append(el("strong", { class: "good" }, "Nothing needless"), ` worth telling in ${counted(data.calls, "system call", "system calls")} (${exact})`);
  }
  const end = data.exit ? (data.exit.code === undefined ? `signal ${data.exit.signal}` : `exit ${data.exit.code}`) : "still running";
  const figures = [
    ["system calls", `${count(data.calls)} (${exact})`], ["they cost", `${data.toll_estimated ? "about " : ""}${time(data.toll_ns)}`],
    ["waited in them", time(data.waited_ns)], ["needless", time(data.needless_toll_ns)],
    ["processor time", ownCpu(data)], ["from start to end", time(data.wall_ns)],
    ["ended", end], ["watched by", data.backend], ["started", new Date(data.started_unix * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC"],
  ];
  at("figures").append(...figures.map(([what, value]) => el("div", {}, el("dt", {}, what), el("dd", {}, value))));
  at("problems").append(...data.problems.map((text) => el("li", {}, shown(text))));
}

// The program's own processor time; where it is known less well than by a twentieth, its interval too.
function ownCpu(data) {
  const { own_cpu_ns: own, own_cpu_least_ns: least, own_cpu_most_ns: most } = data;
  if (!own) return "not known";
  const wide = least !== null && Math.max(own - least, most - own) > own / 20;
  return `about ${time(own)}${wide ? ` (${time(least)} to ${time(most)})` : ""}`;
}

function findings(data) {
  const list = at("findings-list");
  if (!data.findings.length) list.append(el("p", {}, "None: no needless calls cost enough to be worth a change."));
  list.append(...data.findings.map((f) => finding(f, data, false)));
  if (data.also.length) {
    const remarks = data.also.map((f) => finding(f, data, true));
    list.append(el("details", {}, el("summary", {}, `${counted(data.also.length, "remark", "remarks")}: too cheap, or too uncertain, for a finding`), remarks));
  }
  if (data.left_out.findings) list.append(el("p", { class: "faint" }, `${count(data.left_out.findings)} more are in the report's JSON.`));
}

function finding(f, data, remark) {
  const name = f.cause || f.kind;
  const n = f.needless_calls;
  const among = n.low === n.high ? count(n.estimate) : `about ${count(n.estimate)} (${count(n.low)} to ${count(n.high)})`;
  const costs = [time(f.needless_toll_ns), percent(f.share_of_cpu) && `${percent(f.share_of_cpu)} of processor time`,
    percent(f.share_of_wall) && `waits ${percent(f.share_of_wall)} of its phase's time`].filter(Boolean).join(", ");
  const who = f.lines.length ? f.lines.slice(0, 4).map((l) => place(l)) : [place(f.user)].filter(Boolean);
  const sources = data.sources.filter((s) => (f.lines.length ? f.lines : [f.user]).some((u) => u && u.file === s.file && u.line === s.line));
  const cures = f.cures.map((c) => el("li", {}, shown(c.how), c.gives_up ? el("span", { class: "faint aside" }, `gives up: ${shown(c.gives_up)}`) : null));
  const facts = [
    ["calls", `${among} of ${count(f.calls)} are needless: ${f.syscalls.join(", ")}${f.apis.length ? ` from ${f.apis.map(shown).join(", ")}` : ""}`],
    ["cost", costs],
    ["gain", expected(f.expected_gain)],
    ["who", who.map((w) => el("div", { class: "mono" }, w))],
    ["what", f.what ? el("code", {}, shown(f.what)) : null],
    ["evidence", `${count(f.evidence.agree)} of ${counted(f.evidence.windows, "window", "windows")} agree; ${count(f.evidence.claimed)} of ${counted(f.evidence.calls, "call", "calls")} looked at; confidence ${f.confidence}`],
    ["cure", cures.length ? el("ul", {}, cures) : f.stop.length ? el("ul", {}, f.stop.map((s) => el("li", {}, shown(s)))) : null],
    ["next", f.prove.length ? el("code", {}, f.prove.map(shown).join(" ")) : null],
  ];
  return el("article", { class: remark ? "finding remark" : "finding", "aria-label": `${remark ? "remark" : "finding"} ${shown(name)}` },
    el("h3", {}, shown(name), el("span", { class: "faint" }, `  ${f.phase}`)),
    el("p", {}, shown(f.why)), sources.map(excerpt),
    el("dl", {}, facts.filter(([, value]) => value && value.length !== 0).map(([what, value]) => [el("dt", {}, what), el("dd", {}, value)])));
}

/** What being rid of the calls is expected to win. */
function expected(gain) {
  if (!gain || !gain.high_ns) return null;
  const [low, high] = [time(gain.low_ns), time(gain.high_ns)];
  return `${low === high ? high : `${low} to ${high}`} of processor time expected`;
}

function excerpt(source) {
  const lines = source.text.map((text, i) => el("div", { class: source.first + i === source.line ? "hit" : null },
    el("span", { class: "number" }, source.first + i), shown(text.replaceAll("\t", "    "))));
  return el("div", { class: "source", role: "group", tabindex: 0, "aria-label": `${shown(source.file)}, line ${source.line}` }, lines);
}
