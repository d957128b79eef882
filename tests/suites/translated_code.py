"""Programs that translate others, files mapped in pieces, and changed code run as unwatched and are counted, or reported."""
import os

from harness import test, tool
from suites.namespaces_and_tracers import same


def calls(doc):
    return {row["syscall"]: row["calls"] for row in doc["by_syscall"]}


@test(backends=("inproc",))
def a_guest_s_code_stays_as_it_is(box):
    """Code that a program maps to translate is recognised by what it does, however it comes to be translated."""
    guest = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
    for how, *flags in [("code-first", "-static"), ("code-later", "-static"), ("plain",), ("code-first",)]:
        program = box.build("translator.c", *flags)
        doc, plain = same(box, [program, how, guest])
        assert plain.stdout == b"as it was\n", (how, flags, plain)
        assert any(f"translates other programs' code ({guest} first)" in p for p in doc["problems"]), (how, flags, doc["problems"])
        assert not doc["exact"], (how, flags)


@test(backends=("inproc",))
def a_loader_run_as_a_program_is_counted(box):
    """A loader that is run as a command maps a program, and is no translator."""
    doc, plain = same(box, ["/lib64/ld-linux-x86-64.so.2", "/bin/echo", "x"])
    assert plain.stdout == b"x\n" and doc["exact"], (plain, doc["problems"])
    assert calls(doc).get("write") == 1, calls(doc)


@test(backends=("inproc", "ptrace"))
def valgrind(box):
    doc, plain = same(box, [tool("valgrind"), "-q", "/bin/echo", "x"], limit=300)
    assert (plain.returncode, plain.stdout) == (0, b"x\n"), plain
    if doc["backend"] == "inproc":
        assert any("translates other programs' code" in p for p in doc["problems"]), doc["problems"]
    assert calls(doc).get("write", 0) >= 1, calls(doc)


@test(backends=("inproc",))
def an_emulator(box):
    doc, plain = same(box, [tool("qemu-x86_64"), "/bin/echo", "x"], limit=300)
    assert (plain.returncode, plain.stdout) == (0, b"x\n"), plain


@test(backends=("inproc",))
def a_file_in_two_pieces(box):
    """Each piece of code is hooked when it is mapped, and the first stays hooked."""
    library = box.build("pieces.c", "-shared", "-fPIC", "-Wl,--section-start=.far=0x400000", name="pieces.so")
    doc, plain = same(box, [box.build("pieces.c", "-DMAIN"), library])
    assert plain.stdout == b"done\n", plain
    assert doc["exact"], doc["problems"]
    assert (calls(doc).get("getppid"), calls(doc).get("getuid")) == (70, 30), calls(doc)


@test(backends=("inproc",))
def a_call_that_was_changed(box):
    """In a file in which something has changed one call, the others are counted."""
    doc, plain = same(box, [box.build("late_code.c"), "changed"])
    assert plain.stdout == b"20\n20\n", plain
    assert calls(doc).get("getgid") == 40, (calls(doc), doc["problems"])
    said = [p for p in doc["problems"] if "where something has changed the code" in p]
    assert len(said) == 1 and "1 of " in said[0] and "b8 66 00 00 00 lies where the file has b8 6e 00 00 00" in said[0], doc["problems"]
    assert not doc["exact"] and doc["sites"]["not_covered"] >= 1, doc["sites"]


@test(backends=("inproc",))
def data_among_code(box):
    """GHC's programs keep tables among their code, some of which look like uses of gs, others like calls."""
    argv = [tool("pandoc"), "--version"]
    doc, plain = same(box, argv, limit=600)
    assert plain.returncode == 0 and plain.stdout.startswith(b"pandoc"), plain
    assert not any("gs segment" in p for p in doc["problems"]), doc["problems"]
    assert doc["backend"] == "inproc", doc["backend"]
    assert doc["exact"] and doc["sites"]["not_covered"] == 0, (doc["sites"], doc["problems"])
