"""What pytest is shown of limit_calls and of systoll.calls()."""
import os
import time

import pytest
import systoll


def opens(times):
    for _ in range(times):
        open("/proc/self/comm").close()


@pytest.mark.limit_calls(openat=2)
def test_kept():
    opens(2)


@pytest.mark.limit_calls(openat=2)
def test_broken():
    opens(5)  # BROKEN


@pytest.mark.limit_calls(total=1)
def test_broken_in_total():
    opens(1)


@pytest.mark.limit_calls(openat=2)
def test_fails_by_itself():
    opens(5)
    assert False, "its own"


@pytest.mark.limit_calls(openat=2)
@pytest.mark.limit_calls(close=0)
def test_two_marks():
    opens(1)


@pytest.mark.limit_calls(open=2)
def test_older_name():
    opens(3)


@pytest.fixture
def opened():
    opens(9)


@pytest.mark.limit_calls(openat=0)
def test_fixtures_are_not_counted(opened):
    pass


def test_block():
    with systoll.calls() as outer:
        os.getppid()
        with systoll.calls() as inner:
            for _ in range(3):
                os.getppid()  # HERE
    assert (outer["getppid"], inner["getppid"], inner.total) == (4, 3, 3)
    with pytest.raises(KeyError):
        inner["opneat"]
    lines = [caller.lines for caller in inner.callers]
    with open(__file__) as f:
        here = next(n for n, text in enumerate(f, 1) if text.rstrip().endswith("# HERE"))
    # Interpreters whose frames can't be read have no lines.
    assert lines in ([[f"{__file__}:{here} in test_block"]], [[]])


def test_block_left_by_an_exception():
    with pytest.raises(ZeroDivisionError):
        with systoll.calls() as c:
            os.getppid()
            1 / 0
    assert c["getppid"] == 1


def test_block_in_a_forked_child():
    with systoll.calls() as c:
        child = os.fork()
    if child == 0:
        os._exit(0 if c.skipped and "another" in c.skipped else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert c.skipped is None


def test_cost():
    best = 1
    for _ in range(50):
        begun = time.perf_counter()
        with systoll.calls():
            pass
        best = min(best, time.perf_counter() - begun)
    assert best < 0.001, best
