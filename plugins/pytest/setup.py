"""Builds the counter, a library of this repository written in Rust, into the wheel."""
import os
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

LIBRARY = "libsystoll_block.so"


def library():
    """The built library: SYSTOLL_BLOCK_LIBRARY, or cargo's of this checkout."""
    given = os.environ.get("SYSTOLL_BLOCK_LIBRARY")
    if given:
        return Path(given)
    root = Path(__file__).resolve().parents[2]
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "systoll-test-c"], cwd=root, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "release" / LIBRARY


class WithLibrary(build_py):
    def run(self):
        super().run()
        to = Path(self.build_lib) / "systoll" / LIBRARY
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library(), to)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-debug", str(to)], check=True)


class ForAnyPython(bdist_wheel):
    """The library is loaded by ctypes: one wheel serves all of them on x86-64 Linux."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"build_py": WithLibrary, "bdist_wheel": ForAnyPython})
