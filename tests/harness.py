"""Helpers of every suite: users to run as, places to run in, programs to run, results.

A suite is a module in suites/ with functions decorated by @test. A test fails by an
assertion, is skipped by Skip (which --strict turns into a failure), and passes otherwise;
it runs once as root and once as an ordinary user without capabilities, each time by every
backend it names.
"""
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
LIMIT = 120
# Version of the C library.
GLIBC = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2]))
# Script that runs a command with a /tmp of its own, in which one folder of the old /tmp stays where it was.
PRIVATE_TMP = """
set -e
mount -t tmpfs -o mode=1777 tmpfs "$2"
case $1 in /tmp/*) mkdir -p "$2/${1#/tmp/}"; mount --bind "$1" "$2/${1#/tmp/}" ;; esac
mount --rbind "$2" /tmp
shift 2
exec "$@"
"""
# A command that succeeds if a namespace can be made and something mounted in it.
MOUNTING = ("unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt")
# Go's library is compiled when it is first asked for, net/http in 37 s of processor time: the user's own cache keeps it.
GO_CACHE = os.environ.get("GOCACHE") or os.path.expanduser("~/.cache/go-build")
PATH = "/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Skip(Exception):
    """Raised if the test can't be run here; the text is the reason."""


TESTS = []


BOTH = ("ptrace", "inproc")
# The in-process backend of aarch64 is a preview: only tests that ask for it by this name run there with it.
PREVIEW = "inproc (preview)"
MACHINE_OF = {"inproc": "x86_64", PREVIEW: "aarch64"}


def test(name=None, users=("root", "nobody"), long=False, backends=(None,)):
    """Registers a test. It is called with a Box, whose `watch` asks for one of `backends` (None:
    systoll's own choice)."""

    def register(function):
        suite = function.__module__.rsplit(".", 1)[-1]
        for backend in (b for b in backends if MACHINE_OF.get(b, os.uname().machine) == os.uname().machine):
            TESTS.append((suite, name or function.__name__, function, users, long, backend))
        return function

    return register


def tool(name):
    """Returns the absolute path of a program that the test needs."""
    found = shutil.which(name, path=PATH)
    if not found:
        raise Skip(f"{name} is not installed")
    return found


class Shared:
    """Things that all tests of a run share: systoll, and the programs built for them. Another run may share them, in
    `root`."""

    def __init__(self, systoll, long, root=None):
        self.made = root is None
        self.root = root or tempfile.mkdtemp(prefix="systoll-test-")
        # The folder where it was built need not be readable for others.
        self.systoll = os.path.join(self.root, "systoll")
        if self.made:
            os.chmod(self.root, 0o755)
            shutil.copy(systoll, self.systoll)
            os.chmod(self.systoll, 0o755)
        self.long = long
        self.refusals = {}

    def build(self, source, *flags, compiler="gcc", name=None):
        """Builds programs/SOURCE once and returns the path of the program."""
        what = hashlib.sha256(repr((source, flags, compiler)).encode()).hexdigest()[:8]
        path = os.path.join(PROGRAMS, source)

        def command(out):
            if source.endswith(".go"):
                return [tool("go"), "build", "-o", out, path]
            return [tool(compiler), "-O2", "-g", "-w", "-pthread", "-o", out, path, *flags]

        go = {"GOCACHE": GO_CACHE, "GOFLAGS": "-mod=mod"}
        return self.built(name or f"{source.split('.')[0]}-{what}", command, {"PATH": PATH, "HOME": self.root, **go})

    def built(self, name, command, env):
        """Builds what `command(path)` builds once, however many want it at the same time. Returns its path."""
        out = os.path.join(self.root, name)
        with open(f"{out}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(out):
                # The file gets this name only when it is complete.
                r = subprocess.run(command(f"{out}.new"), env=env, cwd=self.root, capture_output=True, text=True, timeout=300)
                assert r.returncode == 0, f"{name} does not build: {r.stderr[-400:]}"
                os.chmod(f"{out}.new", 0o755)
                os.rename(f"{out}.new", out)
        return out

    def cache(self, user):
        """Returns the folder where systoll keeps what it learnt of files, one for each user."""
        cache = os.path.join(self.root, f"cache-{user}")
        if not os.path.exists(cache):
            os.mkdir(cache)
            if user == "nobody" and os.getuid() == 0:
                os.chown(cache, NOBODY, NOBODY)
        return cache

    def why_not(self, argv):
        """Returns why a command fails that only asks whether something may be done here; nothing if it succeeds."""
        if argv not in self.refusals:
            r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
            self.refusals[argv] = r.returncode and (text(r.stdout).strip()[-200:] or f"status {r.returncode}")
        return self.refusals[argv]

    def close(self):
        if self.made:
            shutil.rmtree(self.root, ignore_errors=True)


class Box:
    """A test's surroundings: a user, a private folder, an environment."""

    def __init__(self, shared, user, backend=None):
        self.shared, self.user, self.backend = shared, user, backend
        self.systoll = shared.systoll
        self.dir = tempfile.mkdtemp(prefix="box-", dir=shared.root)
        self.mark = os.path.basename(self.dir)
        self.tmp = os.path.join(self.dir, "tmp")
        os.mkdir(self.tmp)
        if user == "nobody":
            for d in (self.dir, self.tmp):
                os.chown(d, NOBODY, NOBODY)
        cache = shared.cache(user)
        self.env = {"PATH": PATH, "HOME": self.dir, "XDG_CACHE_HOME": cache, "LANG": "C.UTF-8", "TMPDIR": self.tmp, "SYSTOLL_TEST_BOX": self.mark}

    def build(self, *args, **kwargs):
        return self.shared.build(*args, **kwargs)

    def file(self, name, content="", mode=0o644):
        """Makes a file in the box, owned by its user. Returns its path."""
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)
        if self.user == "nobody":
            os.chown(path, NOBODY, NOBODY)
        return path

    def may(self, what, *argv):
        """Skips the test if a command fails that only asks whether the machine allows `what`."""
        why = self.shared.why_not(tuple(self.command([tool(argv[0]), *argv[1:]])))
        if why:
            raise Skip(f"{what} not possible here: {why}")

    @contextlib.contextmanager
    def only_kernel_tracer(self):
        """Keeps other tests from tracing the kernel's system calls meanwhile. A tracepoint makes each call on the
        machine dearer, some cheap ones ten times: prices measured beside it are not the machine's."""
        with open(os.path.join(self.shared.root, "kernel-tracer.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def watch(self, argv, *flags):
        """Returns the command that watches argv by the test's backend."""
        chosen = ["--backend", self.backend.split()[0]] if self.backend else []
        return [self.systoll, "run", *chosen, *flags, "--", *argv]

    def command(self, argv):
        """Returns argv as the box's user would run it."""
        return AS_NOBODY + argv if self.user == "nobody" and os.getuid() == 0 else list(argv)

    def run(self, argv, input=b"", env=None, limit=LIMIT, private_tmp=False, **kwargs):
        """Runs argv as the box's user, in its folder. With `private_tmp`, it has an empty /tmp of its own if the tests
        may mount one."""
        if "stdin" not in kwargs:
            kwargs["input"] = input
        for stream in ("stdout", "stderr"):
            kwargs.setdefault(stream, subprocess.PIPE)
        command = self.command(argv)
        if private_tmp and os.getuid() == 0 and not self.shared.why_not(MOUNTING):
            place = os.path.join(self.dir, "private-tmp")
            os.makedirs(place, exist_ok=True)
            command = ["unshare", "--mount", "sh", "-c", PRIVATE_TMP, "sh", self.shared.root, place, *command]
        return subprocess.run(command, cwd=self.dir, env=env or self.env, timeout=limit, **kwargs)

    def start(self, argv, env=None, **kwargs):
        """Starts argv as the box's user, in its folder. Returns its Popen, whose pid is argv's own because setpriv
        execs."""
        return subprocess.Popen(self.command(argv), cwd=self.dir, env=env or self.env, **kwargs)

    def report(self, argv, flags=(), **kwargs):
        """Runs argv under systoll. Returns the JSON report and the finished process."""
        out = os.path.join(self.dir, "report.json")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(out)
        r = self.run(self.watch(argv, "-q", *flags, "--json", "-o", out), **kwargs)
        assert os.path.exists(out), f"no report (exit {r.returncode}): {text(r.stderr)[-400:]}"
        with open(out) as f:
            return json.load(f), r

    def leftovers(self):
        """Returns the processes of this box that still run, as 'pid command'."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if f"SYSTOLL_TEST_BOX={self.mark}".encode() in f.read().split(b"\0"):
                        with open(f"/proc/{pid}/cmdline", "rb") as c:
                            found.append(pid + " " + c.read().replace(b"\0", b" ").decode(errors="replace"))
        return found

    def no_leftovers(self, within=1.0):
        """Asserts that soon no process of the box runs and its TMPDIR is empty."""
        end = time.monotonic() + within
        while self.leftovers() and time.monotonic() < end:
            time.sleep(0.02)
        assert not self.leftovers(), f"still running: {self.leftovers()}"
        assert not os.listdir(self.tmp), f"left in TMPDIR: {os.listdir(self.tmp)}"

    def close(self):
        for line in self.leftovers():
            with contextlib.suppress(OSError):
                os.kill(int(line.split()[0]), 9)
        shutil.rmtree(self.dir, ignore_errors=True)


def wait_for(condition, failure="an event", limit=60):
    """Returns once `condition` holds; fails with `failure` after `limit` seconds."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"{failure}: waited {limit} s in vain"
        time.sleep(0.01)


def text(data):
    return data.decode(errors="replace") if isinstance(data, bytes) else data or ""


def flat(data):
    """Returns a report's words on one line: where a line ends depends on the figures in it."""
    return b" ".join(data.split())


def attempt(shared, user, backend, function, strict):
    """Runs one test once. Returns the verdict and the reason."""
    box = Box(shared, user, backend)
    try:
        if user == "nobody" and os.getuid() != 0:
            raise Skip("needs root to become somebody else")
        function(box)
        return "ok", ""
    except Skip as e:
        return ("FAILED" if strict else "skipped"), f"skipped: {e}"
    except subprocess.TimeoutExpired as e:
        return "FAILED", f"no end in {e.timeout:.0f} s: {e.cmd}"
    except AssertionError as e:
        where = traceback.extract_tb(e.__traceback__)[-1]
        return "FAILED", f"{e or where.line} ({os.path.basename(where.filename)}:{where.lineno})"
    except Exception:
        return "FAILED", traceback.format_exc(limit=-3)
    finally:
        box.close()


# Number of attempts after the second of a test that failed at the first only.
FURTHER = 4


# Suites whose tests all run as root each time, because they are about what root may do.
OF_RIGHTS = ("attach", "attach_faults", "attach_pitfalls", "backends_agree", "box_agent", "box_push", "bpf", "counts", "fidelity", "hostile", "identity", "kernel_counts", "namespaces_and_tracers", "requests", "rights", "systoll_killed", "systoll_terminated", "untraced")
# Of these suites an ordinary user runs one of so many tests that root runs too, another one at the next commit. Each test
# of the other suites runs as one of both users, as the other one at the next commit.
TURNS = 3
# How long tests took, seconds, in the repository. A test that is not there is a short one.
SECONDS = os.path.join(HERE, "seconds.json")
# Shorter tests don't stand there.
SHORTEST = 4


def label(test, user):
    suite, name, _, _, _, backend = test
    return f"{suite}.{name} [{user}{', ' + backend if backend else ''}]"


def commits():
    """Returns the number of commits so far, which is the same whenever a commit is tested; without git the number of the day."""
    r = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=HERE, capture_output=True, text=True) if shutil.which("git") else None
    return int(r.stdout) if r and r.returncode == 0 else int(time.time() // 86400)


# A test that takes this long, s, runs at every second turn: 118 of 950 tests took two fifths of the time of all.
LONG_S = 5


def known_seconds():
    """Returns how long tests took when they were last measured, by label."""
    with contextlib.suppress(OSError), open(SECONDS) as f:
        return json.load(f)
    return {}


def is_due(user, test, turn, seconds):
    """Returns True if a test that takes so many seconds runs as `user` at a turn. A test of two users and two backends runs as
    both, each by one of the backends; a test of one user and two backends by one of them."""
    suite, name, function, users, _, backend = test
    # Two turns with it, one for each user, then two without.
    if seconds >= LONG_S and (turn // 2 + zlib.crc32(f"{name}.{suite}".encode())) % 2:
        return False
    turn += zlib.crc32(f"{suite}.{name}".encode()) + (backend == "inproc")
    if len(users) == 1:
        has_two = sum(other[2] is function and other[1] == name for other in TESTS) > 1
        return turn % 2 == 0 or not has_two
    if suite in OF_RIGHTS:
        return user == "root" or turn % TURNS == 0
    return turn % 2 == (user == "root")


def chosen(users, words, long, turn):
    """Returns the tests to run and those whose turn it is not: [(label, user, test)] each."""
    all = [(label(test, user), user, test) for test in TESTS for user in test[3] if user in users]
    all = [one for one in all if long or not one[2][4]]
    if words:
        return [one for one in all if any(w in one[0] for w in words)], []
    known = known_seconds()
    due = [one for one in all if long or len(users) == 1 or is_due(*one[1:], turn, known.get(one[0], 0))]
    return due, [one for one in all if one not in due]


def by_length(tests):
    """Returns the tests, those that take longest first: whoever takes a long one last would keep all others waiting."""
    known = known_seconds()
    return sorted(tests, key=lambda one: -known.get(one[0], 0))


# Time for which the processors are observed before one more test begins, s, and the part of it for which they have to be idle.
OBSERVED, IDLE = 0.4, 0.3


def idle_share():
    """Returns the share of the processors' time, 0 to 1, that nobody used for a while. What runs with a lower priority, such
    as a compiler in the background, gives way."""

    def times():
        with open("/proc/stat") as f:
            _, user, nice, system, idle, wait, *rest = f.readline().split()
        unused = int(nice) + int(idle) + int(wait)
        return unused, unused + int(user) + int(system) + sum(map(int, rest[:3]))

    unused, all = times()
    time.sleep(OBSERVED)
    unused, all = (now - then for now, then in zip(times(), (unused, all)))
    return unused / max(1, all)


def wait_for_idle_processors(shared, is_over):
    """Returns once there is room for another test, or `is_over`. Only one of all workers is let go at a time: a test that begins
    is busy."""
    with open(os.path.join(shared.root, "idle.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        while not is_over() and idle_share() < IDLE:
            pass


def is_first_to_take(shared, name):
    """Returns True to the first of all workers that asks for a test."""
    place = token(shared, name)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    try:
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        return True
    except FileExistsError:
        return False


def token(shared, name):
    """Returns the path of the file that a worker makes when it takes a test."""
    return os.path.join(shared.root, "taken", hashlib.sha256(name.encode()).hexdigest())


def took(root, shortest):
    """Returns how long the tests of a run took that took `shortest` or longer, seconds."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(root, "seconds")) as f:
        lines = (line.rsplit(maxsplit=1) for line in f)
        return {name: round(float(seconds)) for name, seconds in lines if float(seconds) >= shortest}
    return {}


# Tests that fail now and then, with the cause, as far as it is known: {"suite.name": "why"}. Their failures are listed
# and fail nothing. It is empty unless somebody is at work on one.
QUARANTINE = {}


def is_taken(shared, name):
    """Returns True if a worker has taken a test."""
    return os.path.exists(token(shared, name))


def run_tests(shared, tests, strict, is_extra=False):
    """Runs tests, those that no other worker has taken. Returns (passed, failed, skipped). An extra worker takes tests only while
    processors are idle.

    A test that fails is tried once more a moment later, to tell what always fails (FAILED) from what fails now and then
    (FLAKY). The last lines name either with the reason. With `strict`, one that passes then is tried FURTHER times more:
    if one of those fails too, it is a failure, as a test that needs luck tests nothing. A failure that does not come back
    is named, for somebody to find its cause, but does not fail the run: machines have accidents of their own."""
    passed = failed = skipped = 0
    remarks = []
    for name, user, (suite, test_name, function, _, _, backend) in tests:
        if is_extra and not is_taken(shared, name):
            wait_for_idle_processors(shared, lambda: is_taken(shared, tests[-1][0]))
        if not shared.made and not is_first_to_take(shared, name):
            continue
        start = time.monotonic()
        verdict, why = attempt(shared, user, backend, function, strict)
        if verdict == "FAILED" and not why.startswith("skipped"):
            first = why
            time.sleep(1)
            verdict, why = attempt(shared, user, backend, function, strict)
            if verdict == "ok":
                verdict, why = "FLAKY", f"not at the first attempt: {first}"
                further = (attempt(shared, user, backend, function, strict) for _ in range(FURTHER if strict else 0))
                again = next((reason for result, reason in further if result == "FAILED"), None)
                if again is not None:
                    verdict, why = "FAILED", f"{again}\nat the first attempt: {first}\nat the second: passed"
            elif why != first:
                why += f"\nat the first attempt: {first}"
        cause = QUARANTINE.get(f"{suite}.{test_name}")
        if verdict == "FAILED" and cause:
            verdict, why = "FLAKY", f"in quarantine ({cause}): {why}"
        bad = verdict == "FAILED"
        passed, failed, skipped = passed + (verdict != "skipped" and not bad), failed + bad, skipped + (verdict == "skipped")
        seconds = time.monotonic() - start
        print(f"{name:64} {verdict:8} {seconds:6.2f} s", flush=True)
        with open(os.path.join(shared.root, "seconds"), "a") as f:
            f.write(f"{name} {seconds:.2f}\n")
        for line in why.splitlines():
            print(f"      {line[:1000]}", flush=True)
        if verdict in ("FAILED", "FLAKY"):
            remarks.append(f"{verdict} {name}: {' | '.join(why.splitlines())[:600]}")
    for remark in remarks:
        print(remark)
    sys.stdout.flush()
    return passed, failed, skipped
