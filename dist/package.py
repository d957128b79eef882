#!/usr/bin/env python3
"""Packages of systoll for Linux, each by one command, the same bytes from the same pieces.

  package.py build            the static command, the tests' library, man pages, completions
  package.py tar              systoll-VERSION-x86_64-linux.tar.gz: the command, its pages, the library for tests in C
  package.py deb              systoll_VERSION_amd64.deb: likewise
  package.py wheel            the command and the pytest plugin for pip
  package.py npm              the command and the plugin of Node's test runner for npm
  package.py all              all of them, with SHA256SUMS
  package.py home [URL]       where the project lives: says it, or sets it everywhere

Python's own library is all it needs. What is not in --from DIR yet is built there by cargo first.
Packages are for the machine that the command there was built for, x86-64 or aarch64; --target builds for another than this.
Packages for aarch64 have no libraries for tests, which are x86-64's, and so there is none for npm.
"""
import argparse
import hashlib
import json
import lzma
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import built  # noqa: E402
from archives import ROOT, Entry, ar, gz, level, tar, wheel  # noqa: E402

SUMMARY = "finds needless system calls: who makes them, what they cost, why, how to stop them"
ABOUT = """ systoll runs a program, counts every system call it makes by calling context, looks
 closely at a few of them, and says which were needless, what they cost on this
 machine, why, and how to stop them; and proves a change by running with and
 without it. No root, no kernel feature, no rebuild of the program.
"""
PLUGIN = os.path.join(ROOT, "plugins", "pytest")


def pages(folder):
    """Man pages and completions, by the names a system has for their places."""
    man = os.path.join(folder, "man")
    places = [(os.path.join(man, n), f"share/man/man1/{n}.gz", gz) for n in sorted(os.listdir(man))]
    completions = os.path.join(folder, "completions")
    for name, place in (("systoll.bash", "bash-completion/completions/systoll"), ("_systoll", "zsh/vendor-completions/_systoll"),
                        ("systoll.fish", "fish/vendor_completions.d/systoll.fish")):  # fmt: skip
        places.append((os.path.join(completions, name), f"share/{place}", bytes))
    return [Entry(place, made(built.read(source))) for source, place, made in places]


HEADER = os.path.join(ROOT, "crates", "test-c", "include", "systoll_block.h")


def for_c(folder, libraries):
    """What tests in C and C++ include and link."""
    if built.machine(folder)[0] != built.TESTED:
        return []
    return [Entry("include/systoll_block.h", built.read(HEADER)), Entry(f"{libraries}/{built.LIBRARY}", built.read(folder, built.LIBRARY), 0o755)]


def make_tar(folder):
    name = f"systoll-{built.workspace('version')}-{built.machine(folder)[0]}-linux"
    files = [Entry("bin/systoll", built.command(folder), 0o755), *pages(folder), *for_c(folder, "lib"), *built.licences()]
    files += [Entry(n, built.read(ROOT, n)) for n in ("README.md", "CHANGELOG.md")]
    return f"{name}.tar.gz", gz(tar([Entry(f"{name}/{e.name}", e.data, e.mode) for e in files]))


def make_deb(folder):
    version, (machine, debian) = built.workspace("version"), built.machine(folder)
    copyright = (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: systoll\n"
        f"Source: {built.workspace('repository')}\n\nFiles: *\nCopyright: the authors of systoll\nLicense: Expat or Apache-2.0\n"
        " Both are beside this file.\n"
    )
    doc = "usr/share/doc/systoll"
    files = [Entry("usr/bin/systoll", built.command(folder), 0o755), Entry(f"{doc}/copyright", copyright)]
    files += [Entry(f"usr/{e.name}", e.data, e.mode) for e in (*pages(folder), *for_c(folder, f"lib/{machine}-linux-gnu"))]
    files += [Entry(f"{doc}/{e.name}", e.data) for e in built.licences()]
    files += [Entry(f"{doc}/changelog.gz", gz(built.read(ROOT, "CHANGELOG.md"))), Entry(f"{doc}/SKILL.md", built.read(ROOT, "skills", "systoll", "SKILL.md"))]
    control = (
        f"Package: systoll\nVersion: {version}\nArchitecture: {debian}\nMaintainer: the authors of systoll <systoll@{home_host()}>\n"
        f"Installed-Size: {sum(len(e.data) for e in files) // 1024 + 1}\nSection: devel\nPriority: optional\n"
        f"Suggests: gcc, debuginfod\nHomepage: {built.workspace('repository')}\nDescription: {SUMMARY}\n{ABOUT}"
    )
    sums = "".join(f"{hashlib.md5(e.data).hexdigest()}  {e.name}\n" for e in sorted(files, key=lambda e: e.name))
    inside = lambda entries: lzma.compress(tar([Entry(f"./{e.name}", e.data, e.mode) for e in entries]), preset=level())
    parts = [("debian-binary", b"2.0\n"), ("control.tar.xz", inside([Entry("control", control), Entry("md5sums", sums)])), ("data.tar.xz", inside(files))]
    return f"systoll_{version}_{debian}.deb", ar(parts)


def metadata():
    description = built.read(PLUGIN, "README.md").decode()
    return (
        f"Metadata-Version: 2.1\nName: systoll\nVersion: {built.workspace('version')}\nSummary: {SUMMARY}; and a pytest plugin that limits tests' calls\n"
        f"Home-page: {built.workspace('repository')}\nLicense: {built.workspace('license')}\nRequires-Python: >=3.8\n"
        "Classifier: Framework :: Pytest\nClassifier: Operating System :: POSIX :: Linux\nClassifier: Programming Language :: Python :: 3\n"
        "Classifier: Topic :: Software Development :: Testing\nProvides-Extra: pytest\nRequires-Dist: pytest>=7; extra == 'pytest'\n"
        f"Description-Content-Type: text/markdown\n\n{description}"
    )


def make_wheel(folder):
    """The command as a script, the plugin as a package. It runs on musl too; there the plugin says that it can't count."""
    version, machine = built.workspace("version"), built.machine(folder)[0]
    library = built.read(folder, built.LIBRARY) if machine == built.TESTED else b""
    tag = f"py3-none-manylinux_2_{built.needs_glibc(library)}_{machine}.musllinux_1_1_{machine}"
    info = f"systoll-{version}.dist-info"
    source = os.path.join(PLUGIN, "src", "systoll")
    files = [Entry(f"systoll/{n}", built.read(source, n)) for n in sorted(os.listdir(source)) if n.endswith(".py")]
    if library:
        files.append(Entry(f"systoll/{built.LIBRARY}", library, 0o755))
    files.append(Entry(f"systoll-{version}.data/scripts/systoll", built.command(folder), 0o755))
    # Below the environment's own prefix, where man finds pages by the PATH; zsh's folder there has another name than Debian's.
    places = [(e.name.replace("zsh/vendor-completions", "zsh/site-functions"), e.data) for e in pages(folder)]
    files += [Entry(f"systoll-{version}.data/data/{name}", data) for name, data in places]
    files += [Entry(f"{info}/licenses/{e.name}", e.data) for e in built.licences()]
    platforms = tag.split("-")[2].split(".")
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    files.append(Entry(f"{info}/METADATA", metadata()))
    files.append(Entry(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: systoll dist/package.py\nRoot-Is-Purelib: false\n{tags}"))
    files.append(Entry(f"{info}/entry_points.txt", "[pytest11]\nsystoll = systoll.pytest_plugin\n"))
    return f"systoll-{version}-{tag}.whl", wheel(files, info)


def make_npm(folder):
    if built.machine(folder)[0] != built.TESTED:
        raise SystemExit("the npm package is for x86-64 only, as the library of its plugin is")
    source = os.path.join(ROOT, "plugins", "node")
    package = json.loads(built.read(source, "package.json"))
    package.pop("scripts")
    # npm links them where it installs for all (`-g`); for completions it has no place.
    man = [Entry(e.name.removeprefix("share/"), e.data) for e in pages(folder) if e.name.startswith("share/man/")]
    package["man"] = [f"./{e.name}" for e in man]
    package["files"].append("man")
    files = [Entry(n, built.read(source, n)) for n in ("index.js", "index.d.ts", "README.md")]
    files += [Entry("package.json", json.dumps(package, indent=2) + "\n"), *man, *built.licences()]
    files += [Entry("bin/systoll", built.command(folder), 0o755), Entry(built.LIBRARY, built.read(folder, built.LIBRARY), 0o755)]
    return f"systoll-{package['version']}.tgz", gz(tar([Entry(f"package/{e.name}", e.data, e.mode) for e in files]))


MAKES = {"tar": make_tar, "deb": make_deb, "wheel": make_wheel, "npm": make_npm}


def home_host():
    return re.match(r"https://([^/]+)", built.workspace("repository"))[1]


def home(url):
    """Cargo.toml is where it is said; two other files have to repeat it."""
    if not re.fullmatch(r"https://[\w.-]+(/[\w.-]+)+", url):
        raise SystemExit(f"{url} is no place of a project: https://HOST/OWNER/systoll")
    old = built.workspace("repository")
    module = lambda url: url.removeprefix("https://") + "/plugins/go"
    changed = []
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.split("\0")
    for name in filter(lambda n: n == "Cargo.toml" or n.startswith("plugins/"), tracked):
        with open(os.path.join(ROOT, name)) as f:
            text = f.read()
        new = text.replace(module(old), module(url)).replace(old, url)
        if new != text:
            changed.append(name)
            with open(os.path.join(ROOT, name), "w") as f:
                f.write(new)
    print("\n".join(changed))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["build", *MAKES, "all", "home"])
    p.add_argument("url", nargs="?")
    p.add_argument("--from", dest="folder", metavar="DIR", help="what has been built: target/dist-pieces, and a folder beside it for another machine")
    p.add_argument("--out", metavar="DIR", default=os.path.join(ROOT, "target", "packages"))
    p.add_argument("--target", metavar="TRIPLE", help="build for another machine: aarch64-unknown-linux-gnu, with its linker named to cargo")
    p.add_argument("--sysroot", metavar="DIR", help="link the library against this system's C library: Debian 11's, for wheels that old systems take")
    opts = p.parse_args()
    if opts.what == "home":
        return home(opts.url) if opts.url else print(built.workspace("repository"))
    opts.folder = opts.folder or os.path.join(ROOT, "target", "-".join(filter(None, ("dist-pieces", opts.target))))
    lacking = [n for n in built.pieces(opts.folder, opts.target) if opts.what == "build" or not os.path.exists(os.path.join(opts.folder, n))]
    built.build(opts.folder, lacking, opts.sysroot, opts.target)
    if opts.what == "build":
        return print(opts.folder)
    os.makedirs(opts.out, exist_ok=True)
    sums = []
    made = [m for m in MAKES if m != "npm" or built.machine(opts.folder)[0] == built.TESTED]
    for what in made if opts.what == "all" else [opts.what]:
        name, data = MAKES[what](opts.folder)
        built.keep(opts.out, name, data, 0o644)
        sums.append(f"{hashlib.sha256(data).hexdigest()}  {name}")
        print(f"{sums[-1]}  {len(data)}")
    if opts.what == "all":
        built.keep(opts.out, "SHA256SUMS", ("\n".join(sums) + "\n").encode(), 0o644)


if __name__ == "__main__":
    main()
