"""Asks one question of one engine: the request is JSON on standard input, the answer lines of JSON on standard output.

What `systoll fleet` runs, with `python3 -c`. The first line of an answer names its columns, the others are its rows; a
last line says how many there were. A failure is one line with `error`, and `missing` where a package is.
"""
import sys

# Modules come from where Python keeps them, and never from the folder that this was started in.
sys.path = [place for place in sys.path if place]

import collections
import datetime
import decimal
import glob
import json
import os
import stat
import time

# Engines print to standard output too: that is the answer's alone.
OUT = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

# Files that are left out and told by name.
MOST_TOLD = 20
# Times that a question is asked if files were replaced meanwhile, at most.
TRIES = 3
TEXTS = ("service", "host", "since", "release", "cause", "api", "function", "syscall")


def tell(line):
    OUT.write(json.dumps(line) + "\n")


def plain(value):
    """As JSON holds it without loss: what is no number, text or nothing is told as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return str(value)


def answer(columns, rows, limit):
    tell({"columns": columns})
    count = 0
    for row in rows:
        if limit is not None and count == limit:
            return tell({"rows": count, "more": True})
        tell([plain(value) for value in row])
        count += 1
    tell({"rows": count, "more": False})


def text(value):
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def is_parquet(path):
    """Returns true if a file begins and ends as Parquet's do, or can't be looked at from here: the engine says why."""
    try:
        with open(path, "rb") as f:
            begins = f.read(4)
            size = f.seek(0, 2)
            f.seek(max(0, size - 4))
            return size >= 12 and begins == b"PAR1" == f.read(4)
    except OSError:
        return True


def is_regular(path):
    """Returns true if a path leads to a regular file: to open a FIFO would wait for its writer."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def named(folders):
    """Returns the files that are asked about. Links to folders are not followed, as the engine does not."""
    found = (os.path.join(folder, name) for top in folders for folder, _, names in os.walk(top) for name in names)
    return [path for path in found if path.endswith(".parquet") and is_regular(path)]


def without(folders, left_out):
    """Tells which files are left out, and gives the others."""
    tell({"left_out": [os.fsencode(path).decode("utf-8", "replace") for path in sorted(left_out)[:MOST_TOLD]], "count": len(left_out)})
    return sorted(set(named(folders)) - set(left_out))


def columns_of(path, folders):
    """Returns the names that a file's folders give to columns, as Hive writes them: day=…/service=…/host=…"""
    inside = (os.path.relpath(path, folder) for folder in folders if path.startswith(os.path.join(folder, "")))
    inner = next(inside, path)
    return tuple(part.split("=", 1)[0] for part in inner.split(os.sep)[:-1] if "=" in part)


def misplaced(files, folders):
    """Returns the files whose folders name other columns than most files' folders: engines refuse to read them together."""
    named_by = {path: columns_of(path, folders) for path in files}
    # Of as many files each, those in named folders are recordings.
    usual, _ = max(collections.Counter(named_by.values()).items(), key=lambda of: (of[1], len(of[0])), default=((), 0))
    return [path for path in files if named_by[path] != usual]


def readable(folders):
    """Returns the files that engines can read together: Parquet files in folders alike. Returns nothing if that is all or none."""
    files = named(folders)
    left_out = {path for path in files if not is_parquet(path)}
    left_out.update(misplaced([path for path in files if path not in left_out], folders))
    return without(folders, left_out) if 0 < len(left_out) < len(files) else None


def was_replaced(files, since):
    """Returns true if a file is another one than at that time, or a second before, or is gone."""
    try:
        return any(os.stat(path).st_ctime >= since - 1 for path in files)
    except OSError:
        return True


def unreadable(con, files):
    """Files that can't be read whole, and why."""
    import duckdb

    found = {}
    for path in files:
        try:
            con.execute(f"select count(columns(*)) from read_parquet({text(glob.escape(path))})").fetchall()
        except duckdb.Error as error:
            found[path] = error
    return found


def connected(request):
    import duckdb

    config = {"memory_limit": f"{request['memory_mib']}MB", "preserve_insertion_order": False,
              "autoinstall_known_extensions": False, "autoload_known_extensions": False}
    con = duckdb.connect(config=config)
    try:
        # Each file is read once: what is kept of thousands of them would be most of the memory.
        con.execute("set enable_external_file_cache = false")
    except duckdb.Error:
        # Versions before 1.3 keep nothing.
        pass
    if request["scratch"]:
        con.execute(f"set temp_directory = {text(request['scratch'])}")
    return con


def ask_duckdb(request, asked):
    import duckdb

    con = connected(request)
    good = readable(request["folders"])
    escaped = lambda files: [text(glob.escape(path)) for path in files]
    patterns = escaped(good) if good else [text(os.path.join(glob.escape(folder), "**", "*.parquet")) for folder in request["folders"]]
    began, tries = time.time(), 1
    while True:
        try:
            return query_duckdb(con, request, asked, patterns)
        except duckdb.Error as raised:
            error, files = raised, good or named(request["folders"])
        # DuckDB opens a file twice: the agent may have put the day's next table there in between.
        if tries == TRIES or not was_replaced(files, began):
            break
        con.close()
        con, began, tries = connected(request), time.time(), tries + 1
    # A damaged file is left out; of most it does not say which it was.
    found = unreadable(con, files) if type(error) in (duckdb.Error, duckdb.InvalidInputException, duckdb.IOException) else {}
    if not found:
        raise error
    if len(found) == len(files):
        path, why = next(iter(found.items()))
        raise ValueError(f"{path} can't be read: {why}") from error
    con.close()
    con = connected(request)
    known = set(named(request["folders"])) - set(files)
    query_duckdb(con, request, asked, escaped(without(request["folders"], known | set(found))))


def query_duckdb(con, request, asked, patterns):
    files = ", ".join(patterns)
    only = [f"{column} {sign} {text(asked[name])}" for column, sign, name in
            (("service", "=", "service"), ("host", "=", "host"), ("day", ">=", "since")) if asked[name] is not None]
    where = " where " + " and ".join(only) if only else ""
    con.execute("create table asked (" + ", ".join(f"{name} varchar" for name in TEXTS) + ", core_hour double)")
    con.execute("insert into asked values (" + ", ".join("?" * (len(TEXTS) + 1)) + ")", [asked[name] for name in TEXTS] + [asked["core_hour"]])
    con.execute(f"create view fleet as select * from read_parquet([{files}], hive_partitioning = true, hive_types_autocast = false){where}")
    con.execute('create view runs as select * from fleet where "row" = 0')
    if not request["own"]:
        con.execute("set lock_configuration = true")
    cursor = con.execute(request["sql"])
    names = [column[0] for column in cursor.description or []]

    def rows():
        while some := cursor.fetchmany(1024):
            yield from some

    answer(names, rows(), request["limit"])


def session(master):
    from pyspark.sql import SparkSession

    if master and master.startswith("sc://"):
        return SparkSession.builder.remote(master).getOrCreate()
    builder = SparkSession.builder.appName("systoll fleet").master(master or "local[*]")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if not master or master.startswith("local"):
        # No other box needs to reach Spark's driver.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "8"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def ask_spark(request, asked):
    spark = session(request["master"])
    from pyspark.sql import functions as f
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    fleet, good = None, readable(request["folders"])
    for folder in request["folders"]:
        reader = spark.read.option("pathGlobFilter", "*.parquet")
        below = [path for path in good or [] if path.startswith(os.path.join(folder, ""))]
        if good is not None and not below:
            continue
        some = reader.option("basePath", folder).parquet(*below) if below else reader.parquet(folder)
        fleet = some if fleet is None else fleet.unionByName(some)
    # Spark takes each %XX of a folder's name for a character; it is a byte.
    folded = lambda name: name.encode("utf-8").decode("latin-1")
    for name in ("service", "host"):
        if asked[name] is not None:
            fleet = fleet.where(f.col(name) == f.lit(folded(asked[name])))
        bytes_of = f.decode(f.encode(f.col(name), "ISO-8859-1"), "UTF-8")
        fleet = fleet.withColumn(name, f.when(f.col(name).rlike("^[\\x00-\\xff]*$"), bytes_of).otherwise(f.col(name)))
    if asked["since"] is not None:
        fleet = fleet.where(f.col("day") >= f.lit(asked["since"]))
    fleet.createOrReplaceTempView("fleet")
    fleet.where(f.col("row") == 0).createOrReplaceTempView("runs")
    schema = StructType([StructField(name, StringType()) for name in TEXTS] + [StructField("core_hour", DoubleType())])
    spark.createDataFrame([tuple(asked[name] for name in TEXTS) + (asked["core_hour"],)], schema).createOrReplaceTempView("asked")
    told = spark.sql(request["sql"])
    limit = request["limit"]
    rows = told.limit(limit + 1).collect() if limit is not None else told.toLocalIterator()
    answer(told.columns, rows, limit)
    spark.stop()


def main():
    request = json.load(sys.stdin.buffer)
    try:
        {"duckdb": ask_duckdb, "spark": ask_spark}[request["engine"]](request, request["asked"])
    except ModuleNotFoundError as error:
        tell({"error": str(error), "missing": error.name})
    except Exception as error:
        # Spark's errors go on with the stack of its own process.
        told = str(error).split("\nJVM stacktrace")[0]
        tell({"error": told[:4000]})
    OUT.flush()


main()
