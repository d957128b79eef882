"""`systoll agent --otlp`, `--otlp-profiles`, `--pprof-push`: receivers get what scrapers get, and none can hold the agent up.

All tests run as root and watch the kernel's system calls one at a time, as those of the suite box_agent do.
"""
import collections
import glob
import gzip
import http.server
import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.parse

import readers
from harness import GO_CACHE, Skip, test, text, tool, wait_for
from suites.box_agent import Agent, watched

# Reads a request's bytes and prints it as JSON: kind, then the bytes on standard input.
DECODER = """
import sys
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
kinds = {"metrics": ExportMetricsServiceRequest, "profiles": ExportProfilesServiceRequest}
request = kinds[sys.argv[1]].FromString(sys.stdin.buffer.read())
print(MessageToJson(request, always_print_fields_with_no_presence=True))
"""
METRICS, PROFILES, INGEST = "/v1/metrics", "/v1development/profiles", "/ingest"
COLLECTOR = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:PORT"}}}}
exporters: {debug: {verbosity: detailed}, otlp_http: {endpoint: "URL", profiles_endpoint: "URL/v1development/profiles", compression: none}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [otlp], exporters: [debug, otlp_http]}
    profiles: {receivers: [otlp], exporters: [debug, otlp_http]}
"""


class Receiver:
    """A receiver on loopback that keeps what is posted to it, and answers with a status; with None, it never answers."""

    def __init__(self, status=200):
        self.requests, self.over = [], threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, self.headers, body))
                if status is None:
                    receiver.over.wait()
                    return
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def bodies(self, path):
        return [body for of, _, body in self.requests if of.partition("?")[0] == path]


def decoded(kind, body):
    python = readers.formats()
    if not python:
        raise Skip("OpenTelemetry's messages are not installed: tests/readers.py")
    r = subprocess.run([python, "-c", DECODER, kind], input=body, capture_output=True)
    assert r.returncode == 0, text(r.stderr)[-600:]
    return json.loads(r.stdout)


def attributes(of, strings=()):
    """Returns attributes whose values are texts. A collector puts those of profiles into the table of strings."""

    def value(of):
        return of["stringValue"] if "stringValue" in of else strings[of["stringValueStrindex"]]

    return {a["key"] or strings[a["keyStrindex"]]: value(a["value"]) for a in of["attributes"]}


def series(body):
    """Returns the values of a request's points by Prometheus's name and labels, and the times at which sums began."""
    [resource] = decoded("metrics", body)["resourceMetrics"]
    assert attributes(resource["resource"]) == {"service.name": "systoll-agent", "host.name": "h1"}, resource["resource"]
    values, starts = {}, set()
    for metric in resource["scopeMetrics"][0]["metrics"]:
        name = "_".join([metric["name"].replace(".", "_"), *{"s": ["seconds"], "1": ["ratio"]}.get(metric.get("unit", ""), [])])
        if "sum" in metric:
            assert metric["sum"]["isMonotonic"] and metric["sum"]["aggregationTemporality"] == "AGGREGATION_TEMPORALITY_CUMULATIVE"
            name += "_total"
        for point in metric.get("sum", metric.get("gauge"))["dataPoints"]:
            labels = frozenset(attributes(point).items())
            assert (name, labels) not in values, (name, labels)
            values[name, labels] = float(point["asInt"] if "asInt" in point else point["asDouble"])
            if "sum" in metric:
                starts.add(int(point["startTimeUnixNano"]))
    return values, starts


def written(folder):
    """Returns the same of the agent's file, from which scrapers get what they get."""
    values = {}
    with open(os.path.join(folder, "systoll.prom")) as f:
        for line in f:
            found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)\n", line)
            if found:
                labels = re.findall(r'(\w+)="((?:\\.|[^"\\])*)"', found[2] or "")
                values[found[1], frozenset((name, re.sub(r"\\(.)", r"\1", value)) for name, value in labels)] = float(found[3])
    return values


def profiled(bodies, service):
    """Returns the sums of a service's profiles by kind and leaf, and the files of the frames."""
    sums, files = collections.Counter(), set()
    for body in bodies:
        request = decoded("profiles", body)
        tables = request["dictionary"]
        strings = tables["stringTable"]
        assert strings[0] == "", strings[0]
        for resource in request["resourceProfiles"]:
            of = attributes(resource["resource"], strings)
            assert of["host.name"] == "h1", of
            if of["service.name"] != service:
                continue
            for profile in resource["scopeProfiles"][0]["profiles"]:
                assert int(profile["timeUnixNano"]) > 1.7e18 and int(profile["durationNano"]) > 0, profile
                for sample in profile["samples"]:
                    stack = [tables["locationTable"][at] for at in tables["stackTable"][sample["stackIndex"]]["locationIndices"]]
                    functions = [tables["functionTable"][line["functionIndex"]] for location in stack for line in location["lines"]]
                    kind = strings[profile["sampleType"]["typeStrindex"]]
                    sums[kind, strings[functions[0]["nameStrindex"]]] += int(sample["values"][0])
                    files.update(strings[function["filenameStrindex"]] for function in functions)
    return sums, files


def check_otlp(receiver, folder, service):
    """Asserts that the last counters are those that were written, and that profiles add up to them. Returns the counted calls."""
    sent, starts = series(receiver.bodies(METRICS)[-1])
    kept = written(folder)
    assert sent.keys() == kept.keys(), sent.keys() ^ kept.keys()
    assert all(abs(value - kept[of]) <= 1e-9 * abs(kept[of]) for of, value in sent.items()), [(of, sent[of], kept[of]) for of in sent if sent[of] != kept[of]]
    began = kept["systoll_agent_counting_since_seconds", frozenset()]
    assert len(starts) == 1 and abs(starts.pop() / 1e9 - began) < 0.001 and time.time() - 600 < began < time.time(), began
    labels = frozenset({"service": service, "syscall": "getppid"}.items())
    counted = kept["systoll_box_calls_total", labels]
    assert counted > 0, counted
    sums, files = profiled(receiver.bodies(PROFILES), service)
    assert sums["calls", "getppid"] == counted, (sums, counted)
    toll = kept["systoll_box_toll_seconds_total", labels]
    assert abs(sums["toll", "getppid"] / 1e9 - toll) < 1e-6, (sums["toll", "getppid"], toll)
    assert any(name.endswith("parents.c") for name in files), files
    return counted


def run_agent(box, name, *words):
    """Watches a box on which a program runs again and again, for an interval. Returns the agent, which has ended."""
    program = box.build("parents.c", name=name)
    with Agent(box, "--budget", "100%", "--interval", "6s", "--host", "h1", *words, services=[name]) as agent:
        end = time.monotonic() + 40
        # One run could lie between two spans.
        while not agent.tables():
            assert time.monotonic() < end and box.run([program, "4", "20000"]).returncode == 0, agent.said()
            time.sleep(0.1)
        assert agent.end() == 0, agent.said()
    return agent


@watched()
def receivers_get_what_scrapers_get(box):
    with Receiver() as otlp, Receiver() as pprof:
        agent = run_agent(box, "parents-of-push", "--otlp", otlp.url + "/", "--otlp-profiles", "--pprof-push", pprof.url)
    kinds = {(path, headers["Content-Type"]) for path, headers, _ in otlp.requests}
    assert kinds == {(METRICS, "application/x-protobuf"), (PROFILES, "application/x-protobuf")}, kinds
    size = sum(len(body) for body in otlp.bodies(PROFILES)), sum(len(body) for _, _, body in pprof.requests)
    print(f"      {len(otlp.bodies(METRICS))} requests of counters, the last {len(otlp.bodies(METRICS)[-1]) >> 10} KiB; "
          f"{len(otlp.bodies(PROFILES))} of profiles, {size[0] >> 10} KiB; {len(pprof.requests)} of pprof, {size[1] >> 10} KiB")
    counted = check_otlp(otlp, agent.folder, "parents-of-push")
    assert not [of for of in written(agent.folder) if of[0] == "systoll_agent_dropped_messages_total"], agent.said()
    calls = 0
    env = {**box.env, "GOCACHE": GO_CACHE}
    for path, _, body in pprof.requests:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
        assert path.startswith("/ingest?") and query["format"] == ["pprof"], path
        began, ended = int(query["from"][0]), int(query["until"][0])
        assert time.time() - 600 < began < ended <= time.time() + 60, path
        name = re.fullmatch(r"([a-zA-Z0-9._-]+)\{host=h1\}", query["name"][0])
        assert name and gzip.decompress(body), path
        if name[1] == "parents-of-push":
            with open(os.path.join(box.dir, "a.pprof"), "wb") as f:
                f.write(body)
            r = box.run([tool("go"), "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", "-sample_index=calls", f.name], env=env)
            raw = text(box.run([tool("go"), "tool", "pprof", "-raw", f.name], env=env).stdout)
            samples, _, locations = raw.partition("Locations\n")
            used = {place for line in re.findall(r"^ .*: ([\d ]+)$", samples, re.M) for place in line.split()}
            assert used == set(re.findall(r"^ +(\d+): 0x", locations, re.M)), "it has frames of other services"
            calls += sum(int(m[1]) for m in re.finditer(r"^ *(\d+) .* getppid$", text(r.stdout), re.M))
    assert calls == counted, (calls, counted)


# The collector takes three minutes of processor time to build.
@watched(long=True)
def a_real_collector_takes_it(box):
    otelcol = readers.program("otelcol")
    if not otelcol:
        raise Skip("OpenTelemetry's collector is not built: tests/readers.py --collector")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = os.path.join(box.dir, "otelcol.log")
    with Receiver() as behind, open(log, "w") as out:
        config = box.file("otelcol.yaml", COLLECTOR.replace("PORT", str(port)).replace("URL", behind.url))
        collector = box.start([otelcol, "--config", config, "--feature-gates=service.profilesSupport"], stdout=out, stderr=out)

        def said():
            with open(log) as f:
                return f.read()

        try:
            wait_for(lambda: "Everything is ready" in said() or collector.poll() is not None, "the collector starts", limit=30)
            assert collector.poll() is None, said()[-600:]
            agent = run_agent(box, "parents-of-collector", "--otlp", f"http://127.0.0.1:{port}", "--otlp-profiles")
        finally:
            collector.terminate()
            collector.wait(30)
    assert not [of for of in written(agent.folder) if of[0] == "systoll_agent_dropped_messages_total"], agent.said()
    check_otlp(behind, agent.folder, "parents-of-collector")
    assert "systoll.box.calls" in said() and "parents-of-collector" in said(), said()[-600:]


@watched()
def no_receiver_holds_the_agent_up(box):
    """One refuses, one is absent, and one never answers: the agent watches on, counts what is dropped, and ends in time."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        absent = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Receiver(503) as busy, Agent(box, "--budget", "100%", "--interval", "3s", "--otlp", busy.url, "--pprof-push", absent) as agent:
        for what in ("metrics", "pprof"):
            wait_for(lambda what=what: agent.sums("systoll_agent_dropped_messages_total", what=what) > 0, f"{what} are dropped: {agent.said()}")
        wait_for(lambda: len(agent.tables()) > 1, "tables", limit=40)
        assert "the receiver of OTLP does not take messages, which are dropped: it answers 503" in agent.said(), agent.said()
        assert re.search("the receiver of pprof does not take messages, which are dropped: .*refused", agent.said()), agent.said()
        assert agent.said().count("503") == 1, agent.said()
        # Each message is sent three times.
        assert len(busy.requests) >= 3 and busy.requests[0][2] == busy.requests[1][2] == busy.requests[2][2]
        assert agent.end() == 0, agent.said()
    with Receiver(None) as hangs, Agent(box, "--budget", "100%", "--interval", "3s", "--otlp", hangs.url, "--otlp-profiles") as agent:
        wait_for(lambda: hangs.requests, "a request", limit=40)
        before = agent.sums("systoll_agent_watched_seconds_total"), time.monotonic()
        time.sleep(8)
        watched_s = agent.sums("systoll_agent_watched_seconds_total") - before[0]
        assert len(hangs.requests) == 1, len(hangs.requests)
        began = time.monotonic()
        assert agent.end() == 0, agent.said()
        took = time.monotonic() - began
    print(f"      watched {watched_s:.1f} s of {began - before[1]:.1f} s beside a receiver that hangs; ended in {took:.1f} s")
    assert watched_s > 2 and took < 6, (watched_s, took, agent.said())
    dropped = {labels: value for (name, labels), value in written(agent.folder).items() if name == "systoll_agent_dropped_messages_total"}
    assert sum(dropped.values()) >= 2, (dropped, agent.said())


@watched()
def no_network_holds_nothing_up(box):
    """Without a network no receiver can be reached or even found: the agent watches and keeps, says why, and ends in time."""
    box.may("a network of its own is", "unshare", "-n", "true")
    folder, log = os.path.join(box.dir, "kept"), os.path.join(box.dir, "log")

    def said():
        with open(log) as f:
            return f.read()

    with open(log, "w") as out:
        agent = box.start([tool("unshare"), "-n", box.systoll, "agent", "--dir", folder, "--budget", "100%", "--interval", "3s", "--otlp", "http://192.0.2.1:4318",
                           "--otlp-profiles", "--pprof-push", "http://collector.invalid:4040"], stderr=out, stdin=subprocess.DEVNULL)
    try:
        for receiver, why in (("OTLP", "Network is unreachable"), ("pprof", ".*lookup address")):
            wait_for(lambda like=f"the receiver of {receiver} does not take messages, which are dropped: {why}": re.search(like, said()), f"the log names {receiver}", limit=60)
        wait_for(lambda: said().count("watched") >= 2, "two intervals", limit=30)
        began = time.monotonic()
        agent.terminate()
        assert agent.wait(30) == 0 and time.monotonic() - began < 6, said()
    finally:
        agent.kill()
        agent.wait()
    dropped = {dict(labels)["what"] for (name, labels), value in written(folder).items() if name == "systoll_agent_dropped_messages_total" and value}
    assert dropped == {"metrics", "profiles", "pprof"}, dropped
    assert glob.glob(os.path.join(folder, "day=*", "service=*", "host=*", "*.parquet")), said()


@test(users=("nobody",))
def only_plain_http_is_spoken(box):
    for words in (["--otlp", "https://h:4318"], ["--pprof-push", "h:4040"], ["--otlp-profiles"]):
        r = box.run([box.systoll, "agent", "--dir", "x", *words])
        assert r.returncode == 125 and b"Usage" in r.stderr or b"http://HOST" in r.stderr, r.stderr
