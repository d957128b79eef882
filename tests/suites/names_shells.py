"""Names in shells' scripts: the line that starts programs, reads and writes, compared with the truth in the script's
text.

Each case is a script in which one line, with the word HERE, is run some 60 times. Of the rows of the line's call, the
one with most calls has to name that line, its function and its file."""
import json
import os

from harness import BOTH, test, tool

CASES = []
TIMES = 60


def case(name, call, function, body, shell="bash", line=None, file=None, shown=None, run=None):
    """Adds a script; `call` identifies the line with HERE; `line` is given if the truth differs from the shell's own
    `$LINENO`."""
    file = file or f"{name}.sh"
    CASES.append((name, call, function, body, shell, line, file, shown or file, run))


case("starts_programs", "clone", "leaf", f"""
leaf() {{
  for i in {{1..{TIMES}}}; do
    /bin/true  # HERE
  done
}}
render() {{
  leaf
}}
render
""")
case("waits_for_programs", "wait4", "leaf", f"""
leaf() {{
  local i=0
  while [ $i -lt {TIMES} ]; do
    i=$((i + 1))
    if true; then
      /bin/true  # HERE
    fi
  done
}}
leaf
""")
case("waits_at_the_scripts_own_level", "wait4", "main", f"""
for i in {{1..{TIMES}}}; do
  if true
  then
    /bin/true  # HERE
  fi
done
""")
case("command_substitution", "clone", "now", f"""
now() {{
  x=$(echo now)  # HERE
}}
for i in {{1..{TIMES}}}; do now; done
""")
case("pipeline", "pipe2", "main", f"""
for i in {{1..{TIMES}}}; do
  :
  echo x | cat > /dev/null  # HERE
done
""")
case("sourced_file", "clone", "helper", f"""
cat > helper.inc <<'END'
# a library
helper() {{
  /bin/true  # HERE
}}
END
. ./helper.inc
for i in {{1..{TIMES}}}; do
  helper
done
""", line=3, shown="helper.inc")
case("library_in_a_substitution", "openat", "stamp", f"""
cat > stamp.inc <<'END'
stamp() {{
  :
  : > stamp.txt  # HERE
}}
END
. ./stamp.inc
for i in {{1..{10 * TIMES}}}; do x=$(stamp); done
""", line=3, shown="stamp.inc")
case("read_in_a_loop", "read", "each", f"""
each() {{
  while
    read -r line  # HERE
  do
    :
  done < <(seq 2000)
}}
each
""")
case("here_document", "pipe2", "feed", f"""
feed() {{
  local i
  for i in {{1..{TIMES}}}; do
    : <<END  # HERE
a
b
END
  done
}}
feed
""")
case("written_to_a_file", "write", "log", f"""
log() {{
  echo "$1" >> log.txt  # HERE
}}
for i in {{1..{TIMES}}}; do
  log $i
done
""")
case("redirection", "openat", "log", f"""
log() {{
  : > log.txt  # HERE
}}
for i in {{1..{10 * TIMES}}}; do
  log $i
done
""")
case("subshell", "clone", "main", f"""
for i in {{1..{TIMES}}}; do
  true
  (cd /)  # HERE
done
""")
case("in_the_background", "clone", "main", f"""
for i in {{1..{TIMES}}}; do
  true
  /bin/true &  # HERE
done
wait
""")
case("evaluated", "clone", "main", f"""
for i in {{1..{TIMES}}}; do
  eval "/bin/true"  # HERE
done
""")
case("debug_trap", "clone", "check", f"""
check() {{
  /bin/true  # HERE
}}
trap check DEBUG
i=0
while [ $i -lt {TIMES} ]; do
  i=$((i + 1))
done
""")
case("called_by_an_exit_trap", "clone", "cleanup", f"""
cleanup() {{
  for i in {{1..{TIMES}}}; do
    /bin/true  # HERE
  done
}}
trap cleanup EXIT
true
""")
case("deep", "clone", "down", f"""
down() {{
  if [ $1 -gt 0 ]; then
    down $(($1 - 1))
  else
    for i in {{1..{TIMES}}}; do
      /bin/true  # HERE
    done
  fi
}}
down 150
""")
case("command_line", "clone", "main", f"""true
for i in {{1..{TIMES}}}; do
  /bin/true  # HERE
done
""", shown="-c", run=lambda shell, path, body: ([shell, "-c", body], b""))
case("standard_input", "clone", "f", f"""f() {{
  /bin/true  # HERE
}}
for i in {{1..{TIMES}}}; do f; done
""", shown="<stdin>", run=lambda shell, path, body: ([shell], body.encode()))
case("letters", "clone", "main", f"""
for i in {{1..{TIMES}}}; do
  /bin/true  # HERE
done
""", file="größe-日本.sh")
# Lines of a trap's own text are not the script's.
case("text_of_a_trap", "clone", "trap EXIT", f"""
trap 'for i in {{1..{TIMES}}}; do /bin/true; done' EXIT
true
""", line=0)

case("starts_programs_in_zsh", "clone", "leaf", f"""
leaf() {{
  local i
  for i in {{1..{TIMES}}}; do
    :
    /bin/true  # HERE
  done
}}
render() {{
  leaf
}}
render
""", shell="zsh")
case("own_level_in_zsh", "clone", "main", f"""
for i in {{1..{TIMES}}}; do
  if true; then
    x=$(echo a)  # HERE
  fi
done
""", shell="zsh")
case("sourced_file_in_zsh", "clone", "helper", f"""
cat > helper.inc <<'END'
# a library
helper() {{
  /bin/true  # HERE
}}
END
. ./helper.inc
for i in {{1..{TIMES}}}; do
  helper
done
""", line=3, shown="helper.inc", shell="zsh")
case("redirection_in_zsh", "openat", "log", f"""
log() {{
  : > log.txt  # HERE
}}
for i in {{1..{10 * TIMES}}}; do
  log $i
done
""", shell="zsh")

LOOP = f"i=0; while [ $i -lt {TIMES} ]; do i=$((i + 1))"
case("starts_programs_in_dash", "vfork", "leaf", f"""
leaf() {{
  {LOOP}
    :
    /bin/true  # HERE
  done
}}
render() {{
  leaf
}}
render
""", shell="dash")
case("waits_in_dash", "wait4", "leaf", f"""
leaf() {{
  {LOOP}
    if true; then
      /bin/true a \\
        b  # the line above is HERE
    fi
  done
}}
leaf
""".replace("a \\\n", "a \\\n"), shell="dash", line=5)
case("own_level_in_dash", "clone", "main", f"""
{LOOP}
  if true
  then
    x=$(echo a)  # HERE
  fi
done
""", shell="dash")
case("pipeline_in_dash", "pipe2", "main", f"""
{LOOP}
  :
  echo x | cat > /dev/null  # HERE
done
""", shell="dash")
case("function_of_a_sourced_file_in_dash", "vfork", "helper", f"""
cat > helper.inc <<'END'
# a library
helper() {{
  /bin/true  # HERE
}}
END
. ./helper.inc
{LOOP}
  helper
done
""", line=3, shown="helper.inc", shell="dash")
case("sourced_file_in_dash", "vfork", "main", f"""
cat > helper.inc <<'END'
# a library
/bin/true  # HERE
END
{LOOP}
  . ./helper.inc
done
""", line=2, shown="helper.inc", shell="dash")
case("fork_in_a_sourced_file_in_dash", "clone", "main", f"""
cat > helper.inc <<'END'
# a library
x=$(:)  # HERE
END
{LOOP}
  . ./helper.inc
done
""", line=2, shown="helper.inc", shell="dash")
case("read_in_a_loop_in_dash", "read", "each", """
each() {
  seq 2000 | while
    read -r line  # HERE
  do
    :
  done
}
each
""", shell="dash")
case("here_document_in_dash", "pipe2", "feed", f"""
feed() {{
  {LOOP}
    : <<END  # HERE
a
b
END
  done
}}
feed
""", shell="dash")
case("redirection_in_dash", "openat", "log", f"""
log() {{
  : > log.txt  # HERE
}}
{LOOP.replace(str(TIMES), str(10 * TIMES))}
  log $i
done
""", shell="dash")
case("subshell_in_dash", "clone", "main", f"""
{LOOP}
  true
  (cd /)  # HERE
done
""", shell="dash")
case("in_the_background_in_dash", "clone", "main", f"""
{LOOP}
  true
  /bin/true &  # HERE
done
wait
""", shell="dash")
case("evaluated_in_dash", "vfork", "main", f"""
{LOOP}
  eval "true
/bin/true"  # HERE
done
""", shell="dash", line=3)
case("evaluated_function_in_dash", "vfork", "leaf", f"""
leaf() {{
  /bin/true  # HERE
}}
{LOOP}
  eval "
leaf"
done
""", shell="dash")
case("called_by_an_exit_trap_in_dash", "vfork", "cleanup", f"""
cleanup() {{
  {LOOP}
    /bin/true  # HERE
  done
}}
trap cleanup EXIT
true
""", shell="dash")
case("deep_in_dash", "vfork", "down", f"""
down() {{
  if [ $1 -gt 0 ]; then
    down $(($1 - 1))
  else
    {LOOP}
      /bin/true  # HERE
    done
  fi
}}
down 50
""", shell="dash")
case("command_line_in_dash", "vfork", "main", f"""true
{LOOP}
  /bin/true  # HERE
done
""", shown="-c", run=lambda shell, path, body: ([shell, "-c", body], b""), shell="dash")
case("function_of_a_command_line_in_dash", "vfork", "f", f"""f() {{
  /bin/true  # HERE
}}
{LOOP}; f; done
""", shown="-c", run=lambda shell, path, body: ([shell, "-c", body], b""), shell="dash")
case("standard_input_in_dash", "vfork", "main", f"""true
{LOOP}
  /bin/true  # HERE
done
""", shown="<stdin>", run=lambda shell, path, body: ([shell], body.encode()), shell="dash")
case("after_cd_in_dash", "clone", "leaf", f"""
leaf() {{
  x=$(:)  # HERE
}}
cd /
{LOOP}; leaf; done
""", shell="dash")
case("letters_in_dash", "vfork", "main", f"""
for x in $(seq {TIMES}); do
  /bin/true  # HERE
done
""", file="größe-日本-dash.sh", shell="dash")


def wrong(box, name, call, function, body, shell, line, file, shown, run):
    """Returns what a case's report says instead of the truth; None if it says the truth."""
    line = next(n for n, text in enumerate(body.split("\n"), 1) if "HERE" in text) if line is None else line or None
    path = os.path.join(box.dir, file)
    with open(path, "w", encoding="utf-8") as f:
        f.write(body)
    os.chmod(path, 0o644)
    argv, stdin = run(tool(shell), path, body) if run else ([tool(shell), path], b"")
    doc, r = box.report(argv, input=stdin)
    assert r.returncode == 0, f"{name}: {r.stderr[:300]} {r.stderr[-300:]}"
    # Before glibc 2.36 one is the other.
    rows = [r for r in doc["rows"] if r["syscall"] in (call, "pipe" if call == "pipe2" else call)]
    if not rows:
        return "no calls seen"
    row = max(rows, key=lambda r: r["calls"])
    user = row["user"] or {}
    told = (os.path.basename(user.get("file") or ""), user.get("line"), user.get("function"))
    truth = (shown, line, function)
    return None if told == truth else f"{told} and not {truth}; {row['calls']} calls, lines {row['lines'][:3]}; {doc['problems']}"


@test(users=("nobody",), backends=BOTH)
def lines_of_shells(box):
    failed = {}
    for name, *rest in CASES:
        why = wrong(box, name, *rest)
        if why:
            failed[name] = why
    print(f"      {len(CASES) - len(failed)} of {len(CASES)} scripts named by their line")
    assert not failed, failed


@test(users=("nobody",))
def commands_of_bash_are_named(box):
    """What the shell itself reads, opens and starts is named by the command of its script."""
    script = box.file("named.sh", f"""
for i in {{1..{2 * TIMES}}}; do
  x=$(echo a)
  echo b >> named.txt
  cd .
done
while read -r line; do :; done < named.txt
""")
    box.run(box.watch([tool("bash"), script], "-q", "--save", "named.rec"))
    for call, name, least in (("clone", "$(…)", 2 * TIMES), ("pipe2", "$(…)", 2 * TIMES), ("chdir", "cd", 2 * TIMES),
                              ("openat", "a redirection (>, < or <<)", 2 * TIMES), ("lseek", "read", TIMES)):
        doc = json.loads(box.run([box.systoll, "report", "--json", "--by", "api", "--all", "-e", call, "named.rec"]).stdout)
        told = {g["name"]: g["calls"] for g in doc["grouped"]["groups"]}
        assert told.get(name, 0) >= least, (call, told)


@test(users=("nobody",), backends=BOTH)
def lines_in_forked_children(box):
    """Most children that a shell forks are not sampled; their calls have the lines of those that are."""
    script = box.file("children.sh", f"""
check() {{
  ( [ -e "/nowhere/$1" ] )  # line 3
}}
for n in $(seq {2 * TIMES}); do
  check $n
  x=$([ -e "/nowhere/$n" ] || echo no)  # line 7
done
""")
    doc, r = box.report([tool("bash"), script])
    assert r.returncode == 0, r.stderr[-300:]
    rows = [r for r in doc["rows"] if r["syscall"] in ("stat", "newfstatat") and r["errors"].get("ENOENT") and r["stack"][0] != "dl_main"]
    told = {}
    for row in rows:
        told[(row["user"] or {}).get("line")] = told.get((row["user"] or {}).get("line"), 0) + row["calls"]
    named = sum(calls for line, calls in told.items() if line in (3, 7))
    assert named > 0.9 * 4 * TIMES, told
