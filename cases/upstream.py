#!/usr/bin/env python3
"""Finds again what real projects mended: both versions from their registry, one driver, systoll on each.

  upstream.py --systoll PATH [--keep DIR] [--gain] [NAME...]
  upstream.py --systoll PATH [--keep DIR] --upgrades [NAME...]

One line a fix: of how many focus calls the old version made, how many are claimed and as what, how many of them the
fix took away, and what is still said of the new one. Needs the network and the package's own client (cargo, go, npm,
pip); what can't be had is skipped with the reason, and what needs something that systoll does not do yet (`later`) is
told, not tried. Ends with how many were verified: found whole (at least nine tenths of the calls that the fix took
away), with the advice, and silent in the new version. `--gain` has `systoll prove` run the two versions beside each
other. `--upgrades` looks at the advice alone, for each fix that a cause's [[upgrade]] names: of the old version the
first way to stop it must be that upgrade, with the version installed; of the new one nothing may be said of it. Not run
by ./test. Each fix is a file of upstream/:

  what, source     the fix in a sentence, where it was made
  client           cargo, go, npm or pip
  package          as the client calls it; `old`, `new` its versions (no `new`: not mended yet); `package_new` where
                   it goes by another name since
  syscalls, cause  what the old version makes too many of, and what systoll is to call it
  advice           what one of the ways to stop it must say, by a regular expression, to lead to the fix
  driver           the program; `@NEW@ … @END@` stands only in the new version's, `@OLD@ … @END@` in the old one's
  beside           other packages it needs; of a crate `features`, `features_new`: what is asked of it
  env, limit_nofile, run   of the driver's process; the command behind the interpreter
  upgrade          what a cause's [[upgrade]] calls it
  later            why it is not found yet
"""
import argparse
import contextlib
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile

import told
from casefile import load
from census import verdict_of
from tally import Skip, Tally, until_interrupted

HERE = os.path.dirname(os.path.abspath(__file__))
FIXES = os.path.join(HERE, "upstream")
# Limits in seconds; a first build of a crate includes all that it depends on.
INSTALL_S, RUN_S = 900, 120
# Share of the calls that a fix took away which must be claimed in the version before.
WHOLE = 0.9


def tool(name):
    found = shutil.which(name)
    if not found:
        raise Skip(f"{name}: not installed")
    return found


def python(name):
    """Returns the interpreter itself that goes by this name. The one in the search path may be a program that picks one
    of several versions and refuses those that are not in use: then any of them will do."""
    ask = [name, "-c", "import sys; print(sys.executable)"]
    tries = [{}, *({"PYENV_VERSION": version} for version in pyenv_versions(name))]
    for env in tries:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            r = subprocess.run(ask, env={**os.environ, **env}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            if r.returncode == 0 and r.stdout.strip():
                return r.stdout.strip()
    raise Skip(f"{name}: not installed")


def pyenv_versions(name):
    """Returns the versions kept by pyenv that have a command of this name."""
    if not shutil.which("pyenv"):
        return []
    return subprocess.run(["pyenv", "whence", name], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.split()


def do(argv, cwd, env=None):
    """Runs a client; raises Skip if it can't get what it is asked for."""
    r = subprocess.run(argv, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_S)
    if r.returncode:
        raise Skip(f"{' '.join(argv[:3])}: {(r.stderr or r.stdout).strip()[-300:]}")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def driver_of(fix, new):
    """Returns the driver's text for one of the versions."""
    mine, other = ("NEW", "OLD") if new else ("OLD", "NEW")
    text = re.sub(rf"@{other}@.*?@END@", "", fix["driver"], flags=re.S)
    return re.sub(rf"@{mine}@(.*?)@END@", r"\1", text, flags=re.S)


# Flags that make Node name the functions of scripts.
NODE_NAMES = ["--perf-basic-prof-only-functions", "--interpreted-frames-native-stack"]


def by_cargo(fix, package, version, text, into, new):
    more = "".join(f"{line}\n" for line in fix.get("beside", []))
    named = fix.get("features_new" if new else "features", [])
    features = f", features = {json.dumps(named)}" if named else ""
    write(os.path.join(into, "Cargo.toml"), f'[package]\nname = "driver"\nversion = "0.0.0"\nedition = "2021"\n\n[profile.release]\ndebug = "line-tables-only"\n\n[dependencies]\n{package} = {{ version = "={version}"{features} }}\n{more}')
    write(os.path.join(into, "src/main.rs"), text)
    do([tool("cargo"), "build", "--release"], into, {"CARGO_TARGET_DIR": os.path.join(into, "target")})
    return [os.path.join(into, "target/release/driver")]


def by_go(fix, package, version, text, into, _new):
    write(os.path.join(into, "go.mod"), f"module driver\n\ngo {fix.get('go', '1.18')}\n")
    write(os.path.join(into, "main.go"), text)
    env = {"GOFLAGS": "-mod=mod", "GO111MODULE": "on"}
    do([tool("go"), "get", f"{package}@v{version}"], into, env)
    do([tool("go"), "build", "-o", "driver", "."], into, env)
    return [os.path.join(into, "driver")]


def by_npm(fix, package, version, text, into, _new):
    write(os.path.join(into, "package.json"), '{"name": "driver", "private": true}\n')
    write(os.path.join(into, "driver.js"), text)
    do([tool("npm"), "install", "--no-audit", "--no-fund", f"{package}@{version}", *fix.get("beside", [])], into)
    return [tool("node"), *(NODE_NAMES if fix.get("upgrade") else []), "driver.js"]


def by_pip(fix, package, version, text, into, _new):
    inner = os.path.join(into, "venv/bin/python")
    # An environment that was kept also does for a driver that has changed.
    if not os.path.exists(os.path.join(into, "installed")):
        do([python(fix.get("python", "python3")), "-m", "venv", "--without-pip", "venv"], into)
        do([tool("python3"), "-m", "pip", "--python", inner, "install", "-q", "--disable-pip-version-check", f"{package}=={version}", *fix.get("beside", [])], into)
        write(os.path.join(into, "installed"), version)
    write(os.path.join(into, "driver.py"), text)
    return [inner, "driver.py"]


CLIENTS = {"cargo": by_cargo, "go": by_go, "npm": by_npm, "pip": by_pip}


def limits(fix):
    """Returns a function that sets the limits of the driver's process."""
    if "limit_nofile" in fix:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(fix["limit_nofile"], most) if most >= 0 else fix["limit_nofile"], most))


def watched(opts, fix, argv, cwd):
    """Returns systoll's report of the driver."""
    report = os.path.join(cwd, "report.json")
    env = {**os.environ, **fix.get("env", {})}
    run = [opts.systoll, "run", "--json", "-o", report, *(["--backend", opts.backend] if opts.backend else []), "--", *argv, *fix.get("args", [])]
    r = subprocess.run(run, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_S, preexec_fn=lambda: limits(fix))
    if r.returncode or not os.path.exists(report):
        raise Skip(f"the driver ended with {r.returncode}: {(r.stderr or r.stdout).strip()[-300:]}")
    with open(report, encoding="utf-8") as f:
        return json.load(f)


def calls(doc, names):
    return sum(r["calls"] for r in doc["by_syscall"] if r["syscall"] in names)


def about(doc, fix):
    """Returns findings and remarks of the fix's cause that are about its calls."""
    both = doc["findings"] + doc["also"]
    return [f for f in both if f["cause"] == fix["cause"] and set(f["syscalls"]) & set(fix["syscalls"])]


def beside(doc, fix):
    """Returns findings and remarks of other causes that are only about the fix's calls: those go away with it."""
    return [f for f in doc["findings"] + doc["also"] if f["cause"] != fix["cause"] and set(f["syscalls"]) <= set(fix["syscalls"])]


def version_of(opts, fix, new, into):
    package = fix.get("package_new", fix["package"]) if new else fix["package"]
    version = fix["new"] if new else fix["old"]
    os.makedirs(into, exist_ok=True)
    argv = CLIENTS[fix["client"]](fix, package, version, driver_of(fix, new), into, new)
    opts.argv["new" if new else "old"] = argv
    return watched(opts, fix, argv, into)


def advised(found, fix):
    """Returns True if one of the ways to stop it leads to the fix that was made."""
    wanted = fix.get("advice")
    return not wanted or any(re.search(wanted, how) for f in found for how in f["stop"])


def proved(opts, fix, into, how_long):
    """Returns what `prove` measures of the new version beside the old one, or why nothing."""
    in_folder = lambda which: ["sh", "-c", f"cd {shlex.quote(os.path.join(into, which))} && exec {shlex.join(opts.argv[which])}"]
    run = [opts.systoll, "prove", "--json", "--same", "stdout", *how_long, "--vs", shlex.join(in_folder("new")), "--", *in_folder("old")]
    try:
        r = subprocess.run(run, env={**os.environ, **fix.get("env", {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_S, preexec_fn=lambda: limits(fix))
    except subprocess.TimeoutExpired:
        return None, f"longer than {RUN_S} s"
    try:
        return json.loads(r.stdout[r.stdout.index("{") :]), ""
    except ValueError:
        return None, (r.stderr or r.stdout).strip()[-200:]


def gain(opts, fix, found, into):
    """Compares what was proved of the new version beside the old one with what the findings told."""
    share = sum(f["share_of_cpu"] or 0 for f in found)
    proof, why = proved(opts, fix, into, ["--limit", "40s"])
    if proof is None:
        return f"{share:.1%} of CPU told; not proved: {why}"
    beside_told = f"; {told.shown(told.row_of(found, proof))}" if proof.get("change") else ""
    return f"{share:.1%} of CPU told; {verdict_of(proof)}{beside_told}"


def compare(opts, fix, into):
    """Returns what to print and what is wrong."""
    if "later" in fix:
        raise Skip(f"later: {fix['later']}")
    old = version_of(opts, fix, False, os.path.join(into, "old"))
    made, found = calls(old, fix["syscalls"]), about(old, fix)
    claimed = sum(f["needless_calls"]["estimate"] for f in found)
    whole = claimed + sum(f["needless_calls"]["estimate"] for f in beside(old, fix))
    wrong = [] if found else [f"{fix['cause']} was not found, but {[f['cause'] or f['kind'] for f in old['findings'] + old['also']]}"]
    if found and not advised(found, fix):
        wrong.append(f"no way to stop it leads to the fix: {[how for f in found for how in f['stop']]}")
    sure = "/".join(f["confidence"] for f in found)
    line = f"{fix['old']}: {made} calls, {claimed} claimed ({min(1, claimed / max(made, 1)):.0%}) as {fix['cause']}, {sure or 'not found'}"
    if "new" not in fix:
        return line + "; not mended yet", wrong
    new = version_of(opts, fix, True, os.path.join(into, "new"))
    left, kept = about(new, fix), calls(new, fix["syscalls"])
    if left:
        wrong.append(f"still found in {fix['new']}: {sum(f['needless_calls']['estimate'] for f in left)} calls")
    taken = made - kept
    after = f"{fix['new']}: {kept} calls, {'still found' if left else 'silent'}"
    if found and whole < WHOLE * taken:
        wrong.append(f"{whole} of the {taken} calls that the fix took away were claimed")
    if not wrong:
        opts.verified.add(os.path.basename(into))
    if opts.gain:
        after += f"; {gain(opts, fix, found + beside(old, fix), into)}"
    return f"{line}; {after}", wrong


def upgrades_told(doc, fix):
    """Returns, for each finding and remark that advises an upgrade of the package, its place among the ways to stop it,
    and its text."""
    both = doc["findings"] + doc["also"]
    head = f"upgrade {fix['upgrade']} to "
    return [(n, how) for f in both for n, how in enumerate(f["stop"]) if how.startswith(head)]


def upgrade(opts, fix, into):
    """Returns what to print and what is wrong: the old version must be advised to upgrade, the new one not."""
    if "upgrade" not in fix:
        raise Skip("no cause has an upgrade of it")
    old = upgrades_told(version_of(opts, fix, False, os.path.join(into, "old")), fix)
    if not old and "later" in fix:
        raise Skip(f"later: {fix['later']}")
    new = upgrades_told(version_of(opts, fix, True, os.path.join(into, "new")), fix)
    here = f"(here: {fix['old']})"
    wrong = [] if old else [f"nothing told of {fix['old']} to upgrade"]
    wrong += [f"advised as number {n + 1}" for n, _ in old if n]
    wrong += [f"{here} is not in: {how}" for _, how in old if here not in how]
    wrong += [f"still told of {fix['new']}: {how}" for _, how in new]
    if not wrong:
        opts.verified.add(os.path.basename(into))
    return f"{fix['old']}: {old[0][1] if old else 'no upgrade'}; {fix['new']}: {'told all the same' if new else 'silent'}", wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--backend")
    p.add_argument("--keep", metavar="DIR", help="where drivers and packages are put, and left")
    p.add_argument("--gain", action="store_true", help="measure what the fix wins")
    p.add_argument("--upgrades", action="store_true", help="look at what is advised to upgrade")
    p.add_argument("--strict", action="store_true", help="what is skipped has failed")
    p.add_argument("names", nargs="*")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    opts.verified, opts.argv = set(), {}
    tally = Tally(opts.strict)
    with tempfile.TemporaryDirectory(prefix="upstream-") as t:
        for name in opts.names or sorted(n[:-5] for n in os.listdir(FIXES) if n.endswith(".toml")):
            with open(os.path.join(FIXES, name + ".toml"), encoding="utf-8") as f:
                fix = load(f.read())
            into = os.path.join(os.path.abspath(opts.keep) if opts.keep else t, name)
            tally.attempt(name, lambda again, fix=fix, into=into: (upgrade if opts.upgrades else compare)(opts, fix, into))
    print(f"{len(opts.verified)} {'upgrades' if opts.upgrades else 'fixes'} verified")
    return tally.end()


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
