"""Programs ask once about files without calls: later runs recognise such files by what the file system says of them."""
import os
import subprocess
import time

from harness import Skip, test

# Age of a file's last change, in seconds, from which on the time of the change tells files apart.
SURE_AFTER = 3.2

ASKS_C_LIBRARY = """
#include <unistd.h>
int {name}(void) {{
    int sum = 0;
    for (int i = 0; i < {times}; i++) {{ __asm__ volatile(".skip 8 * {times}, 0x90"); sum += getppid(); }}
    return sum;
}}
"""
CALLS_ITSELF = """
int {name}(void) {{
    long sum = 0, got;
    for (int i = 0; i < {times}; i++) {{ __asm__ volatile("mov $110, %%eax; syscall; lea 1(%%rax), %0" : "=r"(got) : : "rax", "rcx", "r11", "memory"); sum += got; }}
    return sum;
}}
"""
NOTHING = "int {name}(void) {{ return {times}; }}\n"


def library(box, file, name, text, times=1):
    """Builds a library of one function and renames it into place: a new file under the same name."""
    source = box.file(f"{file}.c", text.format(name=name, times=times))
    path = os.path.join(box.dir, f"lib{file}.so")
    compile_(["gcc", "-g", "-O1", "-fPIC", "-shared", "-nostartfiles", "-o", path + ".new", source])
    os.rename(path + ".new", path)
    return path


def compile_(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def run(box, place, argv):
    doc, _ = box.report(argv, env={**box.env, "XDG_CACHE_HOME": place})
    assert doc["exact"], doc["problems"]
    calls = {}
    for row in doc["rows"]:
        if row["syscall"] == "getppid":
            user = row["user"] or {}
            calls[user.get("function")] = calls.get(user.get("function"), 0) + row["calls"]
    kept = [n for n in os.listdir(os.path.join(place, "systoll")) if n.startswith("state-")]
    return calls, kept


def fresh(box):
    place = os.path.join(box.dir, "cache")
    os.mkdir(place, 0o700)
    if box.user == "nobody":
        os.chown(place, 65534, 65534)
    return place


@test(backends=("inproc",))
def a_library_that_has_got_calls_is_asked_about(box):
    place = fresh(box)
    library(box, "one", "one", NOTHING)
    library(box, "two", "two", NOTHING)
    main = box.file("main.c", "int one(void), two(void);\nint main(void) { return one() + two() == 12345; }\n")
    program = os.path.join(box.dir, "program")
    compile_(["gcc", "-o", program, main, f"-L{box.dir}", "-lone", "-ltwo", f"-Wl,-rpath,{box.dir}"])
    time.sleep(SURE_AFTER)
    for _ in range(2):
        calls, kept = run(box, place, [program])
        if not kept:
            raise Skip("the file system of the box's files does not note every change: nothing is kept of them")
        assert calls == {}, calls
    # A new file is put in place, tried at once and when its change is long ago; then the same file is written over.
    path = library(box, "one", "one", CALLS_ITSELF, 10)
    assert run(box, place, [program])[0] == {"one": 10}
    time.sleep(SURE_AFTER)
    for _ in range(2):
        assert run(box, place, [program])[0] == {"one": 10}
    other = library(box, "other", "one", CALLS_ITSELF, 7)
    two = os.path.join(box.dir, "libtwo.so")
    with open(other, "rb") as f, open(path, "r+b") as g:
        g.truncate(0)
        g.write(f.read())
    assert run(box, place, [program])[0] == {"one": 7}
    # The library that was not asked about makes calls.
    more = library(box, "more", "two", CALLS_ITSELF, 5)
    with open(more, "rb") as f, open(two, "r+b") as g:
        g.truncate(0)
        g.write(f.read())
    for _ in range(2):
        assert run(box, place, [program])[0] == {"one": 7, "two": 5}


@test(backends=("inproc",))
def callers_in_files_without_calls_are_named_in_each_run(box):
    place = fresh(box)
    names = [f"f{n}" for n in range(12)]
    for n, name in enumerate(names):
        library(box, name, name, ASKS_C_LIBRARY if n % 3 == 0 else NOTHING, 10 + n)
    declared = "".join(f"int {name}(void);\n" for name in names)
    main = box.file("main.c", f"{declared}int main(void) {{ return {' + '.join(f'{n}()' for n in names)} == 12345; }}\n")
    program = os.path.join(box.dir, "program")
    compile_(["gcc", "-o", program, main, f"-L{box.dir}", *[f"-l{name}" for name in names], f"-Wl,-rpath,{box.dir}"])
    time.sleep(SURE_AFTER)
    expected = {name: 10 + n for n, name in enumerate(names) if n % 3 == 0}
    for _ in range(4):
        calls, kept = run(box, place, [program])
        assert calls == expected, (calls, expected)
        if not kept:
            raise Skip("the file system of the box's files does not note every change: nothing is kept of them")


@test(backends=("inproc",))
def a_replaced_file_is_recognised_as_another(box):
    place = fresh(box)
    names = [f"g{n}" for n in range(6)]
    for n, name in enumerate(names):
        # Each library calls at another distance from its function's start, because in one run a return address has one
        # caller.
        library(box, name, name, ASKS_C_LIBRARY.replace("(void)", "(int times)").replace("i < {times}", "i < times"), len(names) - n)
    main = box.file("main.c", f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static void *at;
static int same;
static int call(int n, int times) {{
    char path[4096], name[16];
    snprintf(path, sizeof path, "{box.dir}/libg%d.so", n);
    snprintf(name, sizeof name, "g%d", n);
    void *lib = dlopen(path, RTLD_NOW);
    int (*f)(int) = lib ? (int (*)(int))dlsym(lib, name) : 0;
    if (!f) return -1;
    Dl_info info;
    same += dladdr((void *)f, &info) && info.dli_fbase == at;
    at = info.dli_fbase;
    f(times);
    dlclose(lib);
    return 0;
}}
int main(int argc, char **argv) {{
    for (int n = 0; n < {len(names)}; n++) if (call(n, atoi(argv[1]))) return 2;
    // One has come where another was, or this shows nothing.
    return same == 0;
}}
""")
    program = os.path.join(box.dir, "program")
    compile_(["gcc", "-o", program, main, "-ldl"])
    time.sleep(SURE_AFTER)
    # At first the library makes no calls, and is known for that; then it does.
    for times in (0, 0, 10, 10, 20):
        calls, _ = run(box, place, [program, str(times)])
        assert calls == ({name: times for name in names} if times else {}), (times, calls)
