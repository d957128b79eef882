"""Names in Lua's scripts, tested like Python and Ruby in names_scripts.

The line with the word HERE tries to remove a file that is not there, which is one unlink (unlinkat on aarch64).
SYSTOLL_TEST_LUAS may hold other Luas, with colons between them; each then runs every case."""
import os

from harness import BOTH, test, tool
from suites.names_scripts import CALLS, to_run

CASES = []
ASK = 'os.remove("gone")'


def case(name, defined, body, lua="lua5.4", shown=None, run=None):
    """Adds a script; `defined` is the line of the function that contains HERE, 0 if there is none."""
    CASES.append((name, defined, body, lua, shown or f"{name}.lua", run))


case("three_deep", 2, f"""
local function leaf()
  for i = 1, {CALLS} do
    {ASK} -- HERE
  end
end
local function render()
  leaf()
  return 1
end
render()
""")
case("own_level", 0, f"""
local x =
  1
for i = 1, {CALLS} do
  {ASK} -- HERE
end
""", lua="lua5.1")
case("coroutine", 2, f"""
local function each()
  for i = 1, {CALLS} do
    {ASK} -- HERE
    coroutine.yield(i)
  end
end
local co = coroutine.create(each)
while coroutine.resume(co) and coroutine.status(co) ~= "dead" do
end
""", lua="lua5.3")
case("resumer", 3, f"""
local co = coroutine.wrap(function() while true do coroutine.yield(1) end end)
local function work()
  for i = 1, {CALLS} do
    co()
    {ASK} -- HERE
  end
end
coroutine.wrap(work)()
""", lua="lua5.1")
case("protected", 2, f"""
local function careful()
  local ok = pcall(error, "x")
  {ASK} -- HERE
end
for i = 1, {CALLS} do pcall(careful) end
""", lua="lua5.2")
case("called_back_by_c", 3, f"""
local t = {{}}
local function rank(a, b)
  {ASK} -- HERE
  return a < b
end
for i = 1, 120 do t[i] = (i * 37) % 101 end
table.sort(t, rank)
""", lua="lua5.2")
# The result is returned by a line of its own, because LuaJIT gives the frame of a function that ends with a call to the
# called function.
case("metamethod", 2, f"""
local t = setmetatable({{}}, {{ __index = function(_, k)
  local _, why = {ASK} -- HERE
  return why
end }})
local function read(n) return t[n] end
for i = 1, {CALLS} do read(i) end
""", lua="lua5.3")
case("tail_called", 2, f"""
local function leaf()
  {ASK} -- HERE
  return 1
end
local function middle() return leaf() end
for i = 1, {CALLS} do middle() end
""")
case("deep", 2, f"""
local function down(n)
  if n > 0 then return 1 + down(n - 1) end
  for i = 1, {CALLS} do
    {ASK} -- HERE
  end
  return 0
end
down(150)
""", lua="lua5.1")
case("long", 2, "\nlocal function long()\n" + "  x = x and x + 1\n" * 700 + f"""
  for i = 1, {CALLS} do
    {ASK} -- HERE
  end
end
long()
""")
case("text", 0, f"""
local run = (loadstring or load)([[for i = 1, {CALLS} do
  {ASK}
end]], "=text") --
run() -- the second line of the text is what is told, not the one that says HERE
""", shown="text", lua="lua5.2")
case("command_line", 0, f"""
for i = 1, {CALLS} do
  {ASK} -- HERE
end
""", shown="(command line)", run=lambda lua, path, body: ([lua, "-e", body], b""))
case("interpreted_by_luajit", 2, f"""
local function leaf(n)
  for i = 1, {CALLS} do
    {ASK} -- HERE
  end
  return n
end
local function render(...) return 1 + leaf(...) end
local co = coroutine.wrap(function() return render(1) + render(2) end)
co()
""", lua="luajit")
case("standard_input", 0, f"""
for i = 1, {CALLS} do
  {ASK} -- HERE
end
""", shown="stdin", run=lambda lua, path, body: ([lua, "-"], body.encode()), lua="lua5.1")


def wrong(box, name, defined, body, lua, shown, run):
    """Returns what a case's report says instead of the truth; None if it says the truth."""
    line = 2 if name == "text" else next(n for n, text in enumerate(body.split("\n"), 1) if "HERE" in text)
    path = os.path.join(box.dir, f"{name}.lua")
    with open(path, "w", encoding="utf-8") as f:
        f.write(body)
    os.chmod(path, 0o644)
    argv, stdin = run(lua, path, body) if run else ([lua, path], b"")
    doc, r = box.report(argv, input=stdin)
    assert r.returncode == 0, f"{name}: {r.stderr[:300]} {r.stderr[-300:]}"
    rows = [r for r in doc["rows"] if r["syscall"] in ("unlink", "unlinkat")]
    if not rows:
        return "no calls seen"
    row = max(rows, key=lambda r: r["calls"])
    user = row["user"] or {}
    told = (os.path.basename(user.get("file") or ""), user.get("line"), user.get("function"))
    function = f"function <{shown}:{defined}>" if defined else "main chunk"
    truth = (shown, line, function)
    return None if told == truth else f"{told} and not {truth}; {row['calls']} calls, lines {row['lines'][:3]}; {doc['problems']}"


@test(users=("nobody",), backends=BOTH)
def lines_of_lua(box):
    others = [lua for lua in os.environ.get("SYSTOLL_TEST_LUAS", "").split(":") if lua]
    failed = {}
    runs = [(lua, case) for case in to_run(CASES) for lua in others or [tool(case[3])]]
    for lua, (name, defined, body, _, shown, run) in runs:
        why = wrong(box, name, defined, body, lua, shown, run)
        if why:
            failed[f"{name} {lua}"] = why
    print(f"      {len(runs) - len(failed)} of {len(runs)} scripts named by their line")
    assert not failed, failed
