"""What goes into packages: built by cargo, or taken from a folder that has it."""
import glob
import os
import re
import subprocess

from archives import ROOT, Entry

LIBRARY = "libsystoll_block.so"
# Bytes of a program header that asks for a loader (elf.h: PT_INTERP), and where headers lie.
PT_INTERP = 3
# Names of a machine, Linux's and Debian's, by its number in ELF files (elf.h: EM_X86_64, EM_AARCH64).
MACHINES = {62: ("x86_64", "amd64"), 183: ("aarch64", "arm64")}
# The machine whose libraries for tests there are.
TESTED = "x86_64"


def workspace(field):
    """A field of Cargo.toml's [workspace.package]: version, license, repository."""
    with open(os.path.join(ROOT, "Cargo.toml")) as f:
        part = f.read().split("[workspace.package]")[1].split("\n[")[0]
    return re.search(rf'^{field} = "(.*)"$', part, re.M)[1]


def read(*parts):
    with open(os.path.join(*parts), "rb") as f:
        return f.read()


def flags():
    """No folder of this machine in what is built."""
    crates = os.path.join(os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo"), "registry", "src")
    places = [(ROOT, "/systoll"), *((folder, "/crates") for folder in sorted(glob.glob(os.path.join(crates, "*"))))]
    return [f"--remap-path-prefix={place}={name}" for place, name in places]


def cargo(*words, extra=()):
    # Spaces in a folder's name would part a flag: cargo's other variable has another sign between them.
    env = {**os.environ, "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*flags(), *extra])}
    target = env.setdefault("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    subprocess.run(["cargo", *words], cwd=ROOT, env=env, check=True)
    return target


def pieces(folder, target=None):
    """The names of what `folder` has to hold for packages of its command's machine; of the target's, or of this one,
    where there is no command yet."""
    if os.path.exists(os.path.join(folder, "systoll")):
        name = machine(folder)[0]
    else:
        name = (target or os.uname().machine).split("-")[0]
    return ("systoll", *([LIBRARY] if name == TESTED else []), "man", "completions")


def build(folder, wanted, sysroot=None, target=None):
    """Builds pieces and puts them into `folder`. The library is linked against the C library of `sysroot`, an older system's
    folder with its libc6-dev, where one is given."""
    extra = [f"-Clink-arg=--sysroot={sysroot}"] if sysroot else []
    for name, package, flags in (("systoll", "systoll", []), (LIBRARY, "systoll-test-c", extra)):
        if name in wanted:
            into = cargo("build", "--locked", "--profile", "dist", "-p", package, *(["--target", target] if target else []), extra=flags)
            keep(folder, name, read(into, target or "", "dist", name), 0o755)
    for what in ("man", "completions"):
        if what in wanted:
            cargo("run", "--quiet", "--locked", "--profile", "dist", "-p", "xtask", "--", what, os.path.join(folder, what))


def keep(folder, name, data, mode):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


def command(folder):
    """The static command's bytes. One that needs a loader and libraries is no package for every system."""
    data = read(folder, "systoll")
    word = lambda at, size: int.from_bytes(data[at : at + size], "little")
    headers, size, count = word(32, 8), word(54, 2), word(56, 2)
    if data[:4] != b"\x7fELF" or any(word(headers + n * size, 4) == PT_INTERP for n in range(count)):
        raise SystemExit(f"{folder}/systoll is not static: build it where the C library's archives are (glibc 2.34 or later, libc6-dev)")
    return data


def machine(folder):
    """The names of the machine that the command was built for: Linux's, Debian's."""
    return MACHINES[int.from_bytes(read(folder, "systoll")[18:20], "little")]


def needs_glibc(data):
    """The second number of the newest glibc whose symbols a library asks for: 17 for 2.17, Rust's own least."""
    return max([17, *(int(n) for n in re.findall(rb"GLIBC_2\.(\d+)", data))])


def licences():
    return [Entry(name, read(ROOT, name)) for name in ("LICENSE-APACHE", "LICENSE-MIT")]
