"""`systoll attach --box` and `systoll agent`: everything on a box is counted, within a budget, and nothing that happens to the
agent loses more than an interval.

All tests run as root and watch the kernel's system calls one at a time, as those of the suite bpf do.
"""
import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import readers
from harness import HERE, MOUNTING, Skip, test, text, tool, wait_for
from suites.bpf import needs_bpf, ours
from suites.fleet import asked

DIST = os.path.join(os.path.dirname(HERE), "dist", "box")
# Controllers' folders in which a test can make control groups.
GROUPS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def watched(**options):
    """Registers a test that watches the box."""

    def register(function):
        def check(box):
            with box.only_kernel_tracer():
                needs_bpf(box)
                wait_for(lambda: not ours(), "the kernel removes the programs", limit=10)
                function(box)

        check.__module__ = function.__module__
        return test(function.__name__, users=("root",), **options)(check)

    return register


class Agent:
    """An agent that runs. Counters hold 50 services, and those of `services` are among them however many the box has: it goes on
    with a file in which each of them has a series."""

    def __init__(self, box, *words, folder=None, services=()):
        self.box, self.folder = box, folder or os.path.join(box.dir, "kept")
        if services:
            os.makedirs(self.folder, exist_ok=True)
            with open(os.path.join(self.folder, "systoll.prom"), "w") as f:
                f.writelines(f'systoll_box_cpu_seconds_total{{service="{service}"}} 0.000000000\n' for service in services)
        self.log = os.path.join(box.dir, f"log-{time.monotonic_ns()}")
        command = [box.systoll, "agent", "--dir", self.folder, "--listen", "127.0.0.1:0", *words]
        with open(self.log, "w") as log:
            self.process = box.start(command, stderr=log, stdin=subprocess.DEVNULL)
        wait_for(lambda: "/metrics" in self.said() or self.process.poll() is not None, "the agent listens", limit=30)
        assert self.process.poll() is None, self.said()
        self.url = re.search(r"http://\S+/metrics", self.said()).group()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def said(self):
        with open(self.log) as f:
            return f.read()

    def scrape(self, accept="text/plain", limit=20):
        request = urllib.request.Request(self.url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=limit) as answer:
            return answer.read().decode()

    def sums(self, name, **labels):
        """Returns the sum of a counter's series that have these labels."""
        sum_of = 0
        for line in self.scrape().splitlines():
            found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
            if found and all(f'{label}="{value}"' in (found[1] or "") for label, value in labels.items()):
                sum_of += float(found[2])
        return sum_of

    def wait_for_spans(self, spans, limit=60):
        wait_for(lambda: self.sums("systoll_agent_spans_total") >= spans, f"{spans} spans: {self.said()}", limit=limit)

    def tables(self):
        return glob.glob(os.path.join(self.folder, "day=*", "service=*", "host=*", "*.parquet"))

    def end(self, how=signal.SIGTERM, within=30):
        self.process.send_signal(how)
        return self.process.wait(within)


def ticks(pid):
    """Returns the processor time of a process and of its children that have ended, s."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def report_of_box(box, *words, during):
    """Returns the report on the box and what `during` returned, called while the box is watched."""
    out = os.path.join(box.dir, "box.json")
    watching = box.start([box.systoll, "attach", "--box", "--for", "20s", "-q", "--json", "-o", out, *words], stderr=subprocess.PIPE)
    wait_for(ours, "the programs are in the kernel", limit=20)
    time.sleep(1)
    returned = during()
    watching.send_signal(signal.SIGINT)
    said = watching.communicate(timeout=60)[1]
    assert os.path.exists(out), text(said)
    with open(out) as f:
        return json.load(f), returned


@watched()
def a_box_is_counted_exactly(box):
    """Programs that ran before, that start, and that end meanwhile: each has its calls, and all have a service."""
    program = box.build("parents.c", name="parents-of-box")
    before = box.start([program, "2", "50000", "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert before.stdout.readline() == b"ready\n"

    def work():
        before.stdin.write(b"go\n")
        before.stdin.flush()
        assert before.stdout.readline() == b"done\n"
        for _ in range(3):
            assert box.run([program, "4", "10000"]).returncode == 0

    doc, _ = report_of_box(box, during=work)
    before.stdin.close()
    before.wait()
    assert doc["backend"] == "bpf" and doc["exact"], doc["problems"]
    processes = {p["process"]: p for p in doc["processes"]}
    calls = [row["calls"] for row in doc["rows"] if row["syscall"] == "getppid" and processes[row["process"]]["exe"] == program]
    assert sum(calls) == 2 * 50000 + 3 * 4 * 10000, calls
    services = {p["service"] for p in doc["processes"] if p["exe"] == program}
    assert services == {"parents-of-box"}, services
    assert all(p.get("service") for p in doc["processes"]), [p for p in doc["processes"] if not p.get("service")]
    # Tests beside this one run systoll too.
    own = [p for p in doc["processes"] if p["exe"] == box.systoll and any(word.startswith(box.dir) for word in p["argv"])]
    assert not own, own
    sums = [re.match(r"(\d+) calls entered, as many as returned \((\d+)\) and never returned \((\d+)\)", p) for p in doc["problems"]]
    assert any(m and int(m[1]) == int(m[2]) + int(m[3]) for m in sums), doc["problems"]


@watched()
def only_bpf_watches_a_box(box):
    r = box.run([box.systoll, "attach", "--box", "--backend", "ptrace", "--for", "1s"])
    assert r.returncode == 125 and b"only bpf" in r.stderr, r.stderr


@watched()
def top_shows_a_box(box):
    load = box.start([box.build("parents.c", name="parents-of-top"), "1", "20000000"])
    r = box.run([box.systoll, "top", "--box", "--batch", "2", "--every", "1s", "--by", "process"])
    load.kill()
    load.wait()
    assert r.returncode == 0 and b"parents-of-top" in r.stdout, (r.stderr, r.stdout[-600:])
    assert b" all processes of this box " in r.stdout.splitlines()[0], r.stdout[:200]
    r = box.run([box.systoll, "attach", "--box", "--for", "1s"])
    assert r.stdout.startswith(b"systoll  all processes of this box "), r.stdout[:200]


@watched()
def counts_and_counters_are_the_programs(box):
    """A program that runs within a span has all its calls in the counters and in the tables, on a box with more services than
    counters hold."""
    program = box.build("parents.c", name="parents-of-agent")
    with contextlib.ExitStack() as stack:
        for n in range(60):
            # It asks for the file's size again and again.
            polling = [shutil.copy(tool("tail"), os.path.join(box.dir, f"a-service-{n}")), "-f", "-s", "0.3", "---disable-inotify", program]
            other = box.start(polling, stdout=subprocess.DEVNULL)
            stack.callback(other.wait)
            stack.callback(other.kill)
        agent = stack.enter_context(Agent(box, "--budget", "100%", "--interval", "12s", "--host", "h1", services=["parents-of-agent"]))
        agent.wait_for_spans(1)
        time.sleep(0.5)
        assert box.run([program, "4", "100000"]).returncode == 0
        wait_for(agent.tables, "a table", limit=40)
        wait_for(lambda: "watched" in agent.said(), "a line of the log", limit=10)
        counted = agent.sums("systoll_box_calls_total", service="parents-of-agent", syscall="getppid")
        named = set(re.findall(r'systoll_box_cpu_seconds_total{service="([^"]*)"}', agent.scrape()))
        assert agent.end() == 0, agent.said()
    assert counted == 400_000, (counted, agent.said())
    assert len(named) == 51 and "other" in named, named
    [row] = asked(box, agent.folder, "--sql", "select sum(calls) as calls from fleet where service = 'parents-of-agent' and syscall = 'getppid' and host = 'h1'")
    assert row["calls"] == 400_000, row
    [row] = asked(box, agent.folder, "--sql", "select min(exact) as exact, sum(lost) as lost from runs")
    assert (row["exact"], row["lost"]) == (1, 0), row
    assert asked(box, agent.folder, "services"), "no services"


@watched()
def the_budget_is_kept_under_load(box):
    """By this test's own figures of the agent's time, and by its counters for the time in others' calls."""
    budget, for_s = 0.02, 45
    load = box.start([box.build("parents.c", name="parents-of-load"), "1", "2000000000"])
    try:
        with Agent(box, "--budget", str(budget), "--interval", "30s") as agent:
            began = time.monotonic()
            time.sleep(for_s)
            own, elapsed = ticks(agent.process.pid), time.monotonic() - began
            kernel = agent.sums("systoll_agent_cpu_seconds_total", part="kernel")
            told = agent.sums("systoll_agent_cpu_seconds_total", part="own")
            spans = agent.sums("systoll_agent_spans_total")
            with open(f"/proc/{agent.process.pid}/status") as f:
                memory = int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])
            assert agent.end() == 0, agent.said()
    finally:
        load.kill()
        load.wait()
    share = (own + kernel) / (elapsed * os.cpu_count())
    print(f"      {spans:.0f} spans, {100 * share:.2f} % of the processors for a budget of {100 * budget} %, {memory >> 10} MiB")
    # A second beside such a load costs what fifteen seconds may.
    assert spans >= 2 and kernel > 0, (spans, kernel, agent.said())
    # The first span is watched before costs are known.
    assert share < 1.3 * budget, (share, own, kernel, agent.said())
    assert abs(told - own) < 0.2 + 0.1 * own, (told, own)
    assert memory < 300 << 10, memory


@watched()
def a_kill_loses_an_interval_and_no_counter_goes_back(box):
    with Agent(box, "--budget", "100%", "--interval", "5s") as agent:
        wait_for(agent.tables, "a table", limit=40)
        agent.wait_for_spans(agent.sums("systoll_agent_spans_total") + 1)
        names = ("systoll_box_calls_total", "systoll_agent_watched_seconds_total", "systoll_agent_spans_total")
        before = {name: agent.sums(name) for name in names}
        agent.end(signal.SIGKILL)
        kept = agent.tables()
    wait_for(lambda: not ours(), "the kernel removes the programs", limit=10)
    [row] = asked(box, agent.folder, "--sql", "select count(*) as runs from runs")
    assert row["runs"] == len(kept) > 0, (row, len(kept), kept)
    # What it was writing is gone at the next start.
    unfinished = os.path.join(os.path.dirname(kept[0]), ".systoll-1-x.parquet.part")
    with open(unfinished, "w") as f:
        f.write("half")
    with Agent(box, "--budget", "100%", "--interval", "5s") as agent:
        after = {name: agent.sums(name) for name in names}
        assert not os.path.exists(unfinished)
        assert agent.end() == 0, agent.said()
    assert all(after[name] >= before[name] > 0 for name in names), (before, after)
    assert set(kept) <= set(agent.tables())


@watched()
def a_full_disk_is_survived(box):
    box.may("mounting", *MOUNTING)
    folder = os.path.join(box.dir, "full")
    os.mkdir(folder)
    subprocess.run([tool("mount"), "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    try:
        junk = os.path.join(folder, "junk")
        with contextlib.suppress(OSError), open(junk, "wb", buffering=0) as f:
            for _ in range(512):
                f.write(b"x" * 4096)
        with Agent(box, "--budget", "100%", "--interval", "4s", folder=folder) as agent:
            wait_for(lambda: "tables can't be kept, and are tried again" in agent.said(), "it says that there are no tables", limit=40)
            assert "No space left" in agent.said() and not agent.tables(), agent.said()
            agent.wait_for_spans(agent.sums("systoll_agent_spans_total") + 1)
            assert agent.said().count("the counters can't be kept") == 1, agent.said()
            assert agent.sums("systoll_agent_troubles_total", what="keeping") > 0
            os.unlink(junk)
            wait_for(agent.tables, f"a table after all: {agent.said()}", limit=40)
            wait_for(lambda: "the counters are kept again" in agent.said(), f"it keeps counters: {agent.said()}", limit=40)
            assert agent.end() == 0
        assert not glob.glob(os.path.join(folder, "**", ".systoll-*"), recursive=True)
    finally:
        subprocess.run([tool("umount"), "-l", folder], check=True)


@watched()
def a_day_is_one_table_also_while_it_is_read(box):
    """Each interval writes a service's table of the day anew: whoever reads meanwhile finds each run once, and no sum goes back."""
    program = box.build("parents.c", name="parents-of-day")
    load = box.start([program, "1", "2000000000"], preexec_fn=lambda: os.nice(19))
    question = ("select count(distinct run) as runs, count(*) filter (where row = 0) as tables, sum(calls) as calls "
                "from fleet where service = 'parents-of-day'")
    seen = []
    try:
        with Agent(box, "--budget", "100%", "--interval", "1s") as agent:
            wait_for(agent.tables, "a table", limit=40)
            midnight = (int(time.time()) // 86400 + 1) * 86400
            while len(seen) < 12 or agent.said().count("watched") < 10:
                seen += [(row["runs"], row["tables"], row["calls"] or 0) for row in asked(box, agent.folder, "--sql", question)]
                assert len(seen) < 200, (seen, agent.said())
            assert agent.end() == 0, agent.said()
            if time.time() > midnight:
                raise Skip("a day began meanwhile")
    finally:
        load.kill()
        load.wait()
    calls = [of for _, _, of in seen]
    assert calls == sorted(calls) and len(set(calls)) > 3 and all((runs, tables) in ((0, 0), (1, 1)) for runs, tables, _ in seen), seen
    places = [os.path.dirname(path) for path in agent.tables()]
    assert len(places) == len(set(places)) and agent.said().count("watched") >= 10, (sorted(places), agent.said())


@watched()
def what_is_kept_is_bounded(box):
    with Agent(box, "--budget", "100%", "--interval", "2s", "--keep-size", "8K") as agent:
        wait_for(lambda: re.search(r"removed [1-9]", agent.said()), f"it removes tables: {agent.said()}", limit=60)
        left = int(re.findall(r", (\d+) KiB are left", agent.said())[-1])
        assert agent.end() == 0
    assert left <= 8, agent.said()


@watched()
def prometheus_reads_it(box):
    promtool = readers.program("promtool")
    if not promtool:
        raise Skip("promtool is not installed: tests/readers.py")
    rules = os.path.join(DIST, "prometheus-rules.yml")
    r = box.run([promtool, "check", "rules", rules])
    assert r.returncode == 0, text(r.stdout + r.stderr)
    with Agent(box, "--budget", "50%", "--interval", "30s") as agent:
        agent.wait_for_spans(1)
        # A slow scraper keeps others waiting for 5 s at most.
        host, port = re.search(r"//(.*):(\d+)/", agent.url).groups()
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(b"GET /metrics HTT")
            plain, open_metrics = agent.scrape(), agent.scrape(OPEN_METRICS)
        assert agent.end() == 0
    r = box.run([promtool, "check", "metrics"], input=plain.encode())
    assert r.returncode == 0, text(r.stdout + r.stderr)
    # OpenMetrics takes no series without a time here.
    timed = re.sub(r"(?m)^([^#].*)$", r"\1 1700000000", open_metrics)
    with open(os.path.join(box.dir, "open.txt"), "w") as f:
        f.write(timed)
    blocks = os.path.join(box.dir, "blocks")
    r = box.run([promtool, "tsdb", "create-blocks-from", "openmetrics", f.name, blocks])
    assert r.returncode == 0 and os.listdir(blocks), text(r.stdout + r.stderr)


ALERTS = """
rule_files: [RULES]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'systoll_agent_watched_seconds_total{instance="h", job="j", kind="sampled"}', values: '0+6x240'}
      - {series: 'systoll_agent_elapsed_seconds_total{instance="h", job="j"}', values: '0+60x240'}
      - {series: 'systoll_agent_cpu_seconds_total{instance="h", job="j", part="own"}', values: '0+0.5x240'}
      - {series: 'systoll_agent_processors{instance="h", job="j"}', values: '2x240'}
      - {series: 'systoll_agent_budget_ratio{instance="h", job="j"}', values: '0.005x240'}
      - {series: 'systoll_box_cpu_seconds_total{instance="h", job="j", service="shop"}', values: '0+3x240'}
      - {series: 'systoll_box_cpu_seconds_total{instance="h", job="j", service="web"}', values: '0+3x240'}
      - {series: 'systoll_box_needless_toll_seconds_total{instance="h", job="j", service="shop", syscall="newfstatat", cause="tz-unset"}', values: '0+1.5x240'}
      - {series: 'systoll_box_needless_toll_seconds_total{instance="h", job="j", service="web", syscall="read", cause="small-io"}', values: '0+0.01x240'}
    promql_expr_test:
      - {expr: 'topk(1, systoll:needless_cores:rate)', eval_time: 3h, exp_samples: [{labels: 'systoll:needless_cores:rate{instance="h", job="j", service="shop", cause="tz-unset"}', value: 0.25}]}
      - {expr: 'systoll:watched:ratio', eval_time: 3h, exp_samples: [{labels: 'systoll:watched:ratio{instance="h", job="j"}', value: 0.1}]}
    alert_rule_test:
      - eval_time: 3h
        alertname: SystollNeedlessCalls
        exp_alerts:
          - exp_labels: {severity: info, instance: h, job: j, service: shop, cause: tz-unset}
            exp_annotations:
              summary: "shop spends 50% of its processor time on needless system calls: tz-unset"
              description: "systoll explain tz-unset; lines and callers: systoll fleet /var/lib/systoll --service shop on h"
      - {eval_time: 3h, alertname: SystollAgentOverBudget, exp_alerts: []}
      - {eval_time: 3h, alertname: SystollAgentTrouble, exp_alerts: []}
      - {eval_time: 3h, alertname: SystollAgentBlind, exp_alerts: []}
"""


@test(users=("nobody",))
def an_alert_fires_for_a_sick_service_alone(box):
    promtool = readers.program("promtool")
    if not promtool:
        raise Skip("promtool is not installed: tests/readers.py")
    with open(os.path.join(DIST, "prometheus-rules.yml")) as f:
        rules = box.file("rules.yml", f.read())
    r = box.run([promtool, "test", "rules", box.file("test.yml", ALERTS.replace("RULES", rules))])
    assert r.returncode == 0, text(r.stdout + r.stderr)
    with open(os.path.join(DIST, "grafana-dashboard.json")) as f:
        panels = json.load(f)["panels"]
    # A dashboard shows what the rules and the agent have.
    with open(rules) as f:
        recorded = set(re.findall(r"record: (\S+)", f.read()))
    used = {name for panel in panels for target in panel["targets"] for name in re.findall(r"systoll:[a-z_]+:[a-z]+", target["expr"])}
    assert used and used <= recorded, used - recorded


@contextlib.contextmanager
def unit(name, kind="service"):
    """Makes a control group as systemd makes one for a unit or a container. Yields a function that puts a process there."""
    place = next((p for p in GROUPS if os.path.exists(os.path.join(p, "cgroup.procs"))), None)
    if not place:
        raise Skip("there are no control groups here")
    group = os.path.join(place, "system.slice", f"{name}.{kind}")
    try:
        os.makedirs(group, exist_ok=True)
    except OSError as e:
        raise Skip(f"no control group can be made: {e}") from e

    def enter():
        with open(os.path.join(group, "cgroup.procs"), "w") as f:
            f.write(str(os.getpid()))

    yield enter
    wait_for(lambda: not open(os.path.join(group, "cgroup.procs")).read(), "the group is empty")
    os.rmdir(group)


@watched()
def a_sick_service_is_found_among_healthy_ones(box):
    """One of five services, all of one program, lacks TZ: the counters and `fleet` name it, and no other."""
    program = box.build("served.c", name="served")
    services = [f"systoll-test-{name}" for name in ("shop", "web", "mail", "auth", "feed")]
    with contextlib.ExitStack() as stack:
        running = []
        try:
            for service in services:
                enter = stack.enter_context(unit(service))
                env = {**box.env, "TZ": "UTC"} if service != services[0] else {k: v for k, v in box.env.items() if k != "TZ"}
                running.append(box.start([program, "100000000"], env=env, preexec_fn=enter))
            with Agent(box, "--budget", "100%", "--interval", "15s", services=services) as agent:
                wait_for(agent.tables, "a table", limit=60)
                wait_for(lambda: "watched" in agent.said(), "a line of the log", limit=20)
                found = {service: agent.sums("systoll_box_needless_toll_seconds_total", service=service, cause="tz-unset") for service in services}
                assert agent.end() == 0, agent.said()
        finally:
            for process in running:
                process.kill()
                process.wait()
    assert found[services[0]] > 0 and not any(found[service] for service in services[1:]), found
    rows = [row for row in asked(box, agent.folder) if row["cause"] == "tz-unset" and row["service"].startswith("systoll-test-")]
    assert {row["service"] for row in rows} == {services[0]}, rows
    assert rows[0]["function"] == "log_line" and rows[0]["api"] == "localtime" and rows[0]["needless_calls"] > 1000, rows
    named = {row["service"] for row in asked(box, agent.folder, "services")}
    assert set(services) <= named, named


@watched()
def a_service_is_looked_at_closely_when_asked(box):
    """All processes of a unit are watched from inside, beside an agent and without one, and no other process of the program."""
    program = box.build("served.c", name="looked")
    env = {k: v for k, v in box.env.items() if k != "TZ"}
    service, other = "systoll-test-look", "systoll-test-other"

    def look(unit, *words):
        r = box.run([box.systoll, "agent", "look", unit, "--for", "3s", *words])
        assert r.returncode == 0, text(r.stderr)
        return text(r.stdout)

    with unit(service) as enter, unit(other) as enter_other:
        running = []
        try:
            running += [box.start([program, "100000000"], env=env, preexec_fn=place) for place in (enter, enter, enter_other)]
            pids = [process.pid for process in running]
            with Agent(box, "--budget", "100%", "--interval", "1h") as agent:
                agent.wait_for_spans(1)
                doc = json.loads(look(f"{service}.service", "--json"))
                before = agent.sums("systoll_agent_spans_total")
                agent.wait_for_spans(before + 1)
                code = agent.end()
                assert code == 0, (code, agent.said())
            assert doc["backend"] == "inproc" and sorted(p["pid"] for p in doc["processes"]) == sorted(pids[:2]), doc["processes"]
            assert [f["cause"] for f in doc["findings"]][:1] == ["tz-unset"], doc["findings"]
            assert "tz-unset" in look(service)
            assert [p["pid"] for p in json.loads(look(str(pids[0]), "--json"))["processes"]] == pids[:1]
            assert not [process for process in running if process.poll() is not None], "a process has ended"
            r = box.run([box.systoll, "agent", "look", "systoll-test-lok"])
            said = " ".join(text(r.stderr).split())
            assert r.returncode == 125 and "there is no service systoll-test-lok" in said and service in said and other in said, said
        finally:
            for process in running:
                process.kill()
                process.wait()


@watched()
def a_container_is_looked_at_by_its_name(box):
    """In a namespace of mounts where docker has left its file about a container, whose control group knows only the id."""
    box.may("mounting", *MOUNTING)
    id_of = "3f2a9c0d17be" + "0123456789abcdef" * 3 + "0123"
    script = f"""mount -t tmpfs tmpfs /var/lib && mkdir -p /var/lib/docker/containers/{id_of} &&
echo '{{"ID":"{id_of}","Name":"/systoll-test-web"}}' > /var/lib/docker/containers/{id_of}/config.v2.json && exec "$@" """
    with unit(f"docker-{id_of}", "scope") as enter:
        served = box.start([box.build("served.c", name="contained"), "100000000"], preexec_fn=enter)
        try:
            look = [box.systoll, "agent", "look", "systoll-test-web", "--for", "2s", "--json"]
            r = box.run([tool("unshare"), "--mount", "sh", "-c", script, "sh", *look])
            assert r.returncode == 0 and [p["pid"] for p in json.loads(r.stdout)["processes"]] == [served.pid], text(r.stderr)
            r = box.run(look)
            assert r.returncode == 125 and "there is no service systoll-test-web" in text(r.stderr), text(r.stderr)
        finally:
            served.kill()
            served.wait()


@watched()
def a_fifo_in_place_of_the_counters_holds_nothing_up(box):
    folder = os.path.join(box.dir, "kept")
    os.mkdir(folder)
    counters = os.path.join(folder, "systoll.prom")
    os.mkfifo(counters)
    with Agent(box, "--budget", "100%", "--interval", "1h", folder=folder) as agent:
        agent.wait_for_spans(1)
        assert agent.end() == 0, agent.said()
    with open(counters) as f:
        assert "systoll_agent_spans_total" in f.read()


@test(users=("root",))
def a_time_too_short_to_watch_is_named(box):
    folder = os.path.join(box.dir, "kept")
    r = box.run([box.systoll, "agent", "--dir", folder, "--for", "0s"])
    assert r.returncode == 0 and b"hardly anything was watched: the first span takes 2 s" in r.stderr, text(r.stderr)
    r = box.run([box.systoll, "agent", "--dir", folder, "--interval", "900ms"])
    assert r.returncode == 125 and b"at least 1s" in r.stderr, text(r.stderr)


@watched()
def a_service_manager_ends_it_cleanly(box):
    """SIGTERM ends it with 0 in the middle of a span, with what it has so far; no program stays in the kernel."""
    with Agent(box, "--budget", "100%", "--interval", "1h") as agent:
        agent.wait_for_spans(1)
        time.sleep(1)
        before = time.monotonic()
        assert agent.end() == 0, agent.said()
        assert time.monotonic() - before < 4, agent.said()
    assert agent.tables() and "watched" in agent.said(), agent.said()
    wait_for(lambda: not ours(), "the kernel removes the programs", limit=10)


@watched()
def a_busy_box_does_not_cut_its_end_short(box):
    """What it has is written although that takes longer than the four seconds that other commands have."""
    with Agent(box, "--budget", "100%", "--interval", "1h") as agent:
        agent.wait_for_spans(1)
        agent.process.send_signal(signal.SIGTERM)
        time.sleep(0.03)
        agent.process.send_signal(signal.SIGSTOP)
        time.sleep(5)
        agent.process.send_signal(signal.SIGCONT)
        code = agent.process.wait(30)
    assert code == 0 and agent.tables() and "watched" in agent.said(), (code, agent.said())


@test(users=("nobody",))
def without_rights_it_says_which(box):
    r = box.run([box.systoll, "agent", "--dir", os.path.join(box.dir, "kept"), "--for", "1s"])
    assert r.returncode == 125 and b"CAP_BPF and CAP_PERFMON" in r.stderr, r.stderr
    # The advice is the command that was typed.
    for words in (["agent", "--dir", "a b", "--for", "1s"], ["attach", "--box", "--for", "1s"], ["top", "--box", "--batch", "1"]):
        r = box.run([box.systoll, *words])
        assert f"as root: sudo systoll {shlex.join(words)}\n" in text(r.stderr), text(r.stderr)
