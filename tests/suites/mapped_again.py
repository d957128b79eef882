"""Libraries without calls, which programs of a run map again without asking, are recognised by their identity, not by name."""
import os
import subprocess

from harness import test

QUIET = "int ask(void) { return 1; }\n"
# A library that calls without the C library, with room for a jump on both sides of the call.
ASKING = """
static __attribute__((noinline)) long raw(void) {
  long result = 124;
  __asm__ volatile("nop; nop; nop; nop; nop; syscall; nop; nop; nop; nop; nop; nop; nop; nop" : "+a"(result) : "D"(0) : "rcx", "r11", "memory");
  return result + 1;
}
int ask(void) {
  long sum = 0;
  for (int i = 0; i < 5; i++) sum += raw();
  return sum != 0;
}
"""
THROUGH = """
#include <unistd.h>
__attribute__((noinline)) int ask(void) { int sum = 0; for (int i = 0; i < 7; i++) sum += getsid(0); return sum + 1; }
"""
MAIN = "int ask(void);\nint main(void) { return ask() == 0; }\n"
SIZE = 32 << 10


def build(box, name, source, *flags):
    path = os.path.join(box.dir, name)
    done = subprocess.run(["gcc", "-g", "-O1", "-o", path, box.file(name + ".c", source), *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return path


def library(box, name, source):
    """Builds a library of SIZE bytes; all have the same time of their last change."""
    path = build(box, name, source, "-shared", "-fPIC", "-Wl,-z,max-page-size=4096")
    assert os.path.getsize(path) <= SIZE, os.path.getsize(path)
    os.truncate(path, SIZE)
    os.chmod(path, 0o755)
    if box.user == "nobody":
        os.chown(path, 65534, 65534)
    os.utime(path, ns=(10**18, 10**18))
    return path


def program(box):
    library(box, "libask.so", QUIET)
    return build(box, "main", MAIN, os.path.join(box.dir, "libask.so"), f"-Wl,-rpath,{box.dir}")


def getsid(doc):
    return [((r["user"] or {}).get("function"), r["calls"]) for r in doc["rows"] if r["syscall"] == "getsid"]


@test(backends=("inproc",))
def a_library_that_was_replaced_is_hooked(box):
    main = program(box)
    library(box, "other.so", ASKING)
    # The other library has the same name, size and time, but another inode.
    doc, r = box.report(["sh", "-c", f"for i in 1 2 3 4; do {main}; done; mv other.so libask.so; for i in 1 2 3; do {main}; done"])
    assert r.returncode == 0 and doc["exact"], doc["problems"]
    assert sum(n for _, n in getsid(doc)) == 15, getsid(doc)


@test(backends=("inproc",))
def a_library_that_was_written_over_is_hooked(box):
    main = program(box)
    library(box, "other.so", ASKING)
    doc, r = box.report(["sh", "-c", f"for i in 1 2 3 4; do {main}; done; cat other.so > libask.so; for i in 1 2 3; do {main}; done"])
    assert r.returncode == 0 and doc["exact"], doc["problems"]
    assert sum(n for _, n in getsid(doc)) == 15, getsid(doc)


@test(backends=("inproc",))
def callers_in_such_a_library_have_their_names(box):
    main = program(box)
    library(box, "libask.so", THROUGH)
    doc, r = box.report(["sh", "-c", "i=0; while [ $i -lt 20 ]; do " + main + "; i=$((i+1)); done"])
    assert r.returncode == 0 and doc["exact"], doc["problems"]
    assert getsid(doc) and all(who == "ask" for who, _ in getsid(doc)), getsid(doc)
    assert sum(n for _, n in getsid(doc)) == 140, getsid(doc)
