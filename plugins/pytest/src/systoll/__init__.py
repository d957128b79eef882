"""System calls of a block of code, counted exactly and with callers.

    import systoll

    with systoll.calls() as c:
        config = load("app.toml")
    assert c["openat"] <= 3, c

Counted is what the thread that runs the block calls in it. Where calls can't be counted,
`c.skipped` says why, and `c["openat"]` raises `systoll.NotCounted`.
"""
from ._calls import Calls, Caller, NotCounted, calls, is_call

__all__ = ["Calls", "Caller", "NotCounted", "calls", "is_call"]
