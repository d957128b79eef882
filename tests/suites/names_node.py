"""Names in JavaScript that Node runs without any flag, tested like Python and Ruby in names_scripts.

SYSTOLL_TEST_NODES may hold other Nodes' paths, with colons between them: 18, 22, 24, 25 and 26 have been run so, beside
the 20 that is installed."""
import base64
import json
import os
import subprocess

from harness import BOTH, Skip, test, text, tool
from suites.names_scripts import CALLS, to_run, wrong

CASES = []


def case(name, function, body, file=None, flags=(), run=None, shown=None):
    file = file or f"{name}.js"
    by = run or (lambda program, path, body: ([program, *flags, path], b""))
    CASES.append((name, function, body, file, by, shown or file))


case("three_deep", "leaf", f"""
function leaf() {{
  for (let i = 0; i < {CALLS}; i++)
    process.ppid; // HERE
}}
function render() {{ leaf(); }}
function main() {{ render(); }}
main();
""")
case("scripts_own_level", "(script)", f"""
for (let i = 0; i < {CALLS}; i++) {{
  process.ppid; // HERE
}}
""")
case("called_back_by_the_language", "each", f"""
function each(x) {{
  return process.ppid + x; // HERE
}}
function main() {{
  Array.from({{length: {CALLS}}}, (_, i) => i).map(each);
}}
setImmediate(main);
""")
case("arrow_without_a_name", "(anonymous)", f"""
function times(n, f) {{ for (let i = 0; i < n; i++) f(i); }}
times({CALLS}, (i) => {{
  let a = i;
  return [a,
    process.ppid]; // HERE
}});
""")
case("method", "total", f"""
class Cart {{
  constructor() {{ this.n = 0; }}
  total() {{
    this.n += 1;
    return process.ppid; // HERE
  }}
}}
const cart = new Cart();
for (let i = 0; i < {CALLS}; i++) cart.total();
""")
case("constructor", "Cart", f"""
class Cart {{
  constructor() {{
    this.n = process.ppid; // HERE
  }}
}}
for (let i = 0; i < {CALLS}; i++) new Cart();
""")
case("getter", "get price", f"""
const item = {{
  get price() {{
    return process.ppid; // HERE
  }}
}};
let sum = 0;
for (let i = 0; i < {CALLS}; i++) sum += item.price;
""")
case("generator", "numbers", f"""
function* numbers() {{
  for (let i = 0; i < {CALLS}; i++) {{
    yield process.ppid; // HERE
  }}
}}
for (const n of numbers());
""")
case("awaited", "work", f"""
async function work() {{
  await null;
  return process.ppid; // HERE
}}
(async () => {{ for (let i = 0; i < {CALLS}; i++) await work(); }})();
""")
case("promise", "(anonymous)", f"""
let chain = Promise.resolve();
for (let i = 0; i < {CALLS}; i++)
  chain = chain.then(() => {{
    process.ppid; // HERE
  }});
""")
case("exception", "careful", f"""
function careful() {{
  try {{
    throw new Error('x');
  }} catch (e) {{
    process.ppid; // HERE
  }}
}}
for (let i = 0; i < {CALLS}; i++) careful();
""")
case("sort", "compare", f"""
function compare(a, b) {{
  process.ppid; // HERE
  return a - b;
}}
Array.from({{length: 80}}, (_, i) => (i * 7919) % 80).sort(compare);
""")
case("through_the_library", "replacer", f"""
function replacer(m) {{
  return String(process.ppid); // HERE
}}
'x'.repeat({CALLS}).replace(/x/g, replacer);
""")
case("deep", "down", f"""
function down(n) {{
  if (n) return down(n - 1);
  for (let i = 0; i < {CALLS}; i++)
    process.ppid; // HERE
}}
down(60);
""")
case("evaluated", "made", f"""eval(`function made() {{
  for (let i = 0; i < {CALLS}; i++)
    process.ppid; // HERE
}}`); made();
""".lstrip(), shown="<eval>")
case("many_locals", "many", "function many() {\n" + "".join(f"  let v{n} = {n}; const f{n} = () => v{n};\n" for n in range(90)) + f"""
  for (let i = 0; i < {CALLS}; i++)
    process.ppid; // HERE
}}
many();
""")
case("module", "render", f"""
import process from 'node:process';
export function render() {{
  for (let i = 0; i < {CALLS}; i++)
    process.ppid; // HERE
}}
render();
""", file="größe 日本.mjs")
case("letters", "mäßig", f"""
function mäßig() {{
  const s = '日本';
  for (let i = 0; i < {CALLS}; i++)
    process.ppid; // HERE
}}
mäßig();
""", file="größe.js")
case("windows_lines", "f", f"""
function f() {{
  for (let i = 0; i < {CALLS}; i++)
    process.ppid; // HERE
}}
f();
""".replace("\n", "\r\n"))
case("worker", "work", f"""
const {{ Worker, isMainThread }} = require('worker_threads');
function work() {{
  for (let i = 0; i < {CALLS}; i++)
    process.ppid; // HERE
}}
if (isMainThread) new Worker(__filename); else work();
""")
case("command_line", "f", f"""
function f() {{
  for (let i = 0; i < {CALLS}; i++)
    process.ppid; // HERE
}}
f();
""", run=lambda program, path, body: ([program, "-e", body], b""), shown="[eval]")


def digits(number):
    """Returns a number as source maps have it: five bits a digit, the lowest first, of which the lowest is the sign."""
    number, text = (-number << 1 | 1 if number < 0 else number << 1), ""
    while True:
        number, low = number >> 5, number & 31
        text += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[low | (32 if number else 0)]
        if not number:
            return text


def mapped(body, lines):
    """Returns a source map that says from which line of `orders.ts` each line of a script was compiled."""
    mappings, last = [], 0
    for at in range(1, body.count("\n") + 1):
        line = lines.get(at)
        mappings.append("" if line is None else "AA" + digits(line - 1 - last) + "A")
        last = last if line is None else line - 1
    return json.dumps({"version": 3, "sources": ["orders.ts"], "names": [], "mappings": ";".join(mappings)})


# The first lines are the source, of which the last three were compiled.
COMPILED = f"""/* export function leaf(): void {{
  for (let i: number = 0; i < {CALLS}; i++)
    process.ppid; // HERE
}} */
function leaf() {{
    for (let i = 0; i < {CALLS}; i++) {{ process.ppid; }}
}}
leaf();
"""
SOURCE_MAP = mapped(COMPILED, {5: 1, 6: 3, 7: 4})


def with_map(program, path, body):
    beside = os.fsdecode(path) + ".map"
    with open(beside, "w", encoding="utf-8") as f:
        f.write(SOURCE_MAP)
    os.chmod(beside, 0o644)
    return [program, path], b""


case("with_a_source_map", "leaf", COMPILED + "//# sourceMappingURL=with_a_source_map.js.map\n", run=with_map, shown="orders.ts")
case("with_a_source_map_inside", "leaf", COMPILED + "//# sourceMappingURL=data:application/json;base64,"
     + base64.b64encode(SOURCE_MAP.encode()).decode(), shown="orders.ts")

# Code as the compilers have it: with inlined functions, and after its optimised form was given up.
HOT = f"""
function leaf(n) {{
  return process.ppid + n; // HERE
}}
function middle(n) {{
  let sum = 0;
  for (let i = 0; i < 3; i++) sum += leaf(n);
  return sum;
}}
let all = 0;
for (let i = 0; i < 6000; i++) all += middle(i);
"""
case("hot", "leaf", HOT)
case("baseline", "leaf", HOT, flags=("--always-sparkplug", "--no-opt"))
case("optimized", "leaf", HOT, flags=("--no-sparkplug",))
case("interpreted", "leaf", HOT, flags=("--jitless",))
case("given_up", "shape", f"""
function shape(o) {{
  const v = o.x + 1;
  process.ppid; // HERE
  return v;
}}
let s = 0;
for (let i = 0; i < 8000; i++) s += shape(i % 4000 ? {{x: i}} : {{y: 1, x: 'a' + i}});
""")
case("with_copies_of_the_interpreter", "leaf", HOT, flags=("--interpreted-frames-native-stack",))


def hold(box, program):
    failed = {}
    version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    major = int(version.strip("v").split(".")[0])
    # The compiler of baseline code came with Node 16. Node 24 does not export the table that tells the lines of that code;
    # Node's own builds name it, Debian's do not.
    left_out = ("baseline", "optimized") if major < 16 else ("baseline",) if major >= 24 and tool("node") == program else ()
    told = [c for c in to_run(CASES) if c[0] not in left_out]
    for name, function, body, file, run, shown in told:
        why = wrong(box, name, program, function, body, file, run, shown)
        if why:
            failed[name] = why
    print(f"      {len(told) - len(failed)} of {len(told)} scripts named by their line: {program}")
    assert not failed, failed


@test(users=("nobody",), backends=BOTH)
def lines_of_javascript(box):
    for node in [tool("node"), *filter(None, os.environ.get("SYSTOLL_TEST_NODES", "").split(":"))]:
        hold(box, node)


@test(users=("nobody",))
def callers_of_the_pool(box):
    """Calls that libuv's pool makes are told with the line that asked for them."""
    script = box.file("pool.js", f"""
const fs = require('fs');
async function each(n) {{
  for (let i = 0; i < n; i++)
    await fs.promises.stat('/etc/hostname'); // HERE
}}
each({60 * CALLS});
""")
    r = box.run(box.watch([tool("node"), script], "--all"))
    told = text(r.stderr) + text(r.stdout)
    if "uv__" not in told:
        raise Skip("this Node's libuv has no names")
    asked = [at for at in told.split("\n") if at.strip().startswith("asked ")]
    assert any("pool.js:5 in each 100 %" in at for at in asked), told[:3000]
    box.run(box.watch([tool("node"), script], "-q", "--save", "pool.rec"))
    doc = json.loads(box.run([box.systoll, "report", "--json", "--by", "line", "pool.rec"]).stdout)
    requested = [f["requested"] for f in doc["findings"] + doc["also"] if f["requested"]]
    assert requested and all(l["line"] == 5 and l["share"] == 1 for r in requested for l in r["lines"]), requested
    assert any("uv_fs_stat" in r["operations"] and r["hand_over_calls"] > CALLS for r in requested), requested
    # The calls of the pool's threads are grouped under the line that asked for them.
    asks = [g["calls"] for g in doc["grouped"]["groups"] if (g["user"] or {}).get("line") == 5]
    statx = sum(s["calls"] for s in doc["by_syscall"] if s["syscall"] == "statx")
    assert sum(asks) > statx > 60 * CALLS * 0.9, (asks, statx)


@test(users=("nobody",))
def each_await_has_its_line(box):
    """Two operations of the pool that one function awaits are told at their own lines, though few calls are sampled."""
    script = box.file("two.js", f"""
const fs = require('fs');
const folder = fs.mkdtempSync('two-');
async function each(n) {{
  for (let i = 0; i < n; i++) {{
    await fs.promises.chmod(folder, 0o755); // line 6
    await fs.promises.readlink('/proc/self/exe'); // line 7
  }}
}}
each({2 * CALLS});
""")
    box.run(box.watch([tool("node"), script], "-q", "--save", "two.rec"))
    for call, line in (("chmod", 6), ("readlink", 7)):
        doc = json.loads(box.run([box.systoll, "report", "--json", "--by", "line", "-e", call, "two.rec"]).stdout)
        told = {(g["user"] or {}).get("line"): g["calls"] for g in doc["grouped"]["groups"]}
        if any((g["user"] or {}).get("function") is None for g in doc["grouped"]["groups"]):
            raise Skip("this Node's libuv has no names")
        assert told.get(line, 0) >= 2 * CALLS, (call, told)


# Scripts whose pool works for a function that is on no stack when it is asked: by name, the script, with COUNT for a number that is large
# enough, and the system call of the line that ends with HERE.
WAITING = {
    "listener.js": ("read", """
const fs = require('fs');
let left = COUNT / 10;
(function next() {
  if (!left--) return;
  fs.createReadStream(__filename, {highWaterMark: 64})
    .on('data', (c) => c.length) // HERE
    .on('end', next);
})();
"""),
    "reader.js": ("read", """
const fs = require('fs');
async function sum(path) {
  let n = 0;
  for await (const c of fs.createReadStream(path, {highWaterMark: 64})) n += c.length; // HERE
  return n;
}
(async () => { for (let i = 0; i < COUNT / 10; i++) await sum(__filename); })();
"""),
    "copy.mjs": ("write", """
import fs from 'node:fs';
import {pipeline} from 'node:stream/promises';
async function copy(from, to) {
  await pipeline( // HERE
    fs.createReadStream(from, {highWaterMark: 64}), fs.createWriteStream(to));
}
for (let i = 0; i < COUNT / 10; i++) await copy(process.argv[1], 'copied');
"""),
    "handler.js": ("read", """
const fs = require('fs'), http = require('http');
const server = http.createServer((q, r) => { // HERE
  fs.createReadStream(__filename, {highWaterMark: 64}).pipe(r);
});
server.listen(0, () => {
  let left = COUNT / 10;
  (function next() {
    if (!left--) return server.close();
    http.get({port: server.address().port, agent: false}, (r) => r.resume().on('end', next));
  })();
});
"""),
}


@test(users=("nobody",), backends=BOTH)
def who_waits_for_a_stream(box):
    """What the pool reads and writes for streams is told at the function of the program that gets it."""
    for name, (call, body) in WAITING.items():
        script = box.file(name, body.replace("COUNT", str(3 * CALLS)))
        box.run(box.watch([tool("node"), script], "-q", "--save", "stream.rec"))
        doc = json.loads(box.run([box.systoll, "report", "--json", "--by", "line", "-e", call, "stream.rec"]).stdout)
        groups = doc["grouped"]["groups"]
        if not any("uv__" in (f or "") for row in doc["rows"] for f in row["stack"]):
            raise Skip("this Node's libuv has no names")
        line = 1 + next(n for n, text in enumerate(body.split("\n")) if text.endswith("HERE"))
        told = {((g["user"] or {}).get("file") or "").rpartition("/")[2] + ":" + str((g["user"] or {}).get("line")): g["calls"] for g in groups}
        # Reads that begin while the function is about to go on bear the name of the stream.
        assert told.get(f"{name}:{line}", 0) > sum(told.values()) / 5, (name, line, told)
