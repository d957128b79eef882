"""Packages contain the right files, install and run, and have the same bytes each time."""
import fcntl
import filecmp
import json
import os
import shutil
import subprocess
import sys

from harness import HERE, Skip, test, text, tool

ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "dist"))
import built  # noqa: E402

VERSION = built.workspace("version")
PAGES = ("systoll.1", "systoll-run.1", "systoll-mcp.1", "systoll-prove.1")
# Settings of all packages, so that two made at different times can be compared.
SET = {"SOURCE_DATE_EPOCH": "1790000000", "SYSTOLL_PACKAGE_LEVEL": "1"}
NOT_PUBLISHED = ("xtask", "systoll-bench", "systoll-reports", "systoll-fuzz", "systoll-test-c")


def cargo(*words, limit=600):
    env = {**os.environ, "PATH": os.environ.get("PATH", "") + ":" + os.path.expanduser("~/.cargo/bin")}
    if not shutil.which("cargo", path=env["PATH"]):
        raise Skip("cargo is not installed")
    r = subprocess.run(["cargo", *words], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit)
    assert r.returncode == 0, f"cargo {words}: {text(r.stdout)[-1500:]}"
    return text(r.stdout)


def pieces(box):
    """Returns a folder with what packages contain, put together once: the systoll under test, not one built anew.
    SYSTOLL_PIECES has them already."""
    if os.environ.get("SYSTOLL_PIECES"):
        return os.environ["SYSTOLL_PIECES"]
    folder = os.path.join(box.shared.root, "pieces")
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "done")):
            os.makedirs(folder, exist_ok=True)
            shutil.copy(box.systoll, os.path.join(folder, "systoll"))
            try:
                built.command(folder)
            except SystemExit as e:
                raise Skip(str(e))
            target = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "tests")
            tested, beside = os.path.join(target, "systoll"), [os.path.join(target, name) for name in (built.LIBRARY, "xtask")]
            if not all(map(os.path.exists, (tested, *beside))) or not filecmp.cmp(tested, box.systoll, shallow=False):
                # Where ./test built all, it compiles for later parts meanwhile, and cargo would wait until that is done.
                cargo("build", "--quiet", "--workspace", "--profile", "tests", "--lib", "--bins", "--examples")
            shutil.copy(os.path.join(target, built.LIBRARY), folder)
            # The packages' profile strips these: information about lines is four fifths of the bytes to be packed.
            for name in ("systoll", built.LIBRARY):
                subprocess.run([tool("strip"), "--strip-debug", os.path.join(folder, name)], check=True)
            for what in ("man", "completions"):
                subprocess.run([os.path.join(target, "xtask"), what, os.path.join(folder, what)], check=True)
            box.file(os.path.join(folder, "done"))
    return folder


def package(box, what):
    """Returns the package's path; a second one made at another time has the same bytes."""
    made = []
    for out in ("out", "again"):
        command = [sys.executable, os.path.join(ROOT, "dist", "package.py"), what, "--from", pieces(box), "--out", os.path.join(box.dir, out)]
        r = box.run(command, env={**box.env, **SET, "TZ": "UTC" if out == "out" else "Asia/Tokyo"})
        assert r.returncode == 0, text(r.stderr)[-1500:]
        made.append((text(r.stdout), os.path.join(box.dir, out, text(r.stdout).split()[1])))
    assert made[0][0] == made[1][0], made
    return made[0][1]


def runs(box, systoll):
    """Asserts that the installed command watches a program."""
    r = box.run([systoll, "run", "--", "/bin/true"])
    assert r.returncode == 0 and b"system calls" in r.stderr, text(r.stderr)
    assert box.run([systoll, "--version"]).stdout == f"systoll {VERSION}\n".encode()


@test(users=("root",))
def the_debian_package(box):
    dpkg, dpkg_deb = tool("dpkg"), tool("dpkg-deb")
    deb = package(box, "deb")
    listed = text(box.run([dpkg_deb, "-c", deb]).stdout)
    for name in ("usr/bin/systoll", "bash-completion/completions/systoll", "vendor-completions/_systoll", "systoll.fish", "doc/systoll/copyright",
                 *(f"man1/{page}.gz" for page in PAGES)):  # fmt: skip
        assert name in listed, f"{name} is not in it: {listed}"
    assert all(line.split()[1] == "root/root" for line in listed.splitlines()), listed
    fields = text(box.run([dpkg_deb, "-f", deb]).stdout)
    assert f"Version: {VERSION}\n" in fields and "Depends" not in fields, fields
    root = os.path.join(box.dir, "root")
    for folder in ("var/lib/dpkg/updates", "var/lib/dpkg/info"):
        os.makedirs(os.path.join(root, folder))
    open(os.path.join(root, "var/lib/dpkg/status"), "w").close()
    r = box.run([dpkg, f"--root={root}", "--force-not-root", "--force-script-chrootless", "-i", deb])
    assert r.returncode == 0, text(r.stdout) + text(r.stderr)
    runs(box, os.path.join(root, "usr/bin/systoll"))
    assert "installed" in text(box.run([dpkg, f"--root={root}", "-s", "systoll"]).stdout)
    page = box.run(["gzip", "-dc", os.path.join(root, "usr/share/man/man1/systoll.1.gz")]).stdout
    assert b".TH SYSTOLL 1 " in page, page[:200]
    completed = box.run(["bash", "-c", f"source {root}/usr/share/bash-completion/completions/systoll && complete -p systoll"])
    assert completed.returncode == 0, text(completed.stderr)


@test(users=("root",))
def the_wheel(box):
    python = "/usr/bin/python3"
    wheel = package(box, "wheel")
    assert "musllinux" in wheel and "manylinux_2_" in wheel, wheel
    venv = os.path.join(box.dir, "venv")
    if box.run([python, "-m", "venv", venv]).returncode:
        raise Skip("python3-venv is not installed")
    # pip also makes it from a checkout, by the few lines that it asks for (PEP 517): the same bytes.
    env, out = {**box.env, **SET, "SYSTOLL_PIECES": pieces(box)}, os.path.join(box.dir, "by-pip")
    pip = [f"{venv}/bin/python", "-m", "pip", "--disable-pip-version-check"]
    r = box.run([*pip, "wheel", "-q", "--no-index", "--no-deps", "-w", out, os.path.join(ROOT, "plugins", "pytest")], env=env)
    assert r.returncode == 0, text(r.stderr)[-1500:]
    with open(os.path.join(out, os.path.basename(wheel)), "rb") as a, open(wheel, "rb") as b:
        assert a.read() == b.read()
    r = box.run([*pip, "install", "-q", "--no-index", "--no-deps", wheel])
    assert r.returncode == 0, text(r.stderr)
    runs(box, f"{venv}/bin/systoll")
    for name in ("man/man1/systoll.1.gz", "bash-completion/completions/systoll", "zsh/site-functions/_systoll", "fish/vendor_completions.d/systoll.fish"):
        assert os.path.exists(f"{venv}/share/{name}"), name
    counted = "import os, systoll\nwith systoll.calls() as c:\n    os.stat('/')\nprint(c.skipped or c['stat'])"
    r = box.run([f"{venv}/bin/python", "-c", counted])
    assert r.returncode == 0 and (r.stdout == b"1\n" or b"kernel" in r.stdout), text(r.stdout) + text(r.stderr)
    plugin = "from importlib.metadata import distribution as d; [e] = d('systoll').entry_points; print(e.group, e.value)"
    assert box.run([f"{venv}/bin/python", "-c", plugin]).stdout == b"pytest11 systoll.pytest_plugin\n"


@test(users=("root",))
def the_npm_package(box):
    npm, node = tool("npm"), tool("node")
    r = box.run([npm, "install", "--silent", "--offline", "--no-audit", "--no-fund", "--prefix", box.dir, package(box, "npm")])
    assert r.returncode == 0, text(r.stdout) + text(r.stderr)
    runs(box, os.path.join(box.dir, "node_modules", ".bin", "systoll"))
    with open(os.path.join(box.dir, "node_modules", "systoll", "package.json")) as f:
        pages = json.load(f)["man"]
    assert len(pages) >= len(PAGES) and all(os.path.exists(os.path.join(box.dir, "node_modules", "systoll", page)) for page in pages), pages
    script = "const c = require('systoll').calls(() => require('fs').statSync('/')); console.log(c.skipped ?? c.counts.total > 0)"
    r = box.run([node, "-e", script])
    assert r.returncode == 0 and r.stdout.strip(), text(r.stderr)


@test(users=("root",))
def the_tar(box):
    r = box.run(["tar", "xzf", package(box, "tar"), "-C", box.dir])
    assert r.returncode == 0, text(r.stderr)
    runs(box, os.path.join(box.dir, f"systoll-{VERSION}-x86_64-linux", "bin", "systoll"))


@test(users=("root",))
def every_crate_packs(box):
    left_out = [word for name in NOT_PUBLISHED for word in ("--exclude", name)]
    # The crates' dependencies have been fetched, because systoll has been built.
    said = cargo("package", "--workspace", *left_out, "--allow-dirty", "--no-verify", "--offline", "--target-dir", os.path.join(box.dir, "target"))
    crates = os.listdir(os.path.join(box.dir, "target", "package"))
    packed = [n for n in crates if n.endswith(f"-{VERSION}.crate")]
    folders = [n for n in os.listdir(os.path.join(ROOT, "crates")) if n != "test-c"]
    assert len(packed) == len(folders), (packed, folders)
    assert "warning" not in said, said
    for name in packed:
        listed = text(box.run(["tar", "tzf", os.path.join(box.dir, "target", "package", name)]).stdout)
        assert "/README.md\n" in listed and "/Cargo.lock\n" in listed, name


@test(users=("root",), long=True)
def packed_crates_build_by_themselves(box):
    """The crates build as by `cargo install systoll`, were they published: from the packed files, with the crates
    packed beside them."""
    left_out = [word for name in NOT_PUBLISHED for word in ("--exclude", name)]
    target = os.path.join(box.dir, "target")
    cargo("package", "--workspace", *left_out, "--allow-dirty", "--offline", "--target-dir", target, limit=3600)
    [systoll] = [path for path in (os.path.join(at, "systoll") for at, _, names in os.walk(target) if at.endswith("debug") and "systoll" in names)]
    runs(box, systoll)


@test(users=("root",), long=True)
def two_folders_make_the_same_bytes(box):
    """The builds are not optimised, which takes a fraction of the time: their folder would get into them all the
    same."""
    env = {**os.environ, **SET, "CARGO_PROFILE_DIST_OPT_LEVEL": "0", "CARGO_PROFILE_DIST_LTO": "off", "CARGO_NET_OFFLINE": "true"}
    env.pop("CARGO_TARGET_DIR", None)
    env["PATH"] += ":" + os.path.expanduser("~/.cargo/bin")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.split("\0")
    sums = []
    for folder in ("one", "another folder, with a longer name"):
        place = os.path.join(box.dir, folder)
        for name in filter(lambda name: os.path.isfile(os.path.join(ROOT, name)), files):
            os.makedirs(os.path.dirname(os.path.join(place, name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(place, name))
        r = subprocess.run([sys.executable, "dist/package.py", "all"], cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=3600)
        assert r.returncode == 0, text(r.stdout)[-1500:]
        with open(os.path.join(place, "target", "packages", "SHA256SUMS")) as f:
            sums.append(f.read())
        with open(os.path.join(place, "target", "dist-pieces", "systoll"), "rb") as f:
            assert box.dir.encode() not in f.read(), "the folder's name is in the command"
        shutil.rmtree(place)
    assert sums[0] == sums[1], sums
