"""`systoll.calls()`."""
import sys
from dataclasses import dataclass, field
from typing import Dict, List, Optional

from . import _lines, _native


class NotCounted(Exception):
    """Calls can't be counted here; the text says why."""


@dataclass(frozen=True)
class Caller:
    """Calls that came from one place."""

    call: str
    """The system call's name."""
    calls: int
    """How often it was made from there."""
    frames: List[str] = field(default_factory=list)
    """Native functions, innermost first."""
    lines: List[str] = field(default_factory=list)
    """'file:line in function' of the Python program, innermost first; empty where it can't be told."""

    def __str__(self):
        # Of native code the function's name is enough where a line of Python is known.
        native = [frame.split(" (")[0] for frame in self.frames[:2]]
        return f"{self.calls} x {self.call}: " + " < ".join([*native, *self.lines])


class Calls:
    """The system calls that a thread makes in a `with` block; its counts hold when the block has ended."""

    def __init__(self):
        self.skipped: Optional[str] = _native.why_not
        """Why calls can't be counted here, or None."""
        self.incomplete: Optional[str] = None
        """Why the counts are too low, or None."""
        self._ended = None
        self._told = None
        self._callers: Optional[List[Caller]] = None
        self._block = None

    def __enter__(self):
        if self._told is not None or self._ended is not None:
            raise RuntimeError("a block's counts can't be counted again: call systoll.calls() for each")
        if self.skipped is None:
            frames = _lines.frames()
            self._block = sys._getframe(1).f_code
            self.skipped = _native.text(_native.library.systoll_block_begin(frames))
        return self

    def __exit__(self, *_):
        if self.skipped is not None:
            return
        self._ended = _native.library.systoll_block_end()
        if not self._ended:
            self.skipped = "the block ended in another thread or process than it began in"
            return
        self._told = _native.told(_native.library.systoll_block_counts, self._ended)
        self.incomplete = self._told["incomplete"]

    def __del__(self):
        if self._ended:
            _native.library.systoll_block_free(self._ended)

    def _counted(self):
        if self.skipped is not None:
            raise NotCounted(self.skipped)
        if self._told is None:
            raise RuntimeError("the block has not ended")
        return self._told

    @property
    def by_name(self) -> Dict[str, int]:
        """How often each call was made, those that were."""
        return dict(self._counted()["calls"])

    @property
    def total(self) -> int:
        """All calls but returns of signal handlers."""
        return self._counted()["total"]

    def __getitem__(self, name: str) -> int:
        """How often the call of this name was made; KeyError where no call is named so. The name of an older call stands
        as well for what libraries make of it today: "open" for openat; `by_name` tells them apart."""
        if name == "total":
            return self.total
        if not is_call(name):
            raise KeyError(f"no system call is named {name!r}")
        return sum(self._counted()["calls"].get(call, 0) for call in self.stands_for(name))

    def stands_for(self, name: str) -> List[str]:
        """The calls that `self[name]` counts."""
        return [name, *self._counted()["made_as"].get(name, [])]

    @property
    def callers(self) -> List[Caller]:
        """Who made the calls, most first. Names are looked up at the first use, which takes a while."""
        self._counted()
        if self._callers is None:
            told = _native.told(_native.library.systoll_block_callers, self._ended)
            lines = _lines.named([caller["script"] for caller in told], self._block)
            # One line may reach its call in several ways: the interpreter specialises what runs often.
            merged: Dict[tuple, list] = {}
            for c, ls in zip(told, lines):
                native = c["frames"][:2] if ls else c["frames"]
                merged.setdefault((c["call"], tuple(native), tuple(ls)), [c["frames"], 0])[1] += c["calls"]
            self._callers = [Caller(call, calls, frames, list(ls)) for (call, _, ls), (frames, calls) in merged.items()]
            self._callers.sort(key=lambda c: -c.calls)
        return self._callers

    def __str__(self):
        if self.skipped is not None:
            return f"not counted: {self.skipped}"
        return "\n".join(map(str, self.callers)) + (f"\n{self.incomplete}" if self.incomplete else "")

    def __repr__(self):
        if self.skipped is not None:
            return f"<systoll.Calls: not counted: {self.skipped}>"
        if self._told is None:
            return "<systoll.Calls: the block has not ended>"
        # What pytest shows of `assert c["openat"] == 0, c`.
        return f"<systoll.Calls {self._told['calls']}\n{self}>"


def calls() -> Calls:
    """Counts the calls of the thread that runs the `with` block."""
    return Calls()


def is_call(name: str) -> bool:
    """Whether a system call of x86-64 Linux has this name."""
    return _native.library is None or _native.library.systoll_block_is_call(name.encode())


def _warm_up():
    # What ctypes and json set up at their first use is no test's.
    with calls() as c:
        pass
    repr(c)


_warm_up()
