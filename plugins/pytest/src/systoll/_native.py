"""The counter's library, by ctypes."""
import ctypes
import json
import os

# PyDLL keeps the interpreter's lock: giving it up and taking it back may be calls of their own.
_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libsystoll_block.so")


class PythonFrames(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("thread", "first", "second", "code", "instruction", "previous")]


def _load():
    library = ctypes.PyDLL(_PATH)
    library.systoll_block_begin.argtypes = [ctypes.POINTER(PythonFrames)]
    library.systoll_block_begin.restype = ctypes.c_void_p
    library.systoll_block_end.argtypes = []
    library.systoll_block_end.restype = ctypes.c_void_p
    for name in ("counts", "callers"):
        function = getattr(library, "systoll_block_" + name)
        function.argtypes = [ctypes.c_void_p]
        function.restype = ctypes.c_void_p
    library.systoll_block_is_call.argtypes = [ctypes.c_char_p]
    library.systoll_block_is_call.restype = ctypes.c_bool
    for name in ("free", "free_text"):
        function = getattr(library, "systoll_block_" + name)
        function.argtypes = [ctypes.c_void_p]
        function.restype = None
    return library


try:
    library, why_not = _load(), None
except OSError as error:
    # Another architecture or system, or a checkout without a built library.
    library, why_not = None, f"the counter's library can't be loaded: {error}"
    if os.uname().machine != "x86_64":
        why_not = f"calls of a block are counted on x86-64 only, and this machine is {os.uname().machine}"


def text(pointer):
    """The text at `pointer`, which is freed; None for null."""
    if not pointer:
        return None
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        library.systoll_block_free_text(pointer)


def told(function, ended):
    return json.loads(text(function(ended)))
