"""@pytest.mark.limit_calls(openat=3): fails a test that makes more system calls than that."""
import os

import pytest

from ._calls import calls, is_call

MARK = "limit_calls"


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        f"{MARK}(**limits): fail the test where its function makes more system calls than that in its own thread, "
        f"by name or in total: {MARK}(openat=3, total=20)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """A mark that makes no sense fails its own test, and no other."""
    for mark in item.iter_markers(MARK):
        wrong = _wrong(item, mark)
        if wrong:
            pytest.fail(f"{MARK}: {wrong}", pytrace=False)


def _wrong(item, mark):
    """What is wrong with a mark, or None."""
    if mark.args or not mark.kwargs:
        return "it takes names of system calls with their limits, such as openat=3"
    for name, limit in mark.kwargs.items():
        if name != "total" and not is_call(name):
            return f"no system call is named {name!r}"
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            return f"{name}={limit!r}: a limit is a number of calls"
    if not isinstance(item, pytest.Function) or type(item).__name__ == "TestCaseFunction":
        return "it limits test functions; in a unittest.TestCase use `with systoll.calls()`"
    return None


@pytest.hookimpl(hookwrapper=True, tryfirst=False)
def pytest_pyfunc_call(pyfuncitem):
    marks = list(pyfuncitem.iter_markers(MARK))
    if not marks:
        yield
        return
    with calls() as counted:
        outcome = yield
    # What the test itself says comes first.
    if outcome.excinfo is None:
        verdict = _verdict(marks, counted)
        if verdict is not None:
            _force(outcome, verdict)


def _verdict(marks, counted):
    """The exception that tells what the counts say; None where all limits are kept."""
    if counted.skipped is not None:
        said = f"the test passed, but its system calls are not counted: {counted.skipped}"
        strict = os.environ.get("SYSTOLL_TEST_STRICT") == "1"
        return pytest.fail.Exception(said, pytrace=False) if strict else pytest.skip.Exception(said)
    broken = [
        f"{name}: {counted[name]} calls, {limit} is the limit"
        for mark in marks
        for name, limit in mark.kwargs.items()
        if counted[name] > limit
    ]
    if not broken and counted.incomplete is None:
        return None
    over = {name for mark in marks for name, limit in mark.kwargs.items() if counted[name] > limit}
    names = {call for name in over for call in ([name] if name == "total" else counted.stands_for(name))}
    who = [f"    {c}" for c in counted.callers if "total" in names or c.call in names]
    said = broken + who + ([counted.incomplete] if counted.incomplete else [])
    return pytest.fail.Exception("\n".join(said), pytrace=False)


def _force(outcome, exception):
    if hasattr(outcome, "force_exception"):
        outcome.force_exception(exception)
    else:
        # pluggy before 1.1, of pytest 7.2: raising here would leave other plugins' wrappers unfinished.
        outcome._result = None
        outcome._excinfo = (type(exception), exception, exception.__traceback__)
