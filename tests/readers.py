#!/usr/bin/env python3
"""Judges of our formats: programs that open exports, schemas, and an agent's client. They come from PyPI, npm, crates.io and Go's proxy, pinned, and
promtool out of Debian's package.

  readers.py            puts them into target/readers (SYSTOLL_READERS: elsewhere), if they are not there
  readers.py --spark    and Spark, 450 MB; it needs Java
  readers.py --collector    and OpenTelemetry's collector, built from its modules by Go

The package of promtool is unpacked and not installed: it would start a server. Schemas are taken from packages that have a copy: JUnit's, as
Jenkins validates with it, from pytest's source, SARIF's from the crate serde-sarif.
"""
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = ("duckdb==1.4.2", "mcp==2.3.0")
SPARK = ("duckdb==1.4.2", "pyspark==4.0.1")
FORMATS = ("jsonschema==4.26.0", "opentelemetry-proto==1.45.2", "perfetto==0.59.1", "xmlschema==4.3.2")
JUNIT = ("pytest==8.4.2", "pytest-8.4.2/testing/example_scripts/junit-10.xsd")
SARIF = ("serde-sarif", "0.8.0", "src/schema.json")
COLLECTOR = ("go.opentelemetry.io/collector", "0.165.0", ("receiver/otlpreceiver", "exporter/debugexporter", "exporter/otlphttpexporter"))
NODE = ("speedscope@1.25.0", "@firefox-devtools/profiler-cli@0.10.0")


def place():
    return os.environ.get("SYSTOLL_READERS") or os.path.join(os.path.dirname(HERE), "target", "readers")


def python_with(name, packages):
    """Returns the Python in the folder of this name, if it has all of the packages."""
    found, installed = (os.path.join(place(), name, *path) for path in (("bin", "python3"), ("installed",)))
    if not os.path.exists(installed):
        return None
    with open(installed) as f:
        return found if f.read().split() == list(packages) else None


def python():
    """Returns a Python that has all of PYTHON, or nothing."""
    return python_with("python", PYTHON)


def formats():
    """Returns a Python that validates and has Perfetto's and OpenTelemetry's messages, or nothing."""
    return python_with("formats", FORMATS)


def schema(name):
    """Returns the path of a schema, junit.xsd or sarif.json, or nothing."""
    found = os.path.join(place(), "schemas", name)
    return found if os.path.exists(found) else None


def spark():
    """Returns a Python that has pyspark, or nothing."""
    return python_with("spark", SPARK)


def node(module):
    """Returns the folder of an npm package, or nothing."""
    found = os.path.join(place(), "node", "node_modules", module)
    return found if os.path.isdir(found) else None


def program(name):
    """Returns the path of a program that was put here, or of the distribution's; nothing if there is none."""
    found = os.path.join(place(), "bin", name)
    return found if os.path.exists(found) else shutil.which(name)


def unpack_promtool():
    folder = tempfile.mkdtemp()
    try:
        subprocess.run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", "prometheus"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        [package] = os.listdir(folder)
        subprocess.run(["dpkg-deb", "-x", package, "out"], cwd=folder, check=True)
        os.makedirs(os.path.join(place(), "bin"), exist_ok=True)
        shutil.copy(os.path.join(folder, "out", "usr", "bin", "promtool"), os.path.join(place(), "bin", "promtool"))
    finally:
        shutil.rmtree(folder)


def build_collector():
    module, version, parts = COLLECTOR
    kinds = {}
    for part in parts:
        kinds.setdefault(part.partition("/")[0] + "s", []).append({"gomod": f"{module}/{part} v{version}"})
    with tempfile.TemporaryDirectory() as folder:
        manifest = os.path.join(folder, "manifest.json")
        with open(manifest, "w") as f:
            # JSON is YAML.
            json.dump({"dist": {"name": "otelcol", "version": version, "output_path": folder}, **kinds}, f)
        subprocess.run(["go", "run", f"{module}/cmd/builder@v{version}", "--config", manifest], cwd=folder, check=True)
        os.makedirs(os.path.join(place(), "bin"), exist_ok=True)
        shutil.copy(os.path.join(folder, "otelcol"), os.path.join(place(), "bin", "otelcol"))


def take_junits_schema():
    package, member = JUNIT
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([formats(), "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, package], check=True)
        [source] = os.listdir(folder)
        with tarfile.open(os.path.join(folder, source)) as tar:
            keep_schema("junit.xsd", tar.extractfile(member).read())


def take_sarifs_schema():
    name, version, member = SARIF
    with tempfile.TemporaryDirectory() as folder:
        manifest = os.path.join(folder, "Cargo.toml")
        with open(manifest, "w") as f:
            f.write(f'[package]\nname = "x"\nedition = "2021"\n[lib]\npath = "x.rs"\n[workspace]\n[dependencies]\n{name} = "={version}"\n')
        open(os.path.join(folder, "x.rs"), "w").close()
        subprocess.run(["cargo", "vendor", "-q", "--versioned-dirs", "--manifest-path", manifest, os.path.join(folder, "all")], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "all", f"{name}-{version}", member), "rb") as f:
            keep_schema("sarif.json", f.read())


def keep_schema(name, content):
    os.makedirs(os.path.join(place(), "schemas"), exist_ok=True)
    with open(os.path.join(place(), "schemas", name), "wb") as f:
        f.write(content)


def make_python(name, packages):
    """Makes a Python with packages, in a folder of its own."""
    folder = os.path.join(place(), name)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    subprocess.run([os.path.join(folder, "bin", "python3"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages], check=True)
    with open(os.path.join(folder, "installed"), "w") as f:
        f.write("\n".join(packages))


def install(with_spark=False, with_collector=False):
    """Installs all of it. What can't be had is left out: the test that wants it says so."""
    failed = []
    for name, packages, found in (("python", PYTHON, python()), ("formats", FORMATS, formats()), ("spark", SPARK, spark() or not with_spark)):
        if not found:
            try:
                make_python(name, packages)
            except (OSError, subprocess.CalledProcessError) as e:
                failed.append(f"{', '.join(packages)} ({e})")
    wanted = [package for package in NODE if not node(package.rpartition("@")[0])]
    if wanted:
        folder = os.path.join(place(), "node")
        os.makedirs(folder, exist_ok=True)
        try:
            subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-save", "--prefix", folder, *NODE], check=True)
        except (OSError, subprocess.CalledProcessError) as e:
            failed.append(f"{', '.join(wanted)} ({e})")
    if not program("promtool"):
        try:
            unpack_promtool()
        except (OSError, ValueError, subprocess.CalledProcessError) as e:
            failed.append(f"promtool ({e})")
    if with_collector and not program("otelcol"):
        try:
            build_collector()
        except (OSError, subprocess.CalledProcessError) as e:
            failed.append(f"OpenTelemetry's collector ({e})")
    for name, take in (("junit.xsd", take_junits_schema), ("sarif.json", take_sarifs_schema)):
        if not schema(name):
            try:
                take()
            except (OSError, KeyError, TypeError, subprocess.CalledProcessError) as e:
                failed.append(f"the schema {name} ({e})")
    for what in failed:
        print(f"could not install {what}")


if __name__ == "__main__":
    if not set(sys.argv[1:]) <= {"--spark", "--collector"}:
        sys.exit(__doc__)
    install(with_spark="--spark" in sys.argv, with_collector="--collector" in sys.argv)
