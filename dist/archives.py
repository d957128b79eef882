"""Archives whose bytes depend on what is in them alone: sorted, one owner, one time."""
import gzip
import hashlib
import io
import os
import subprocess
import tarfile
import zipfile
from base64 import urlsafe_b64encode

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Entry:
    """A file of an archive: its name there, its bytes, its mode."""

    def __init__(self, name, data, mode=0o644):
        self.name, self.data, self.mode = name, data.encode() if isinstance(data, str) else data, mode


def epoch():
    """The time that all files have: SOURCE_DATE_EPOCH, the last commit's, or 1980, zip's first."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    command = ["git", "-C", ROOT, "-c", "safe.directory=*", "log", "-1", "--format=%ct"]
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return int(r.stdout) if r.returncode == 0 and r.stdout.strip() else 315532800


def level():
    """How hard packages are compressed, 1 to 9: tests have no time to lose."""
    return int(os.environ.get("SYSTOLL_PACKAGE_LEVEL", "6"))


def gz(data):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=level(), fileobj=out, mtime=epoch()) as f:
        f.write(data)
    return out.getvalue()


def tar(entries):
    """A tar with the folders that its files lie in, unpacked."""
    out = io.BytesIO()
    folders = set()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as t:
        for entry in sorted(entries, key=lambda e: e.name):
            parts = entry.name.split("/")[:-1]
            for n in range(1, len(parts) + 1):
                folder = "/".join(parts[:n])
                if folder not in folders and folder != ".":
                    folders.add(folder)
                    t.addfile(info(folder, 0o755, kind=tarfile.DIRTYPE))
            t.addfile(info(entry.name, entry.mode, len(entry.data)), io.BytesIO(entry.data))
    return out.getvalue()


def info(name, mode, size=0, kind=tarfile.REGTYPE):
    t = tarfile.TarInfo(name)
    t.type, t.mode, t.size, t.mtime = kind, mode, size, epoch()
    t.uname = t.gname = "root"
    return t


def ar(members):
    """An ar of (name, bytes), as a .deb is one."""
    out = [b"!<arch>\n"]
    for name, data in members:
        out.append(f"{name:<16}{epoch():<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode())
        out.append(data + b"\n" * (len(data) % 2))
    return b"".join(out)


def wheel(entries, info_folder):
    """A wheel: a zip with a list of its files and their hashes."""
    import time

    entries = sorted(entries, key=lambda e: (e.name.startswith(info_folder), e.name))
    record = "".join(f"{e.name},sha256={digest(e.data)},{len(e.data)}\n" for e in entries)
    record += f"{info_folder}/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=level()) as z:
        for entry in [*entries, Entry(f"{info_folder}/RECORD", record)]:
            i = zipfile.ZipInfo(entry.name, time.gmtime(max(epoch(), 315532800))[:6])
            i.external_attr, i.compress_type, i.create_system = (0o100000 | entry.mode) << 16, zipfile.ZIP_DEFLATED, 3
            z.writestr(i, entry.data)
    return out.getvalue()


def digest(data):
    return urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
