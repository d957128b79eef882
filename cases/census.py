#!/usr/bin/env python3
"""Runs a census: everyday commands under systoll, each with our verdict on what it found.

  census.py --systoll PATH [--keep DIR] [--prove] [--write DOC] [NAME...]

Each command is a table of census/*.toml (a file a registry, or several: debian-files.toml). A command whose program is not here is skipped with the
reason. What is found is held against the verdicts kept beside the command: a finding without a verdict and a verdict
without its finding are told, and fail. Not run by ./test; Debian's programs come from apt-get, the others from
folders in `--keep`: pip/ (a venv), npm/ (a folder with node_modules), gobin/, cargo/bin/.

  package      as its registry calls it: tells the version, and what to install; `version` asks for that in its place
  run          the command, by sh -c; `{tree}` and the like are inputs (census_inputs.py), standard output is dropped
  prepare      by sh -c before, unwatched, in the command's own folder
  found        [{cause, verdict, why, cure | twin}]: what must be found and whether it is
               true, not true, laughable (or `may`: now and then). `cure` proves it by systoll's own, `twin` by a command;
               `same` is what must be the same of the two (as `prove` takes it), where not all they print
  again        `prepare` has to be done before each run of a proof
  missed       what is wasted and not found
  exit         exit codes other than 0 that are its answer

`--prove` runs the cures and twins too; `--write` makes the document of what is kept in census/measured.json.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import census_inputs
from casefile import load
from tally import Skip, Tally, until_interrupted

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "census")
MEASURED = os.path.join(FOLDER, "measured.json")
# Limits in seconds of a run under systoll, and of a proof's pairs of runs.
RUN_S, PROOF_S = 60, 70
VERDICTS = ("true", "not true", "laughable")


def commands():
    """Returns each command's table by its name, with the registry that it comes from."""
    found = {}
    for name in sorted(os.listdir(FOLDER)):
        if name.endswith(".toml"):
            with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
                for command, table in load(f.read()).items():
                    found[command] = {**table, "registry": name[:-5].split("-")[0]}
    return found


def environment(keep):
    """Returns the environment of the commands: the registries' programs first in PATH, and otherwise as little as after
    a login."""
    own = [os.path.join(keep, d) for d in ("pip/bin", "npm/node_modules/.bin", "gobin", "cargo/bin")]
    kept = {k: v for k, v in os.environ.items() if k in ("HOME", "LANG", "USER", "LOGNAME", "GOFLAGS", "GOPROXY", "CARGO_HOME", "RUSTUP_HOME")}
    path = os.environ["PATH"].split(os.pathsep)
    return {**kept, "PATH": os.pathsep.join([*own, *path]), "TERM": "xterm", "GIT_PAGER": "cat", "GIT_CONFIG_NOSYSTEM": "1"}


def version(c, keep, env):
    """Returns the package's version; raises Skip if it is not installed."""
    package = c["package"]
    if "version" in c:
        r = subprocess.run(["sh", "-c", c["version"]], env=env, capture_output=True, text=True, timeout=60)
        number = re.search(r"\d+(\.\d+)+", r.stdout)
        if r.returncode or not number:
            raise Skip(f"{package}: not installed")
        return number[0]
    asks = {
        "debian": ["dpkg-query", "-Wf", "${Version}", package],
        "pip": [os.path.join(keep, "pip/bin/python"), "-c", "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))", package],
        "npm": ["node", "-p", f"require({json.dumps(os.path.join(keep, 'npm/node_modules', package, 'package.json'))}).version"],
        "go": ["sh", "-c", f"go version -m {os.path.join(keep, 'gobin', c.get('program', package.rsplit('/', 1)[-1]))} | sed -n 's/^\\tmod\\t[^\\t]*\\t\\([^\\t]*\\).*/\\1/p'"],
        "cargo": ["sh", "-c", f"cargo install --root {os.path.join(keep, 'cargo')} --list | sed -n 's/^{package} v\\([^ :]*\\).*/\\1/p'"],
    }
    try:
        r = subprocess.run(asks[c["registry"]], env=env, capture_output=True, text=True, timeout=60)
    except OSError as e:
        raise Skip(f"{package}: {e}")
    told = r.stdout.strip().splitlines()
    if r.returncode or not told or not told[0]:
        raise Skip(f"{package}: not installed")
    return told[0]


def filled(text, inputs):
    """Puts the inputs' paths in place of their names; other words in braces stay."""
    text = text.replace("{keep}", os.path.dirname(inputs))
    return re.sub(r"\{(\w+)\}", lambda m: census_inputs.make(m[1], inputs) if m[1] in census_inputs.INPUTS else m[0], text)


def watched(opts, c, name, env):
    """Runs a command under systoll. Returns the report, the command and its folder."""
    cwd = os.path.join(opts.keep, "runs", name)
    shutil.rmtree(cwd, ignore_errors=True)
    os.makedirs(cwd)
    inputs = os.path.join(opts.keep, "inputs")
    os.makedirs(inputs, exist_ok=True)
    if "prepare" in c:
        r = subprocess.run(["sh", "-c", filled(c["prepare"], inputs)], cwd=cwd, env=env, capture_output=True, text=True, timeout=RUN_S)
        if r.returncode:
            raise Skip(f"prepare: {r.stderr.strip()[-200:]}")
    argv = ["sh", "-c", f"exec {filled(c['run'], inputs)}"]
    report = os.path.join(cwd, ".report.json")
    r = subprocess.run([opts.systoll, "run", "--json", "-o", report, "--", *argv], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", timeout=RUN_S)
    if r.returncode not in [0, *c.get("exit", [])] or not os.path.exists(report):
        raise Skip(f"ended with {r.returncode}: {r.stderr.strip()[-200:]}")
    with open(report, encoding="utf-8") as f:
        return json.load(f), argv, cwd


def called(finding):
    return finding["cause"] or f"{finding['kind']} {finding['syscalls'][0]}"


def caller(finding):
    user = finding["user"] or {}
    where = user.get("function") or "?"
    return f"{finding['apis'][0] if finding['apis'] else '?'} < {where}"


def proof(opts, c, entry, argv, cwd, env):
    """Returns the last line of what `prove` says of a finding's cure or twin."""
    doc, why = proved(opts, c, entry, argv, cwd, env, ["--limit", f"{PROOF_S}s"])
    return verdict_of(doc) if doc else f"not tried: {why}"


def proved(opts, c, entry, argv, cwd, env, how_long):
    """Returns what `prove` measures of a finding's cure or twin, or the reason why there is nothing."""
    if "cure" in entry:
        how = ["--cure", entry["cure"]]
    else:
        how = ["--vs", shlex.join(["sh", "-c", "exec " + filled(entry["twin"], os.path.join(opts.keep, "inputs"))])]
    same = ["--same", entry["same"]] if "same" in entry else []
    before = ["--prepare", filled(c["prepare"], os.path.join(opts.keep, "inputs"))] if c.get("again") else []
    run = [opts.systoll, "prove", "--json", *how_long, *same, *before, *how, "--", *argv]
    try:
        r = subprocess.run(run, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=3 * PROOF_S)
    except subprocess.TimeoutExpired:
        return None, f"longer than {3 * PROOF_S} s"
    try:
        return json.loads(r.stdout[r.stdout.index("{") :]), ""
    except ValueError:
        return None, (r.stderr or r.stdout).strip()[-120:]


def verdict_of(doc):
    """Sums up one of prove's documents in a few words."""
    if not doc.get("verdict") or not doc.get("change"):
        return f"not proved: {doc.get('problem') or doc.get('difference') or 'no verdict'}"
    said = [f"{what} {doc['change'][key]['percent']:+.1f} % ({doc['change'][key]['low']:.0f} to {doc['change'][key]['high']:.0f})" for key, what in (("wall", "wall"), ("cpu", "CPU"))]
    gained = "faster" in doc["verdict"].values()
    return f"{'proved' if gained else 'no gain proved'}: {', '.join(said)}"


def judge(c, doc):
    """Returns what is wrong with the kept verdicts, given what was found."""
    found = [called(f) for f in doc["findings"]]
    known = {e["cause"]: e for e in c.get("found", [])}
    wrong = [f"{cause}: {e['verdict']} is no verdict" for cause, e in known.items() if e["verdict"] not in VERDICTS]
    wrong += [f"{called(f)}: found, without a verdict ({caller(f)}, {percent(f['share_of_cpu'])} of CPU)" for f in doc["findings"] if called(f) not in known]
    wrong += [f"{cause}: not found now" for cause, e in known.items() if cause not in found and not e.get("may")]
    return wrong


def census(opts, c, name, kept):
    env = environment(opts.keep)
    told = version(c, opts.keep, env)
    try:
        doc, argv, cwd = watched(opts, c, name, env)
    except subprocess.TimeoutExpired:
        raise Skip(f"longer than {RUN_S} s")
    findings = [{"cause": called(f), "caller": caller(f), "share": f["share_of_cpu"], "wall": f["share_of_wall"], "toll_ns": f["toll_ns"], "calls": f["calls"]} for f in doc["findings"]]
    old = {f["cause"]: f.get("proof") for f in kept.get(name, {}).get("findings", [])}
    for f in findings:
        entry = next((e for e in c.get("found", []) if e["cause"] == f["cause"]), {})
        if opts.prove and ("cure" in entry or "twin" in entry):
            f["proof"] = proof(opts, c, entry, argv, cwd, env)
        elif old.get(f["cause"]):
            f["proof"] = old[f["cause"]]
    share = doc["toll_ns"] / doc["own_cpu_ns"] if doc["toll_ns"] and doc["own_cpu_ns"] else None
    kept[name] = {"version": told, "calls": doc["calls"], "exact": doc["exact"], "backend": doc["backend"], "share": share, "findings": findings, "also": [[called(f), f["share_of_cpu"]] for f in doc["also"]]}
    said = [f"{f['cause']} {percent(f['share'])} {f['caller']}{' | ' + f['proof'] if f.get('proof') else ''}" for f in findings]
    remarks = [f"({called(f)} {percent(f['share_of_cpu'])})" for f in doc["also"]]
    shutil.rmtree(cwd, ignore_errors=True)
    exact = "exact" if doc["exact"] else "not exact: " + "; ".join(doc["problems"])[:80]
    return f"{told:16} {doc['calls']:8} {exact} {'; '.join(said + remarks) or 'nothing'}", judge(c, doc)


def write(kept):
    """Keeps what was measured, one line for each command."""
    lines = ",\n".join(f"{json.dumps(n)}: {json.dumps(m)}" for n, m in kept.items())
    with open(MEASURED, "w", encoding="utf-8") as f:
        f.write("{\n" + lines + "\n}\n")


def percent(share):
    return "?" if share is None else f"{share:.1%}"


def row(name, c, m):
    """Returns a line of the document for each finding, or one that says that there is none."""
    head = f"| {name} | {m['version']} | {m['calls']:,} | {percent(m['share'])} | {'yes' if m['exact'] else 'no'} |"
    known = {e["cause"]: e for e in c.get("found", [])}
    missed = f"missed: {c['missed']}" if "missed" in c else ""
    if not m["findings"]:
        return [f"{head} | | | {'silent' if not missed else ''} | {missed} |"]
    rows = []
    for f in m["findings"]:
        entry = known.get(f["cause"], {"verdict": "not judged", "why": ""})
        why = "; ".join(x for x in (entry.get("why", ""), f.get("proof", ""), missed) if x)
        cost = percent(f["share"]) if f["share"] else f"{percent(f['wall'])} of wall" if f["wall"] else "share not known"
        rows.append(f"{head} {f['cause']} | `{f['caller']}`, {cost} | {entry['verdict']} | {why} |")
        head, missed = "| | | | | |", ""
    return rows


def document(all_of, kept):
    """Returns the text of docs/evidence/census.md."""
    told = {n: kept[n] for n in all_of if n in kept}
    judged = [(f, next((e["verdict"] for e in all_of[n].get("found", []) if e["cause"] == f["cause"]), "not judged")) for n, m in told.items() for f in m["findings"]]
    sums = ", ".join(f"{sum(v == verdict for _, v in judged)} {verdict}" for verdict in (*VERDICTS, "not judged") if any(v == verdict for _, v in judged))
    large = sum(v == "true" and max(f["share"] or 0, f["wall"] or 0) >= 0.02 for f, v in judged)
    proved = sum(v == "true" and (f.get("proof") or "").startswith("proved") and max(f["share"] or 0, f["wall"] or 0) >= 0.02 for f, v in judged)
    out = [
        "# A census of everyday programs",
        "",
        "What systoll says of everyday programs, as their registries ship them and at the work they are for, and whether it is",
        "true: we read the programs to judge each finding. `cases/census.py` makes this page; `cases/census/` has the commands",
        "and our verdicts.",
        "",
        f"- {len(told)} commands made {sum(m['calls'] for m in told.values()):,} system calls; of {sum(m['exact'] for m in told.values())} of the commands systoll counted every call.",
        f"- In {sum(not m['findings'] for m in told.values())} of them systoll found nothing.",
        f"- In the others it found {len(judged)} wastes: {sums}. {large} are true and cost 2 % of the processor time or more.",
        f"- `systoll prove` proved a gain for {proved} of those {large}, by a cure or by a twin (a changed command that does the same);",
        "  one proof may stand for two findings of a command. Other work ran on the box meanwhile.",
        f"- In {sum('missed' in all_of[n] for n in told)} commands we know of waste that systoll missed.",
        "",
        "*calls* is how many the run made; *share* is what all calls cost of the program's own processor time; *found* is the",
        "cause; *by, share* is who makes the calls and what part of the processor time they cost. `silent`: systoll found nothing,",
        "and we know of no waste; we did not read all of these programs.",
    ]
    for registry in sorted({all_of[n]["registry"] for n in told}):
        out += ["", f"## {registry}", "", "| command | version | calls | share | exact | found | by, share | verdict | why |", "|---|---|---|---|---|---|---|---|---|"]
        for name in (n for n in told if all_of[n]["registry"] == registry):
            out += row(name, all_of[name], told[name])
        out += ["", "<details><summary>the commands</summary>", ""]
        out += [f"- {name}: `{all_of[name]['run']}`" for name in told if all_of[name]["registry"] == registry]
        out += ["", "</details>"]
    return "\n".join(out) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--keep", metavar="DIR", help="where inputs and programs of the registries are, and are left")
    p.add_argument("--prove", action="store_true", help="also prove what has a cure or a twin")
    p.add_argument("--write", metavar="DOC", help="write the document")
    p.add_argument("--registry")
    p.add_argument("--strict", action="store_true", help="what is skipped has failed")
    p.add_argument("names", nargs="*")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    all_of = commands()
    unknown = [n for n in opts.names if n not in all_of]
    if unknown:
        p.error(f"no such command: {', '.join(unknown)}")
    tally = Tally(opts.strict)
    kept = {}
    if os.path.exists(MEASURED):
        with open(MEASURED, encoding="utf-8") as f:
            kept = {n: m for n, m in json.load(f).items() if n in all_of}
    with tempfile.TemporaryDirectory(prefix="census-") as t:
        opts.keep = os.path.abspath(opts.keep or t)
        chosen = opts.names or [n for n, c in all_of.items() if opts.registry in (None, c["registry"])]
        for name in chosen:
            tally.attempt(name, lambda again, name=name: census(opts, all_of[name], name, kept))
            write({n: kept[n] for n in all_of if n in kept})
    if opts.write:
        with open(opts.write, "w", encoding="utf-8") as f:
            f.write(document(all_of, kept))
    return tally.end()


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
