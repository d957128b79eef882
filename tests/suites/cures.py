"""Cures that systoll applies remove the needless calls and change nothing else.

libc's own functions are the oracle: a program prints the same lines with them and with systoll's.
"""
import os
import re

from harness import GLIBC, HERE, Skip, test, text, tool
from suites.prove import proves

ROOT = os.path.dirname(HERE)
SHIM = os.path.join(ROOT, "crates", "cure", "shim")


def case(box, name, *flags):
    """Builds the sick program of a case."""
    return box.build(os.path.join(ROOT, "cases", "cases", name, "main.c"), *flags, name=name)


def story(box, name, *flags):
    """Builds the sick program of one of the demo's stories."""
    return box.build(os.path.join(ROOT, "crates", "cure", "demo", f"{name}.c"), *flags, name=f"story-{name}")


def contexts(box, *flags):
    # A part of the program names its contexts by their addresses, which must stay the same.
    return box.build("contexts.cpp", "-fno-pie", "-no-pie", *flags, compiler="g++")


def library(box, cause):
    """Exports the library of a cause's cure. Returns its path and what was printed."""
    r = box.run([box.systoll, "cure", "--export", box.dir, cause])
    assert r.returncode == 0, text(r.stderr)
    (found,) = [w for w in text(r.stdout).replace("=", "$").split("$") if w.startswith(box.dir)]
    return found, text(r.stdout)


def unlinked(box, name, sources, *flags):
    """Builds a library from a shim's sources in another way."""
    first, *more = [os.path.join(SHIM, source) for source in sources]
    needed = ("-shared", "-nostdlib", "-fPIC", "-ffreestanding", "-fno-stack-protector", "-mgeneral-regs-only")
    return box.build(first, *more, *needed, *flags, name=name)


def same(box, cause, argv, env=None):
    """Runs argv as it is and cured; what it does must be the same. Returns its lines."""
    plain = box.run(argv, env=env)
    cured = box.run([box.systoll, "cure", *cause.split(), "--", *argv], env=env)
    assert (plain.returncode, text(plain.stdout)) == (cured.returncode, text(cured.stdout)), text(cured.stderr)
    assert text(plain.stderr) == text(cured.stderr), text(cured.stderr)
    return text(plain.stdout)


def counts(proof, syscall):
    """Returns how often the call was made as the program is, and cured."""
    found = [{c["syscall"]: c for c in proof[side]["by_syscall"]}.get(syscall) for side in "ab"]
    return [0 if c is None else c["median"] for c in found]


@test()
def each_takes_its_calls_away(box):
    """The sick programs, unmodified, have the same output when cured; their calls are gone, and counted."""
    for cause, program, rounds, syscall, left in [
        ("sigmask-context", case(box, "c-swapcontext"), 5000, "rt_sigprocmask", 1),
        ("sigmask-context", story(box, "ucontext"), 5000, "rt_sigprocmask", 1),
        ("sigmask-setjmp", case(box, "c-sigsetjmp-guard"), 5000, "rt_sigprocmask", 0),
        ("sigmask-setjmp", story(box, "setjmp"), 5000, "rt_sigprocmask", 0),
        ("clock-in-kernel", case(box, "c-clock-raw-syscall"), 5000, "clock_gettime", 0),
        ("cpu-count-per-op", case(box, "c-nprocs-per-task"), 3000, "openat", 5),
        # A request of 256 bytes returns 64 numbers.
        ("random-per-number", case(box, "c-getrandom-u32"), 5000, "getrandom", 5000 // 64 + 5),
    ]:
        p = proves(box, "--pairs", "8", "--watched", "1", "--cure", cause, "--", program, str(rounds))
        sick, cured = counts(p, syscall)
        # Since 2.41 glibc draws numbers without a call, if the kernel's vDSO can.
        if syscall == "getrandom" and sick < 10 and GLIBC >= (2, 41):
            continue
        # Up to 2.31 glibc keeps the number of processors for a second.
        if cause == "cpu-count-per-op" and sick < 10 and GLIBC < (2, 32):
            continue
        # Shuffling takes one number less than there are elements; since 2.36 glibc's malloc draws one for itself.
        least = rounds - (syscall == "getrandom" and GLIBC < (2, 36))
        assert p["same_outcome"] and sick >= least and cured <= left, f"{cause} {program}: {sick} -> {cured}"
        assert p["a"]["exact"] and p["b"]["exact"] and p["verdict"]["cpu"] != "slower", p


@test()
def barriers_no_longer_wait(box):
    """The cured program makes as many calls, and one to register before there are threads; only the waiting is gone."""
    p = proves(box, "--pairs", "8", "--watched", "1", "--cure", "membarrier-global", "--", case(box, "c-membarrier-global"), "10")
    sick, cured = counts(p, "membarrier")
    assert p["same_outcome"] and (sick, cured) == (10, 11), (sick, cured)
    # If it registered only after it had made its thread, it would wait once for all processors: a tenth of the whole. A busy
    # machine starts programs late, which prolongs the cured one.
    assert p["change"]["wall"]["low"] < -93, p["change"]
    lib = box.build(os.path.join(ROOT, "crates", "cure", "demo", "membarrier_lib.c"), "-shared", "-fPIC", name="libstory.so")
    program = story(box, "membarrier", lib)
    p = proves(box, "--pairs", "8", "--watched", "1", "--cure", "membarrier-global", "--", program)
    assert p["same_outcome"] and counts(p, "membarrier") == [10, 11] and p["change"]["wall"]["percent"] < -40, p["change"]


SAME = "arguments nested registers floating exceptions jumps threads own_mask".split()


@test()
def contexts_behave_like_glibcs(box):
    for flags in ([], ["-fcf-protection=full"]):
        program = contexts(box, *flags)
        lines = same(box, "sigmask-context", [program, *SAME])
        assert "level 10" in lines and "carried: inner" in lines and lines.count("jumped") == 3, lines
        # The program makes calls with 0 to 8 arguments on stacks of four sizes, in ten levels and four threads.
        assert lines.count("aligned 0\n") == 4 and lines.count("sum 39000\n") == 4, lines
    for part in ("saved_mask", "uncaught", "last"):
        same(box, "sigmask-context", [program, part])


@test()
def the_oldest_glibcs_will_do(box):
    """Before glibc 2.34 there may be no dlsym: then calls are made without libc's function."""
    for name in ("membarrier.S", "clock.S"):
        bare = unlinked(box, f"lib{name[0]}.so", [name], "-Ddlsym=there_is_none")
        program = box.build("direct.c")
        plain, cured = box.run([program]), box.run([program], env={**box.env, "LD_PRELOAD": bare})
        assert (plain.returncode, text(plain.stdout)) == (cured.returncode, text(cured.stdout)), text(cured.stdout)
        assert cured.stderr == b"", text(cured.stderr)


@test()
def shadow_stacks_are_left_to_glibc(box):
    """If a thread has a shadow stack, glibc's own functions go on and save the mask as well. A library that takes every
    thread for one with a shadow stack must behave like no cure."""
    program = contexts(box)
    aside = unlinked(box, "libaside.so", ["context.S", "make.c"], "-DAS_IF_SHADOWED")
    argv = [program, *SAME, "changed_mask", "from_handler"]
    plain, cured = box.run(argv), box.run(argv, env={**box.env, "LD_PRELOAD": aside})
    assert (plain.returncode, text(plain.stdout), text(plain.stderr)) == (cured.returncode, text(cured.stdout), text(cured.stderr))
    assert cured.returncode == 3 and "given up: USR1 0" in text(cured.stdout), text(cured.stdout)
    # Every library says that it supports shadow stacks, so that the loader need not turn them off.
    for cause in ("sigmask-context", "sigmask-setjmp", "membarrier-global", "clock-in-kernel", "cpu-count-per-op", "random-per-number"):
        path, _ = library(box, cause)
        notes = box.run([tool("readelf"), "-n", path])
        assert "IBT, SHSTK" in text(notes.stdout), f"{cause}: {text(notes.stdout)}"


@test()
def jumps_behave_like_libcs(box):
    parts = "values nested plain function threads unsaved kept_mask".split()
    for flags in ([], ["-D_FORTIFY_SOURCE=2"]):
        lines = same(box, "sigmask-setjmp", [box.build("jumping.c", *flags), *parts])
        assert "outer 9 3" in lines and "kept: USR1 1" in lines and lines.count("125250\n") == 4, lines


@test()
def drawbacks_show_as_different_outcomes(box):
    """Programs that rely on masks are never told to do 'the same', so nothing is claimed."""
    for cause, argv in [
        ("sigmask-context", [contexts(box), "changed_mask"]),
        ("sigmask-context", [contexts(box), "from_handler"]),
        ("sigmask-setjmp", [box.build("jumping.c"), "from_handler"]),
    ]:
        p = proves(box, "--pairs", "8", "--watched", "0", "--same", "stdout", "--cure", cause, "--", *argv, code=1)
        assert (p["difference"], p["problem"], p["verdict"]) == ("stdout", "different-outcome", None), p


@test()
def direct_calls_behave_as_before(box):
    """The cures' libraries are loaded alone and together, in either order."""
    for causes in ("clock-in-kernel", "membarrier-global", "clock-in-kernel membarrier-global", "membarrier-global clock-in-kernel"):
        lines = same(box, causes, [box.build("direct.c")])
        assert "vfork: 9" in lines and "six arguments: page" in lines and "no such command: -1" in lines, lines


@test()
def answers_are_as_good(box):
    """No random number comes twice or is empty, in threads and in children forked at any moment; sysconf answers as
    before."""
    plain = box.run([box.build("answers.c")])
    if plain.returncode < 0:
        # In glibc 2.41 a handler's fork in the middle of getrandom never ends.
        raise Skip(f"this C library's own answers don't come to an end (signal {-plain.returncode})")
    for cause in ("random-per-number", "cpu-count-per-op"):
        lines = same(box, cause, [box.build("answers.c")])
        assert "forked 300 times\n26000 drawn, 0 twice, nothing drawn: 0\n" in lines, lines[-300:]


@test(users=("root",))
def musl_programs_are_cured(box):
    musl = lambda source: box.build(source, "-D_GNU_SOURCE", compiler="musl-gcc", name=source[:-2] + "-musl")
    assert "outer 9 3" in same(box, "sigmask-setjmp", [musl("jumping.c"), "values", "nested", "plain", "threads"])
    path, _ = library(box, "sigmask-setjmp")
    guard = box.build(os.path.join(ROOT, "cases", "cases", "c-sigsetjmp-guard", "main.c"), compiler="musl-gcc", name="guard-musl")
    p = proves(box, "--pairs", "8", "--watched", "1", "--cure", "sigmask-setjmp", "--", guard, "2000")
    sick, cured = counts(p, "rt_sigprocmask")
    assert p["same_outcome"] and sick >= 2000 and cured <= 5, (sick, cured)
    same(box, "clock-in-kernel membarrier-global random-per-number cpu-count-per-op", [musl("direct.c")])


@test()
def children_are_cured(box):
    """A shell script's programs are cured, and what they start, as far as the environment reaches."""
    program = contexts(box)
    script = box.file("script", f"#!/bin/sh\n{program} many; ({program} many); exec {program} many\n", 0o755)
    p = proves(box, "--pairs", "8", "--watched", "1", "--same", "stdout", "-i", "--cure", "sigmask-context", "--", script)
    sick, cured = counts(p, "rt_sigprocmask")
    # The programs make three times 10,000 switches and one question each; the shell itself blocks signals, too.
    assert sick >= 30000 and cured <= sick - 30000 + 3, (sick, cured)
    # With a new environment nothing is loaded, and all is as it was.
    p = proves(box, "--pairs", "8", "--watched", "1", "--same", "stdout", "-i", "--cure", "sigmask-context", "--", tool("env"), "-i", program, "many")
    sick, cured = counts(p, "rt_sigprocmask")
    assert sick == cured >= 10000, (sick, cured)


@test()
def a_bare_environment_will_do(box):
    """Without HOME, the library lies where temporary files do, in a folder that nobody else can write to."""
    show = ["sh", "-c", "echo $LD_PRELOAD; cat /proc/self/maps"]
    env = {"PATH": box.env["PATH"], "TMPDIR": box.tmp}
    r = box.run([box.systoll, "cure", "sigmask-context", "--", *show], env=env)
    path, maps = text(r.stdout).split("\n", 1)
    assert r.stderr == b"" and path.startswith(box.tmp) and path in maps, (path, text(r.stderr))
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700 and os.stat(path).st_mode & 0o777 == 0o600
    # A folder that others can write to is not used.
    shims = os.path.join(box.dir, "cache", "systoll", "shims")
    os.makedirs(shims)
    os.chmod(shims, 0o777)
    r = box.run([box.systoll, "cure", "sigmask-context", "--", *show], env={**env, "XDG_CACHE_HOME": os.path.join(box.dir, "cache")})
    assert text(r.stdout).split("\n")[0] == path and os.listdir(shims) == [], text(r.stdout)[:200]
    # A library that was to be loaded anyway is loaded after the cure's.
    r = box.run([box.systoll, "cure", "sigmask-context", "--", *show], env={**box.env, "LD_PRELOAD": "libm.so.6"})
    assert text(r.stdout).split("\n")[0].endswith(".so:libm.so.6") and re.search(r"/libm[.-]", text(r.stdout).split("\n", 1)[1])


@test()
def kept_cures_work_without_systoll(box):
    """The exported library and the printed line cure on their own; each kind of place gets its form."""
    path, lines = library(box, "sigmask-context")
    assert path.endswith("libsystoll-context.so") and os.stat(path).st_mode & 0o777 == 0o755, lines
    r = box.run(["sh", "-c", f"{lines}\necho $LD_PRELOAD"], env={**box.env, "LD_PRELOAD": "libm.so.6"})
    assert text(r.stdout) == f"{path}:libm.so.6\n", text(r.stdout)
    report, _ = box.report(["sh", "-c", f"{lines}\nexec {contexts(box)} many"])
    asked = sum(s["calls"] for s in report["by_syscall"] if s["syscall"] == "rt_sigprocmask")
    assert asked < 100, asked
    for kind, line in [
        ("shell", "export LD_PRELOAD=/usr/local/lib/libsystoll-context.so${LD_PRELOAD:+:$LD_PRELOAD}"),
        ("systemd", 'Environment="LD_PRELOAD=/usr/local/lib/libsystoll-context.so"'),
        ("docker", 'ENV LD_PRELOAD="/usr/local/lib/libsystoll-context.so"'),
        ("kubernetes", '  - name: LD_PRELOAD\n    value: "/usr/local/lib/libsystoll-context.so"'),
    ]:
        r = box.run([box.systoll, "cure", "--print", "sigmask-context", "--for", kind])
        how, rest = text(r.stdout).split("\n", 1)
        assert how == "# libsystoll-context.so: systoll cure --export /usr/local/lib sigmask-context" and line in rest, text(r.stdout)
    r = box.run([box.systoll, "cure", "--export", "/nonexistent", "sigmask-context"])
    assert r.returncode == 125 and "/nonexistent" in text(r.stderr), text(r.stderr)


@test()
def unreachable_programs_are_named_before_they_run(box):
    static = box.build("noop.c", "-static", name="static")
    script = box.file("static-script", f"#!{static}\n", 0o755)
    for program in (static, script):
        for words in (["cure", "sigmask-setjmp", "--"], ["prove", "--cure", "sigmask-setjmp", "--"]):
            r = box.run([box.systoll, *words, program])
            told = text(r.stderr)
            assert r.returncode == 125 and r.stdout == b"" and "statically" in told, told
            assert "systoll explain sigmask-setjmp" in told and "systoll prove --elide rt_sigprocmask -- CMD" in told, told
    if box.user == "nobody":
        r = box.run([box.systoll, "cure", "sigmask-setjmp", "--", tool("su"), "--version"])
        assert r.returncode == 125 and "other rights" in text(r.stderr), text(r.stderr)
    # The environment reaches a static program all the same.
    r = box.run([box.systoll, "cure", "tz-unset", "--", static])
    assert r.returncode != 125, text(r.stderr)


@test()
def a_finding_offers_its_cure(box):
    """`run` ends with the command that proves the finding, and that command proves it."""
    program = case(box, "c-swapcontext")
    report, _ = box.report([program, "20000"])
    (finding,) = [f for f in report["findings"] if f["cause"] == "sigmask-context"]
    assert finding["prove"] == ["systoll", "prove", "--cure", "sigmask-context", "--", program, "20000"], finding["prove"]
    assert any("before libc" in how for how in finding["stop"]), finding["stop"]
    r = box.run([box.systoll, "prove", "--pairs", "8", *finding["prove"][2:]])
    assert "cured: shim context" in text(r.stdout) and "keep it  systoll cure --export" in text(r.stdout), text(r.stdout)


@test(users=("root",))
def a_set_variable_is_unset(box):
    """Python's own switch for unbuffered output is removed if it is set."""
    program = box.file("prints.py", "for i in range(3000): print(i)\n")
    argv = [tool("python3"), program]
    p = proves(box, "--pairs", "8", "--watched", "1", "--cure", "unbuffered-output", "--", *argv, env={**box.env, "PYTHONUNBUFFERED": "1"})
    sick, cured = counts(p, "write")
    assert p["same_outcome"] and sick >= 3000 and cured < 20, (sick, cured)
    r = box.run([box.systoll, "prove", "--cure", "unbuffered-output", "--", *argv])
    assert r.returncode == 125 and "nothing to change here" in text(r.stderr), text(r.stderr)
