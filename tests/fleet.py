#!/usr/bin/env python3
"""Makes a fleet that never was out of real runs, for measuring `systoll fleet` and for its tests.

  fleet.py --systoll PATH FOLDER                     500 hosts, 20 services on each, a week: 70,000 files
  fleet.py --systoll PATH --hosts 12 --services 3 --days 3 FOLDER
  fleet.py --systoll PATH --agent --services 50 FOLDER   the same out of tables of an agent, as root (see below)
  fleet.py --systoll PATH --measure FOLDER           asks it all questions, and tells time and memory

Each service is a program that is really run and recorded, by `systoll run --save-to`, in each state that matters. A host's
run of a day is one of these with all its figures by up to a fifth more or less. What is planted:

  checkout  has asked for a file that is not there, four times a request, since release 2.4.0: on every host from
            half of its days on
  ODD_ZONE  runs without TZ where all others have one, so that its services pay for it where they ask for local time
  ODD_CLOCK has a clock that the vDSO can't read

With --agent, services are copies of one program, which all run here for a few seconds while `systoll agent` watches the box, and
the first of them, PLANTED, lacks TZ, on every host and day. --files N makes N tables a day, as an agent that is started so often.
"""
import argparse
import glob
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import readers

FIRST_DAY = 1_795_305_600  # 2026-11-22, UTC
PLANTED, OLD, NEW = "checkout", "2.3.1", "2.4.0"
ODD_ZONE, ODD_CLOCK = 7, 9
QUESTIONS = ("expensive", "new", "odd-hosts", "history", "savings", "services", "releases", "totals")
# The services' real programs: served.c, which answers so many requests, or a program of the machine.
SERVICES = {
    PLANTED: 3000, "search": 2000, "mail": 1000, "login": 1500, "pictures": 800,
    "lister": ["ls", "-lR", "/etc"], "finder": ["find", "/etc", "-name", "*.conf"], "packer": ["tar", "cf", "/dev/null", "/etc/ssl"],
    "sorter": ["sort", "/etc/services"], "counter": ["wc", "/etc/services"], "printer": ["cat", "/etc/services"],
    "matcher": ["grep", "-r", "localhost", "/etc/ssl"], "hasher": ["sha256sum", "/etc/services"], "shell": ["sh", "-c", "for i in 1 2 3; do date; done"],
    "scripts": ["perl", "-e", "localtime(time) for 1..500"], "names": ["id"], "sizes": ["du", "/etc"], "dates": ["date"],
    "editor": ["sed", "s/a/b/", "/etc/services"], "columns": ["awk", "{print $1}", "/etc/services"],
}


def recorded(systoll, folder, service, command, release, zone):
    """Runs a program and adds it to `folder`."""
    env = {name: value for name, value in os.environ.items() if name != "TZ"}
    if zone:
        env["TZ"] = zone
    r = subprocess.run([systoll, "run", "-q", "--save-to", folder, "--service", service, "--release", release, "--host", "seed", "--", *command],
                       env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    # systoll fails with 125; other codes are the program's own.
    if r.returncode == 125:
        sys.exit(r.stderr)


def seeds(systoll, folder, services):
    """Makes a recording of each state: each service with TZ and without, and the planted one healthy and sick."""
    program = os.path.join(folder, "served")
    subprocess.run(["cc", "-O1", "-g", "-o", program, os.path.join(HERE, "programs", "served.c")], check=True)
    for service in services:
        what = SERVICES[service]
        for zone in ("UTC", None):
            for release in (OLD, NEW):
                sick = ["sick"] if service == PLANTED and release == NEW else []
                command = [program, str(what), *sick] if isinstance(what, int) else what
                recorded(systoll, os.path.join(folder, "seeds"), service, command, release, zone)


# Rows of a seed's run with the figures of one host's day. One factor varies every figure of a run, so that shares stay.
VARIED = """
select seed.* exclude (day, service, host) replace (
    cast(calls * factor as bigint) as calls, cast(errors * factor as bigint) as errors, cast(bytes * factor as bigint) as bytes,
    cast(toll_ns * factor as bigint) as toll_ns, cast(waited_ns * factor as bigint) as waited_ns, cast(elapsed_ns * factor as bigint) as elapsed_ns,
    cast(needless_calls * factor as bigint) as needless_calls, cast(needless_ns * factor as bigint) as needless_ns,
    cast(wall_ns * factor as bigint) as wall_ns, cast(user_ns * factor as bigint) as user_ns, cast(sys_ns * factor as bigint) as sys_ns,
    cast(own_cpu_ns * factor as bigint) as own_cpu_ns,
    one.run as run, one.started_unix as started_unix, one.host as node,
    case when one.number = {odd_clock} then 'hpet' else 'kvm-clock' end as clock_source),
  one.day, seed.service, one.host
from instances one join seeds seed on seed.service = one.service and {which}
"""
# Seeds of a run's release and zone, and those of an agent, which knows neither.
OF_RUN, OF_AGENT = "seed.release = one.release and (seed.time_zone = '(unset)') = one.is_odd", "true"


def watched(systoll, folder, services):
    """Runs `services` programs beside an agent that writes its tables to `folder`/seeds. Returns the services' names."""
    names = [PLANTED, *(f"service-{n:02}" for n in range(1, services))]
    env = {name: value for name, value in os.environ.items() if name != "TZ"}
    running = []
    try:
        for name in names:
            program = os.path.join(folder, name)
            subprocess.run(["cc", "-O1", "-g", "-o", program, os.path.join(HERE, "programs", "served.c")], check=True)
            own = env if name == PLANTED else {**env, "TZ": "UTC"}
            running.append(subprocess.Popen(["nice", "-n", "19", program, "1000000000"], env=own, stdout=subprocess.DEVNULL))
        subprocess.run([systoll, "agent", "--dir", os.path.join(folder, "seeds"), "--budget", "100%", "--for", "15s"], check=True)
    finally:
        for process in running:
            process.kill()
            process.wait()
    return names


def multiply(folder, seeds_folder, hosts, services, days, files=1, which=OF_RUN):
    """Writes the fleet. DuckDB does the copying, one service's day at a time, because each open file takes it a MiB."""
    import duckdb
    con = duckdb.connect(config={"memory_limit": "2GB"})
    con.execute(f"create table seeds as select * from read_parquet('{seeds_folder}/**/*.parquet', hive_partitioning = true, hive_types_autocast = false)")
    for day, part, service in itertools.product(range(days), range(files), services):
        con.execute(f"""create or replace table instances as
            select number, 'h' || lpad(number::varchar, 4, '0') as host, service, number = {ODD_ZONE} as is_odd,
              case when {day} >= {days} // 2 then '{NEW}' else '{OLD}' end as release,
              strftime(make_timestamp(({FIRST_DAY} + {day} * 86400) * 1000000::bigint), '%Y-%m-%d') as day,
              cast({FIRST_DAY} + {day} * 86400 + ({part} * 80000 + hash(number, service) % 80000) // {files} as bigint) as started_unix,
              md5(number || service || {day} || '/{part}') as run,
              0.8 + 0.4 * ((hash(service, number, {day}, {part}) % 1000)::double / 1000) as factor
            from range({hosts}) t(number), (select '{service}' as service)""")
        con.execute(f"copy ({VARIED.format(odd_clock=ODD_CLOCK, which=which)} order by one.service, one.host) to '{folder}' "
                    "(format parquet, compression gzip, partition_by (day, service, host), filename_pattern 'run_{uuid}', overwrite_or_ignore)")


def simulate(systoll, folder, hosts=500, services=20, days=7, agent=False, files=1):
    """Makes the fleet in `folder`; this Python must have DuckDB (readers.python)."""
    os.makedirs(folder, exist_ok=True)
    chosen = list(SERVICES)[:services]
    work = tempfile.mkdtemp()
    try:
        if agent:
            chosen = watched(systoll, work, services)
        else:
            seeds(systoll, work, chosen)
        multiply(folder, os.path.join(work, "seeds"), hosts, chosen, days, files, OF_AGENT if agent else OF_RUN)
    finally:
        shutil.rmtree(work)


def measured(argv):
    """Returns a command's time in seconds, and the memory of its largest process in MiB."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    r = subprocess.run(["/usr/bin/env", "python3", "-c", "import os, resource, subprocess, sys; c = subprocess.run(sys.argv[1:]).returncode; "
                        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=sys.stderr); sys.exit(c)", *argv],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode:
        sys.exit(r.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"s": time.monotonic() - start, "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "mib": int(r.stderr.splitlines()[-1]), "answer": json.loads(r.stdout)["rows"]}


def measure(systoll, folder, engines):
    files = sum(1 for _ in glob.iglob(os.path.join(glob.escape(folder), "**", "*.parquet"), recursive=True))
    print(f"{files} files")
    for question in QUESTIONS:
        told = {engine: measured([systoll, "fleet", "--engine", engine, "--json", folder, question]) for engine in engines}
        same = all(one["answer"] == told[engines[0]]["answer"] for one in told.values())
        figures = "  ".join(f"{engine} {one['s']:.1f} s, {one['cpu_s']:.1f} s of processor, {one['mib']} MiB" for engine, one in told.items())
        print(f"{question:10} {len(told[engines[0]]['answer']):5} lines  {figures}  {'same answers' if same else 'DIFFERENT ANSWERS'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systoll", required=True)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--services", type=int, default=20)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--agent", action="store_true")
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--engines", default="duckdb,spark")
    parser.add_argument("folder")
    args = parser.parse_args()
    if args.measure:
        return measure(args.systoll, args.folder, args.engines.split(","))
    try:
        import duckdb  # noqa: F401
    except ImportError:
        python = readers.python()
        if not python or os.environ.get("FLEET_AGAIN"):
            sys.exit("duckdb is not installed: tests/readers.py")
        os.execve(python, [python, *sys.argv], {**os.environ, "FLEET_AGAIN": "1"})
    simulate(args.systoll, args.folder, args.hosts, args.services, args.days, args.agent, args.files)


if __name__ == "__main__":
    main()
