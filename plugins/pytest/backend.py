"""What pip asks for a wheel (PEP 517). SYSTOLL_PIECES is a folder that has what dist/package.py would build."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "dist"))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import built
    import package

    pieces = os.environ.get("SYSTOLL_PIECES") or os.path.join(ROOT, "target", "dist-pieces")
    built.build(pieces, [name for name in built.pieces(pieces) if not os.path.exists(os.path.join(pieces, name))])
    name, data = package.make_wheel(pieces)
    built.keep(wheel_directory, name, data, 0o644)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the command is built from the whole repository: a wheel, or a checkout")
