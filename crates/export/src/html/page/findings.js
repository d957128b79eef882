// The verdict, the run's figures, findings and remarks. Sentences about them are the report's own (`told`).

/** Problems that are shown at once; more are behind their number. */
const FEW = 2;

function verdict(data) {
  document.title = `systoll: ${shown(data.command)}`;
  at("command").textContent = shown(data.command);
  const exact = data.exact ? "exact" : data.uncounted ? "others were not counted" : "not exact";
  const [head, ...rest] = data.told.verdict.split(": ");
  at("verdict").append(el("strong", { class: data.findings.length ? "bad" : data.told.good ? "good" : null }, shown(head)), rest.length ? `: ${shown(rest.join(": "))}` : "");
  if (data.told.beneath.length) at("verdict").append(el("span", { class: "faint aside" }, shown(data.told.beneath.join("; "))));
  const figures = [
    ["system calls", `${count(data.calls)} (${exact})`], ["they cost", `${data.toll_estimated ? "about " : ""}${time(data.toll_ns)}`],
    ["needless of that", time(data.needless_toll_ns - data.starting_ns)],
    ...[["starting programs", data.starting_ns - data.forking_ns], ["forking processes", data.forking_ns]].filter(([, ns]) => ns).map(([what, ns]) => [what, `${time(ns)} of processor time`]),
    ["waited in calls", time(data.waited_ns)],
    ["processor time", ownCpu(data)], ["from start to end", time(data.wall_ns)],
    ["ended", shown(data.told.ended)], ["watched by", data.backend], ["started", new Date(data.started_unix * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC"],
  ];
  at("figures").append(...figures.map(([what, value]) => el("div", {}, el("dt", {}, what), el("dd", {}, value))));
  const doubts = data.told.problems;
  at("problems").append(...doubts.map((text) => el("li", {}, shown(text))));
  at("doubts").hidden = !doubts.length;
  at("doubts").open = doubts.length <= FEW;
  at("doubts-head").textContent = counted(doubts.length, "thing to know about these figures", "things to know about these figures");
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
  if (!data.findings.length) list.append(el("p", {}, "None."));
  list.append(...data.findings.map((f) => finding(f, data, false)));
  if (data.also.length) {
    const remarks = data.also.map((f) => finding(f, data, true));
    list.append(el("details", {}, el("summary", {}, `${counted(data.also.length, "remark", "remarks")}: too cheap, or too uncertain, for a finding`), remarks));
  }
  if (data.left_out.findings) list.append(el("p", { class: "faint" }, `${count(data.left_out.findings)} more are in the report's JSON.`));
}

// What it does again and again: what most of the rest goes to at once, the others behind their number.
function rounds(data) {
  const section = at("rounds");
  section.hidden = !data.rounds.length;
  const [shown, others] = [data.rounds.filter((r) => r.of_the_rest), data.rounds.filter((r) => !r.of_the_rest)];
  at("rounds-list").append(...shown.map(oneRound));
  if (others.length) at("rounds-list").append(el("details", { open: shown.length ? null : "" }, el("summary", {}, counted(others.length, "round", "rounds") + (shown.length ? " more" : "")), others.map(oneRound)));
}

/** A mean, with a decimal if it is small; "?" if no window shows such a request. */
function mean(figure, least) {
  if (!figure || figure.mean === null) return "?";
  return (least ? "at least " : "") + (figure.mean >= 100 ? count(Math.round(figure.mean)) : String(Number(figure.mean.toFixed(1))));
}

// What each kind of request costs, where --by request recorded it.
function requests(data) {
  at("requests").hidden = !data.requests;
  if (!data.requests) return;
  const { kinds, receives, unseen } = data.requests;
  if (!kinds.length) return at("requests-body").append(el("p", {}, `No request was recognised in ${counted(receives, "receive", "receives")}.`));
  const number = ({ estimate, low, high }) => (low === high ? count(estimate) : `about ${count(estimate)} (${count(low)} to ${count(high)})`);
  const least = (k) => (k.at_least ? "at least " : "");
  const cells = (k) => [number(k.requests), mean(k.calls, k.at_least), mean(k.needless), k.toll_ns === null ? "?" : least(k) + time(k.toll_ns), k.waited_ns === null ? "?" : time(k.waited_ns)];
  const heads = ["requests", "each: calls", "needless", "in calls", "waited", "request"];
  at("requests-body").append(el("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "requests-head" },
    el("table", {}, el("thead", {}, el("tr", {}, heads.map((h, i) => el("th", { scope: "col", class: i < 5 ? "n" : null }, h)))),
      el("tbody", {}, kinds.map((k) => el("tr", {}, cells(k).map((c) => el("td", { class: "n" }, c)), el("td", { class: "name" }, `${shown(k.name)} `, el("span", { class: "faint" }, k.protocol))))))));
  if (unseen) at("requests-body").append(el("p", { class: "faint" }, `${counted(unseen, "receive was", "receives were")} not looked at.`));
}

function oneRound(r) {
  const about = [r.told.place, ...r.told.notes, ...r.told.seen].filter(Boolean);
  return el("article", { class: "finding remark", "aria-label": `round ${shown(r.told.motif)}` },
    el("h3", { class: "mono" }, shown(r.told.motif)), el("p", {}, shown(r.told.cost)),
    about.length ? el("p", { class: "faint" }, about.map(shown).join("; ")) : null);
}

function finding(f, data, remark) {
  const name = f.cause || f.kind;
  const who = f.lines.length ? f.lines.slice(0, 4).map((l) => place(l)) : [place(f.user)].filter(Boolean);
  const sources = data.sources.filter((s) => (f.lines.length ? f.lines : [f.user]).some((u) => u && u.file === s.file && u.line === s.line));
  const cures = f.cures.map((c) => el("li", {}, shown(c.how), c.gives_up ? el("span", { class: "faint aside" }, `gives up: ${shown(c.gives_up)}`) : null));
  const facts = [
    ["calls", f.starts ? `${f.told.calls}; ${f.told.needless}` : `${f.told.needless}: ${f.syscalls.join(", ")}${f.apis.length ? ` from ${f.apis.map(shown).join(", ")}` : ""}`],
    ["each", f.told.each],
    ["cost", f.told.cost],
    ["plus", f.told.plus],
    ["gain", f.told.gain ? `expected: ${f.told.gain} of processor time` : null],
    ["remark", f.told.doubt],
    ["who", who.map((w) => el("div", { class: "mono" }, w))],
    ["asked", f.requested ? asked(f.requested) : null],
    ["what", f.what ? el("code", {}, shown(f.what)) : null],
    ["evidence", f.told.evidence],
    ["cure", cures.length ? el("ul", {}, cures) : f.stop.length ? el("ul", {}, f.stop.map((s) => el("li", {}, shown(s)))) : null],
    ["next", f.prove.length ? el("code", {}, f.prove.map(shown).join(" ")) : null],
  ];
  return el("article", { class: remark ? "finding remark" : "finding", "aria-label": `${remark ? "remark" : "finding"} ${shown(name)}` },
    el("h3", {}, shown(name)),
    el("p", {}, shown(f.why)), sources.map(excerpt),
    el("dl", {}, facts.filter(([, value]) => value && value.length !== 0).map(([what, value]) => [el("dt", {}, what), el("dd", {}, value)])));
}

/** Who asked a pool's threads for the calls, and what handing the work over took. */
function asked(r) {
  const looks = r.lines.reduce((sum, l) => sum + l.looks, 0);
  const seen = looks ? `${counted(looks, "look", "looks")} ${r.by_waits ? "at waits for its results" : "at its wake-ups"}` : "no caller was seen";
  const lines = r.lines.slice(0, 4).map((l) => el("div", { class: "mono" }, `${place(l)}  ${Math.round(l.share * 100)} %`));
  const over = r.hand_over_calls
    ? el("div", {}, `handing over all of its work took at least ${counted(r.hand_over_calls, "call", "calls")} more, ${time(r.hand_over_ns)}`) : null;
  return [...lines, el("div", { class: "faint" }, `of ${shown(r.pool)}${r.operations.length ? `, by ${r.operations.map(shown).join(", ")}` : ""}; ${seen}`), over].filter(Boolean);
}

function excerpt(source) {
  const lines = source.text.map((text, i) => el("div", { class: source.first + i === source.line ? "hit" : null },
    el("span", { class: "number" }, source.first + i), shown(text.replaceAll("\t", "    "))));
  return el("div", { class: "source", role: "group", tabindex: 0, "aria-label": `${shown(source.file)}, line ${source.line}` }, lines);
}
