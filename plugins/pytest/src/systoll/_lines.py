"""Lines of Python: where in the program a call was made.

The counter reads, at each call, which code objects the thread is in and at which instruction, from
the interpreter's own frames. Their layout depends on the version, so it is tried here on a frame
that is known; where it does not fit, calls have no lines. What the counter noted is never
dereferenced: an address is looked up among the code objects that exist.
"""
import ctypes
import gc
import platform
import sys
import types

from ._native import PythonFrames

_NONE = 2**64 - 1

# (first, second, code, instruction, previous, bytecode within a code object), by minor version; of
# CPython's headers for x86-64, where fields do not move within a minor version.
_LAYOUTS = {
    11: (56, 8, 32, 56, 48, 184),
    12: (56, 0, 0, 56, 8, 192),
}


def _word(address):
    return ctypes.c_uint64.from_address(address).value


def _thread_state():
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    return get


def _codes(layout, thread):
    """Code objects' addresses of the innermost frames, as the counter would read them."""
    first, second, code, _, previous, _ = layout
    frame = _word(thread + first)
    if second != _NONE:
        frame = _word(frame + second)
    codes = []
    while frame and len(codes) < 6:
        codes.append(_word(frame + code))
        frame = _word(frame + previous)
    return codes


def _find_layout():
    layout = _LAYOUTS.get(sys.version_info[1])
    known = sys.implementation.name == "cpython" and sys.version_info[0] == 3 and platform.machine() == "x86_64"
    # A debug build's objects have other layouts.
    if not known or layout is None or hasattr(sys, "gettotalrefcount"):
        return None

    def inner():
        seen = _codes(layout, _thread_state()())
        frames = sys._getframe(), sys._getframe().f_back
        expected = [id(frame.f_code) for frame in frames]
        # `_codes` itself is the innermost; others may lie between from 3.12 on.
        at = seen.index(expected[0]) if expected[0] in seen else None
        return at is not None and expected[1] in seen[at:]

    return layout if inner() else None


try:
    layout = _find_layout()
except Exception:  # An interpreter that is not what it says: no lines.
    layout = None


def frames():
    """What the counter needs to read this thread's frames; None where it can't."""
    if layout is None:
        return None
    first, second, code, instruction, previous, _ = layout
    return PythonFrames(_thread_state()(), first, second, code, instruction, previous)


def _code_objects():
    """Every code object that can be found, by address."""
    found, waiting = {}, []
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType:
            waiting.append(thing.__code__)
    for frame in sys._current_frames().values():
        while frame is not None:
            waiting.append(frame.f_code)
            frame = frame.f_back
    while waiting:
        code = waiting.pop()
        if id(code) not in found:
            found[id(code)] = code
            waiting.extend(c for c in code.co_consts if type(c) is types.CodeType)
    return found


def named(scripts, block):
    """Each list of (code, instruction) as a list of 'file:line in function', innermost first, up to the
    function with the block: `block` is its code. A mark's block is in pytest's code, which is left out."""
    if layout is None or not any(scripts):
        return [[] for _ in scripts]
    codes, bytecode = _code_objects(), layout[5]
    named = []
    for script in scripts:
        lines = []
        for address, at in script:
            code = codes.get(address)
            if code is not None and code.co_name == "pytest_pyfunc_call":
                break
            line = _line(code, at - address - bytecode)
            if line:
                lines.append(line)
            if code is block:
                break
        named.append(lines)
    return named


def _line(code, offset):
    if code is None or not 0 <= offset < len(code.co_code):
        return None
    name = getattr(code, "co_qualname", code.co_name)
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return f"{code.co_filename}:{line} in {name}"
    return f"{code.co_filename} in {name}"
