"""Each sick one-liner gets its finding, and each printed cure is for its language and does what it says. The one-liners,
and their cured forms, are data: one_liners.toml.

Without --long only the first of each language run.
"""
import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from harness import HERE, Skip, test, text
from suites.examples import LANGUAGES, PLACES

# Number of each language's one-liners that a short run tries.
FIRST = 2
# Number of cures that the screen shows.
PRINTED = 2
# One-liners of these are typed into the interpreter, not kept in a file.
TYPED = {
    "python": ("/usr/bin/python3", "-c"),
    "perl": ("perl", "-e"),
    "ruby": ("ruby", "-e"),
    "javascript": ("node", "-e"),
    "php": ("php", "-r"),
    "lua": ("lua", "-e"),
    "awk": ("mawk",),
    "gawk": ("gawk",),
    "sh": ("sh", "-c"),
    "bash": ("bash", "-c"),
    "zsh": ("zsh", "-c"),
    "ksh": ("ksh", "-c"),
}
JAVA = ("X.java", lambda c: "class X { public static void main(String[] a) throws Exception {\n" + c + "\n} }\n",
        ["javac", "X.java"], ["java", "-cp", ".", "X"])
BUILT = {**{name: LANGUAGES[name] for name in ("c", "go", "rust", "tcl")}, "java": JAVA}
# systoll's name of a language, if it is another one.
CALLED = {"gawk": "awk", "sh": "shell", "zsh": "shell", "ksh": "shell"}


def data():
    try:
        from tomllib import load
    except ImportError:
        raise Skip("reading the one-liners takes Python 3.11") from None
    with open(os.path.join(HERE, "one_liners.toml"), "rb") as f:
        return load(f)


class Place:
    """A folder of its own for one run."""

    def __init__(self, box, name):
        self.box, self.dir = box, os.path.join(box.dir, name)
        os.makedirs(self.dir)
        os.chmod(self.dir, 0o777)

    def command(self, language, code):
        if language in TYPED:
            return [*TYPED[language], code]
        file, around, build, run = BUILT[language]
        with open(os.path.join(self.dir, file), "w") as f:
            f.write(around(code.rstrip("\n")))
        if build:
            made = subprocess.run(build, cwd=self.dir, env=dict(os.environ, PATH=PLACES, GO111MODULE="off"), capture_output=True)
            assert made.returncode == 0, f"{code}: {text(made.stderr)[-600:]}"
            for left in os.listdir(self.dir):
                os.chmod(os.path.join(self.dir, left), 0o755)
        return run

    def watch(self, language, code, env=None, through=()):
        """Returns what the code prints, and systoll's report. `through` stands before the command."""
        command = self.command(language, code)
        report = os.path.join(self.dir, "report.json")
        env = dict({name: value for name, value in self.box.env.items() if name != "TZ"}, **(env or {}))
        there = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", self.dir]
        r = self.box.run([*there, self.box.systoll, "run", "-q", "--json", "-o", report, "--", *through, *command], env=env)
        assert r.returncode == 0, f"{code}: ends with {r.returncode}: {text(r.stderr)[-600:]}"
        with open(report) as f:
            return text(r.stdout), json.load(f)


def calls_of(report, syscalls):
    return sum(row["calls"] for row in report["by_syscall"] if row["syscall"] in syscalls)


def starts(report):
    return sum(process["instances"] for process in report["processes"])


def cured_as(entry, how):
    """Returns the one-liner in the form that it has when `how` is done."""
    for begins, code in entry.get("cured", {}).items():
        if how.startswith(begins):
            return code
    return None


def wrong_with(box, language, number, entry):
    """Returns what is wrong with the report on one one-liner."""
    said, report = Place(box, f"{number}-sick").watch(language, entry["sick"])
    findings = [f for f in report["findings"] if f["cause"] == entry["finds"]]
    if not findings:
        return [("found", [f["cause"] for f in report["findings"]], report["problems"])]
    finding, wrong = findings[0], []
    if finding["language"] != CALLED.get(language, language):
        wrong.append(("language", finding["language"]))
    if "api" in entry and finding["language_api"] != entry["api"]:
        wrong.append(("api", finding["language_api"]))
    of_starts = entry["finds"] == "process-per-item"
    sick = starts(report) if of_starts else calls_of(report, finding["syscalls"])
    # The calls that stay are the interpreter's own.
    gone = finding["needless_calls"]["estimate"] * entry.get("gone", 0.8)
    for at, cure in enumerate(finding["cures"][:PRINTED]):
        how = cure["how"]
        if "(where " in how or any(how.startswith(begins) for begins in entry.get("elsewhere", [])):
            continue
        code, env, through = cured_as(entry, how), {}, ()
        if code is None and cure["applied"]:
            words = finding["prove"]
            named = words[words.index("--cure") + 1] if "--cure" in words else entry["finds"]
            code, through = entry["sick"], (box.systoll, "cure", named, "--")
        if code is None:
            wrong.append(("a cure that nobody tried", how, cure["kind"]))
            continue
        says, cured = Place(box, f"{number}-cured-{at}").watch(language, code, env, through)
        left = starts(cured) if of_starts else calls_of(cured, finding["syscalls"])
        if says != said or not said:
            wrong.append(("prints something else", how, said[-200:], says[-200:]))
        if sick - left < gone:
            wrong.append(("calls not gone", how, sick, left))
    return wrong


def hold(box, language):
    program = TYPED[language][0] if language in TYPED else (BUILT[language][2] or BUILT[language][3])[0]
    if not shutil.which(program, path=PLACES):
        raise Skip(f"{program} is not installed")
    entries = data()[language]
    entries = entries if box.shared.long else entries[:FIRST]
    with ThreadPoolExecutor(2) as both:
        results = list(both.map(lambda item: wrong_with(box, language, *item), enumerate(entries)))
    wrong = [(entry["sick"], *found) for entry, found in zip(entries, results) if found]
    assert not wrong, "\n".join(map(repr, wrong))


def register(language):
    def of_language(box):
        hold(box, language)

    of_language.__name__ = f"in_{language}"
    of_language.__doc__ = f"One-liners in {language}: found, and every cure printed does what it says."
    test(users=("nobody",))(of_language)


for language in [*TYPED, *BUILT]:
    register(language)


@test(users=("nobody",))
def there_are_sixty_in_twelve_languages(box):
    one_liners = data()
    assert set(one_liners) == {*TYPED, *BUILT}, set(one_liners) ^ {*TYPED, *BUILT}
    assert len(one_liners) >= 12 and sum(map(len, one_liners.values())) >= 60, {name: len(of) for name, of in one_liners.items()}
