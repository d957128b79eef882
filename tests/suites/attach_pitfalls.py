"""What is known to go wrong where system calls are rewritten in a running program, and filters that forbid calls.

The pitfalls are those of "The Light and Shadow of System Call Interposition" (K23, Middleware 2025). Others of them are
tested elsewhere: calls before a library is loaded and calls into the vDSO (`counts`), threads that run while code is
written (`attach`, `attached_often.py`), data in functions (`crates/hooks/tests/plan`).
"""
from harness import test, text
from suites.attach import Running, calls, is_as_it_was, is_fine, watched


@test()
def nothing_but_calls_is_changed(box):
    """Bytes of a `syscall` in data and constants stay, address 0 faults as before, and no code can be written."""
    run = Running(box, program="pitfalls.c")

    def looks():
        return {word: run.ask(word) for word in ("data", "null", "pages")}
    fine = dict.fromkeys(("data", "null", "pages"), "fine")
    assert looks() == fine, looks()
    meanwhile = {}
    doc = watched(box, run.pid, lambda: meanwhile.update(looks()))
    assert meanwhile == fine and doc["exact"], (meanwhile, doc["problems"])
    is_as_it_was(run.pid)
    assert looks() == fine, looks()
    assert run.end() == 0


@test()
def a_program_without_environment_is_counted_too(box):
    run = Running(box, program="pitfalls.c")
    doc = watched(box, run.pid, lambda: run.ask("bare 321"))
    assert calls(doc, "getppid") == 321 and doc["exact"], (doc["by_syscall"], doc["problems"])
    is_as_it_was(run.pid)
    assert run.end() == 0


@test()
def code_that_is_made_meanwhile_is_counted_or_told(box):
    run = Running(box, program="pitfalls.c")
    doc = watched(box, run.pid, lambda: run.ask("made 123"))
    counted = calls(doc, "getppid")
    assert counted == 123 if doc["exact"] else counted <= 123 and doc["problems"], (counted, doc["problems"])
    is_as_it_was(run.pid)
    assert run.end() == 0


# Filters of `filtered.c`, and the call of systoll's that each forbids.
FILTERS = {"denied": None, "killed": None, "open-kills": "open", "both-kills": "mprotect of code"}


@test()
def a_filter_is_in_the_way_only_where_it_forbids_what_watching_does(box):
    for how, call in FILTERS.items():
        run = Running(box, "1", under=[box.build("filtered.c"), how])
        if box.user == "root" and call is None:
            doc = watched(box, run.pid, lambda: run.ask("ppid 100"))
            assert calls(doc, "getppid") >= 100 and doc["exact"], doc["problems"]
        else:
            r = box.run([box.systoll, "attach", "--for", "1s", str(run.pid)])
            why = f"does not allow {call}," if box.user == "root" else f"sudo systoll attach {run.pid}"
            assert r.returncode == 125 and "seccomp filter" in text(r.stderr) and why in text(r.stderr), r.stderr
        is_as_it_was(run.pid)
        is_fine(run)


@test(users=("root",))
def what_a_filtered_program_starts_is_counted_too(box):
    run = Running(box, program="pitfalls.c", under=[box.build("filtered.c"), "denied"])
    doc = watched(box, run.pid, lambda: run.ask("bare 321"))
    assert calls(doc, "getppid") == 321 and doc["exact"], (doc["by_syscall"], doc["problems"])
    is_as_it_was(run.pid)
    assert run.end() == 0
