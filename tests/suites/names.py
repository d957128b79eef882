"""Names of native programs against the truth, which stands in their sources: tests/programs/names.

Each case is one way to build a program. Whatever way that is, and whichever backend watches, a call
is named by the same API, function and line; where a program is stripped, by its function's address.
"""
import collections
import os
import re
import shutil
import subprocess

from harness import BOTH, GLIBC, GO_CACHE, MOUNTING, PROGRAMS, Skip, test, tool
from suites.names_scripts import to_run

MARK = re.compile(r"//([=+?]) ([a-z0-9_|]+) (\S+) (.+)$")
SOURCES = os.path.join(PROGRAMS, "names")

Case = collections.namedtuple("Case", "name source compiler flags stripped nameless long", defaults=(False, False, False))

C = ["-g", "-w", "-pthread"]
RUST = ["--edition=2024", "-g", "--crate-name", "calls"]
# Ways to build each program. The more a linker removes, the less there is to tell: `stripped` has no functions' names,
# and `nameless` has no API's either, because the C library's names are gone with them.
CASES = [
    Case("C -O0", "calls.c", "gcc", [*C, "-O0"]),
    Case("C -O1", "calls.c", "gcc", [*C, "-O1"]),
    Case("C -O2", "calls.c", "gcc", [*C, "-O2"]),
    Case("C -O3 -flto", "calls.c", "gcc", [*C, "-O3", "-flto"]),
    Case("C -Os -fno-plt", "calls.c", "gcc", [*C, "-Os", "-fno-plt"]),
    Case("C -O2 no PIE, lazy", "calls.c", "gcc", [*C, "-O2", "-fno-pie", "-no-pie", "-Wl,-z,lazy"]),
    Case("C -O2 CET, frame pointers", "calls.c", "gcc", [*C, "-O2", "-fcf-protection=full", "-fno-omit-frame-pointer"]),
    Case("C -O2 DWARF 4, compressed", "calls.c", "gcc", [*C, "-O2", "-gdwarf-4", "-gz"]),
    Case("C -O2 stripped", "calls.c", "gcc", [*C, "-O2", "-s"], True),
    Case("C -O0 stripped", "calls.c", "gcc", [*C, "-O0", "-s"], True),
    Case("C static", "calls.c", "gcc", [*C, "-O2", "-static"]),
    Case("C static PIE", "calls.c", "gcc", [*C, "-O2", "-static-pie"]),
    Case("C static, stripped", "calls.c", "gcc", [*C, "-O2", "-static", "-s"], True, True),
    Case("C musl", "calls.c", "musl-gcc", [*C, "-O2"]),
    Case("C musl -O0", "calls.c", "musl-gcc", [*C, "-O0"]),
    Case("C musl static", "calls.c", "musl-gcc", [*C, "-O2", "-static"]),
    Case("C musl static, stripped", "calls.c", "musl-gcc", [*C, "-O2", "-static", "-s"], True, True),
    Case("C++ -O0", "calls.cpp", "g++", [*C, "-std=c++20", "-O0"]),
    Case("C++ -O2", "calls.cpp", "g++", [*C, "-std=c++20", "-O2"]),
    Case("C++ -O3 -flto", "calls.cpp", "g++", [*C, "-std=c++20", "-O3", "-flto"]),
    Case("C++ static", "calls.cpp", "g++", [*C, "-std=c++20", "-O2", "-static"]),
    Case("Rust debug", "calls.rs", "rustc", RUST),
    Case("Rust -O", "calls.rs", "rustc", [*RUST, "-O"]),
    Case("Rust -O, one unit, LTO", "calls.rs", "rustc", [*RUST, "-O", "-Clto=fat", "-Ccodegen-units=1"]),
    Case("Rust static", "calls.rs", "rustc", [*RUST, "-O", "-Ctarget-feature=+crt-static"]),
    Case("Go", "calls.go", "go", []),
    Case("Go without optimisation", "calls.go", "go", ["-gcflags=-N -l"]),
    Case("Go stripped", "calls.go", "go", ["-ldflags=-s -w"]),
    # Go's functions must be found beside the functions that this program exports for C.
    Case("Go with C", "calls.go", "go", [os.path.join(SOURCES, "with_c.go")]),
    Case("Go with C, stripped", "calls.go", "go", ["-ldflags=-s -w", os.path.join(SOURCES, "with_c.go")]),
    # This way builds Go's own library anew.
    Case("Go PIE, stripped", "calls.go", "go", ["-buildmode=pie", "-ldflags=-s -w"], long=True),
]
# Function in which a stripped program shows an inlined one.
AROUND = {"inlined": "around"}


def build(box, case):
    """Builds the case's program once. Returns its path."""
    compiler = shutil.which(case.compiler, path=os.environ.get("PATH", "") + ":/usr/local/go/bin")
    if not compiler:
        raise Skip(f"{case.compiler} is not installed")
    source = os.path.join(SOURCES, case.source)

    def command(out):
        return [compiler, "build", "-o", out, *case.flags, source] if case.compiler == "go" else [compiler, *case.flags, "-o", out, source]

    env = dict(os.environ, GOCACHE=GO_CACHE, GO111MODULE="off", GOFLAGS="")
    return box.shared.built(re.sub(r"\W+", "-", case.name.replace("+", "p")), command, env)


def addresses(box, case):
    """Returns the addresses of a stripped program's functions, by its unstripped twin."""
    twin = build(box, case._replace(name=case.name + " twin", flags=[f for f in case.flags if f != "-s"]))
    lines = subprocess.run(["nm", twin], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: int(at, 16) for at, _, name in (line.split() for line in lines if line.count(" ") == 2)}


def truth(box, case, exe):
    """Returns {system calls: [(kind, apis, functions, line)]}."""
    starts = addresses(box, case) if case.stripped else {}
    marks = collections.defaultdict(list)
    libc = "musl" in case.compiler
    skipping = []
    with open(os.path.join(SOURCES, case.source)) as f:
        for number, text in enumerate(f, 1):
            # Sources ask for __GLIBC__ only.
            if text.startswith("#ifdef"):
                skipping.append(libc)
            elif text.startswith("#else") and skipping:
                skipping[-1] = not skipping[-1]
            elif text.startswith("#endif"):
                skipping.pop()
            mark = MARK.search(text.rstrip())
            if not mark or any(skipping):
                continue
            kind, calls, api, functions = mark.groups()
            apis, functions, line = {None if a == "-" else a for a in api.split("|")}, set(functions.split(" | ")), number
            if case.nameless:
                # A call that other places make as well can't be told apart by its API.
                if kind == "+":
                    continue
                apis = {None}
            if case.stripped:
                functions = {f"{os.path.basename(exe)}+{starts[AROUND.get(f, f)]:#x}" for f in functions}
                line = None
            marks[tuple(calls.split("|"))].append((kind, apis, functions, line))
    return marks


def seen(doc, calls):
    """Returns the names in the rows of some system calls."""
    rows = [r for r in doc["rows"] if r["syscall"] in calls]
    user = [(r["user"] or {}) for r in rows]
    return {(r["api"], u.get("function"), u.get("line")) for r, u in zip(rows, user)}


def compare(marks, doc):
    """Returns the marks that are right, and what is wrong."""
    right, wrong = 0, []
    for calls, group in marks.items():
        names = seen(doc, calls)

        def found(mark):
            _, apis, functions, line = mark
            return {n for n in names if n[0] in apis and n[1] in functions and n[2] == line}

        alone = [m for m in group if m[0] in "=?"]
        others = names.difference(*map(found, alone)) if alone else set()
        for mark in group:
            here = found(mark) or mark[0] == "?" and any(map(found, alone))
            ok = here and not (mark[0] in "=?" and others)
            right += bool(ok)
            if not ok:
                wrong.append(f"{'|'.join(calls)} {mark[1:]}: {sorted(names, key=str)}")
    return right, wrong


@test(backends=BOTH)
def names_are_the_truth(box):
    right, total, wrong = 0, 0, []
    # Names do not depend on the user: one user tries all cases, the other a few.
    cases = [c for c in CASES if box.shared.long or not c.long]
    cases = cases if box.user == "root" else cases[2::6]
    # An emulated machine builds one C program: in one for Go, the compiler would build its library, which takes minutes there.
    cases = cases if to_run(cases) == cases else cases[:1]
    for case in cases:
        exe = build(box, case)
        marks = truth(box, case, exe)
        doc, r = box.report([exe])
        assert r.returncode == 0, f"{case.name}: exit {r.returncode}"
        good, bad = compare(marks, doc)
        right, total = right + good, total + sum(map(len, marks.values()))
        wrong += [f"{case.name}: {b}" for b in bad]
    print(f"      {len(cases)} programs, {right} of {total} calls have API, function and line of their sources")
    assert not wrong, "\n".join(wrong)


@test(users=("root",))
def the_same_row_has_the_same_names_from_both_backends(box):
    # The number of these calls depends on timing.
    timing = {"futex", "madvise", "munmap", "mprotect", "mmap", "brk", "sched_yield", "rt_sigreturn"}
    for case in [c for c in CASES if c.name in ("C -O2", "C static", "C musl", "C++ -O2", "Rust -O")]:
        exe = build(box, case)
        by = {}
        for backend in BOTH:
            box.backend = backend
            rows = box.report([exe])[0]["rows"]
            by[backend] = {(r["syscall"], r["api"], r["module"], str(r["user"])) for r in rows if r["syscall"] not in timing}
        both = by["ptrace"] ^ by["inproc"]
        assert not both, f"{case.name}: only one has {sorted(both, key=str)}"


def getsid_of(doc):
    """Returns API, function, line and module of the one row of getsid."""
    rows = [r for r in doc["rows"] if r["syscall"] == "getsid"]
    assert len(rows) == 1, rows
    user = rows[0]["user"] or {}
    return rows[0]["api"], user.get("function"), user.get("line"), os.path.basename(user.get("module") or "")


def objcopy(*args):
    subprocess.run(["objcopy", *args], check=True, timeout=60)


@test()
def debug_files_are_found_wherever_they_are(box):
    source = os.path.join(SOURCES, "replaced.c")
    at = lambda name: os.path.join(box.dir, name)  # noqa: E731
    subprocess.run(["gcc", "-O2", "-g", "-o", at("full"), source], check=True, timeout=60)
    notes = subprocess.run(["readelf", "-n", at("full")], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: (\w+)", notes)[1]
    objcopy("--only-keep-debug", at("full"), at("full.debug"))
    objcopy("--strip-all", at("full"), at("bare"))
    folder = at(f"roots/.build-id/{build_id[:2]}")
    os.makedirs(folder)
    shutil.copy(at("full.debug"), os.path.join(folder, build_id[2:] + ".debug"))
    named, function = ("getsid", "upgraded", 7), "upgraded"

    def seen_as(program, **env):
        os.chmod(at(program), 0o755)
        return getsid_of(box.report([at(program)], env=dict(box.env, **env))[0])[:3]

    assert seen_as("full") == named
    bare = seen_as("bare")
    assert bare[0] == "getsid" and re.fullmatch(r"bare\+0x[0-9a-f]+", bare[1]) and bare[2] is None, bare
    assert seen_as("bare", SYSTOLL_DEBUG_PATH=f"{at('nowhere')}:{at('roots')}") == named
    # The debug file is found by its link beside the program, by its checksum if there is no build-id; another program's
    # is refused.
    for strip in ([], ["--remove-section=.note.gnu.build-id"]):
        objcopy(*strip, f"--add-gnu-debuglink={at('full.debug')}", at("bare"), at("linked"))
        assert seen_as("linked") == named, strip
    with open(at("full.debug"), "ab") as f:
        f.write(b"changed")
    assert seen_as("linked")[1] == bare[1].replace("bare", "linked")
    os.unlink(at("full.debug"))
    # The file contains its symbols only, compressed.
    objcopy("--strip-debug", at("full"), at("symbols"))
    subprocess.run([tool("xz"), "-k", at("symbols")], check=True, timeout=60)
    objcopy(f"--add-section=.gnu_debugdata={at('symbols.xz')}", at("bare"), at("packed"))
    assert seen_as("packed") == ("getsid", function, None)
    # The debug file is fetched if servers are named; a server that does not have it says so.
    fetch = f'#!/bin/sh\n[ "$*" = "debuginfod" ] && exit 0\n[ "$1 $2" = "debuginfo {build_id}" ] && echo {folder}/{build_id[2:]}.debug\n'
    os.mkdir(at("bin"))
    box.file("bin/debuginfod-find", fetch, 0o755)
    path = at("bin") + ":" + box.env["PATH"]
    assert seen_as("bare", PATH=path, DEBUGINFOD_URLS="http://localhost") == named
    assert seen_as("bare", PATH=path)[1] == bare[1], "nobody is asked unless servers are named"
    box.file("bin/debuginfod-find", "#!/bin/sh\necho /etc/passwd\n", 0o755)
    assert seen_as("bare", PATH=path, DEBUGINFOD_URLS="http://localhost")[1] == bare[1]


@test(users=("root",), backends=BOTH)
def the_c_librarys_names_do_not_hang_on_its_debug_file(box):
    if GLIBC < (2, 33):
        raise Skip("before glibc 2.33 stat is a function of its header, inlined: without the debug file it is taken for the program's own")
    for case in [c for c in CASES if c.name in ("C -O2", "C++ -O2", "Rust -O")]:
        exe = build(box, case)
        marks = truth(box, case, exe)
        doc, _ = box.report([exe], env=dict(box.env, SYSTOLL_DEBUG_PATH="/nowhere"))
        right, wrong = compare(marks, doc)
        assert not wrong and right, f"{case.name}: {wrong}"


@test(backends=BOTH)
def names_survive_the_file(box):
    exe = box.build("names/replaced.c", name="replaced")
    named = ("getsid", "upgraded", 7)
    # The program is replaced while it runs.
    own, other = os.path.join(box.dir, "own"), os.path.join(box.dir, "other")
    shutil.copy(exe, own)
    shutil.copy("/bin/true", other)
    doc, r = box.report([own, other, own])
    assert (r.returncode, getsid_of(doc)) == (0, (*named, "own"))
    # This program's file never had a name.
    script = "import os,sys\nf=os.memfd_create('x')\nos.write(f,open(sys.argv[1],'rb').read())\nos.execve(f,['x'],os.environ)\n"
    doc, r = box.report(["/usr/bin/python3", "-c", script, exe])
    assert (r.returncode, getsid_of(doc)[:3]) == (0, named)
    # These libraries were closed again.
    libraries = [
        box.build("names/closed.c", "-shared", "-fPIC", "-DLIBRARY", f"-DFUNCTION={function}", f"-DCALL={call}", name=function + ".so")
        for function, call in (("first", "getsid"), ("second", "getpgid"))
    ]
    doc, r = box.report([box.build("names/closed.c", "-Wl,--no-as-needed", "-ldl", name="closed"), *libraries])
    calls = {r["syscall"]: (r["api"], r["user"]["function"], r["user"]["line"]) for r in doc["rows"] if r["syscall"] in ("getsid", "getpgid")}
    assert r.returncode == 0 and calls == {"getsid": ("getsid", "first", 10), "getpgid": ("getpgid", "second", 10)}, calls


@test(users=("root",), backends=BOTH)
def names_survive_a_mount_namespace(box):
    box.may("a mount of its own is", *MOUNTING)
    exe = box.build("names/replaced.c", name="replaced")
    # Inside the container, the path is another file than outside.
    path = box.file("program", "#!/bin/sh\nexit 9\n", 0o755)
    doc, r = box.report(["unshare", "-m", "sh", "-c", f"mount --bind {exe} {path} && exec {path}"])
    assert (r.returncode, getsid_of(doc)[:3]) == (0, ("getsid", "upgraded", 7)), r.stderr
