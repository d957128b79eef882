"""Advice about real programs is in the program's language, names the object at hand, and addresses somebody who can follow it.

A line has a program, the words its report must show first, and the words it must not contain.
"""
import json
import os
import subprocess

from harness import Skip, test, text
from suites.one_liners import Place

# Language, code, cause, words that the first cure must contain, words that no cure may contain.
TOLD = [
    ("java", 'var o = new java.io.DataOutputStream(new java.io.FileOutputStream("r.bin"));\n'
             'for (int i = 0; i < 30000; i++) o.writeInt(i);\no.close();',
     "unbuffered-output", "new FileOutputStream(path)", "System.out"),
    ("rust", 'use std::io::Write;\nlet mut f = std::fs::File::create("r.log").unwrap();\nfor i in 0..30000 { writeln!(f, "{i}").unwrap(); }',
     "unbuffered-output", "BufWriter::new(file)", "stdout"),
    ("python", 'f = open("r.log", "wb", buffering=0)\nfor i in range(30000): f.write(b"line\\n")',
     "unbuffered-output", "f.write(line)", "PYTHONUNBUFFERED"),
    ("perl", "my $n = 0; for (1 .. 20000) { $n++ if -e '/etc/hostname' } print $n;", "stat-per-op", "ask the hash", "after one -e"),
    ("python", 'import os\nfor i in range(20000): os.path.exists("/etc/no-such-file")', None, "once", "O_CREAT"),
    ("bash", 'for i in {1..40}; do a=$(date +%s); b=$(echo a:$i | cut -d: -f2); c=$(expr $i + 1); done', "process-per-item", "",
     "//from/to"),
]


def told(box, number, language, code):
    try:
        return Place(box, str(number)).watch(language, code)[1]["findings"]
    except FileNotFoundError as e:
        raise Skip(f"{e.filename} is not installed") from None


@test()
def object_and_cure_agree(box):
    for number, (language, code, cause, says, other) in enumerate(TOLD):
        findings = [f for f in told(box, number, language, code) if cause in (None, f["cause"])]
        assert findings, (language, code)
        cures = [cure["how"] for cure in findings[0]["cures"]]
        assert says in cures[0], (language, code, cures)
        assert not [cure for cure in cures if other in cure], (language, code, cures)


@test()
def each_program_that_is_started_has_a_fix(box):
    """The screen shows one fix for each program that it lists, and none twice."""
    code = 'for i in {1..40}; do a=$(date +%s); b=$(echo a:$i | cut -d: -f2); c=$(expr $i + 1); d=$(basename /x/$i); done'
    r = box.run([box.systoll, "run", "--", "bash", "-c", code])
    lines = text(r.stderr)
    for part in ("instead of cut", "%(%s)T", "$((a + b))", "${p##*/}"):
        assert lines.count(part) == 1, (part, lines)


@test(users=("root",))
def a_zone_that_is_not_there_needs_a_variable(box):
    """In containers and changed roots /etc/localtime is often missing and will not come, so the advice must be a
    variable."""
    root = os.path.join(box.dir, "root")
    for folder in ("etc", "bin"):
        os.makedirs(os.path.join(root, folder))
    source = os.path.join(box.dir, "zone.c")
    with open(source, "w") as f:
        f.write('#include <time.h>\n#include <stdio.h>\nint main(void) { int n = 0; for (time_t t = 0; t < 5000; t++) '
                'n += localtime(&t)->tm_sec; printf("%d\\n", n); }\n')
    subprocess.run(["cc", "-g", "-static", "-o", os.path.join(root, "bin", "zone"), source], check=True)
    report = os.path.join(box.dir, "zone.json")
    env = {name: value for name, value in box.env.items() if name != "TZ"}
    r = box.run([box.systoll, "run", "-q", "--json", "-o", report, "--", "chroot", root, "/bin/zone"], env=env)
    assert r.returncode == 0, text(r.stderr)
    with open(report) as f:
        finding = json.load(f)["findings"][0]
    cures = [cure["how"] for cure in finding["cures"]]
    assert finding["cause"] == "tz-unset" and "TZ=UTC0" in cures[0], finding
    assert not [cure for cure in cures if "inotify" in cure], cures
