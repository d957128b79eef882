"""Children that the kernel reports to no tracer run on; their calls are counted, or the report says that they are missing."""
from harness import BOTH, test


def calls_of(doc):
    return sum(row["calls"] for row in doc["by_syscall"] if row["syscall"] == "getppid")


@test(backends=BOTH)
def untraced_children_run_on(box):
    """Under ptrace, children made with CLONE_UNTRACED run unwatched, so counts are not exact, and systoll says so."""
    program = box.build("untraced.c")
    for way in ("0", "3"):
        doc, r = box.report([program, way, "plain"])
        assert r.returncode == 7 and doc["exact"] and calls_of(doc) == 100, (way, doc["problems"])
        doc, r = box.report([program, way])
        assert r.returncode == 7, r
        seen = calls_of(doc) == 100
        told = any("CLONE_UNTRACED" in p for p in doc["problems"])
        assert doc["exact"] == seen and told != seen, (way, seen, doc["problems"])
