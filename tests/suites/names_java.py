"""Names in Java without any flag, tested like Python and Ruby in names_scripts.

SYSTOLL_TEST_JAVAS may hold other Javas' folders, with colons between them: 11, 21 and 25 to 28 have been run so,
beside the 17 that is installed."""
import os
import subprocess

from harness import BOTH, test, tool
from suites.names_scripts import CALLS, calls_at

CASES = []
ASK = 'new java.io.File("/etc/hostname").length()'


def case(name, function, body, flags=()):
    """Adds a class; its line with the word HERE asks for the size of a file more often than any other line does."""
    CASES.append((name, function, body, flags))


case("Deep", "Deep.leaf", f"""
class Deep {{
  static long leaf() {{
    long sum = 0;
    for (int i = 0; i < {CALLS}; i++)
      sum += {ASK}; // HERE
    return sum;
  }}
  static long render(int n) {{ return n > 0 ? render(n - 1) : leaf(); }}
  public static void main(String[] a) {{ render(60); }}
}}
""")
HOT = f"""
class Hot {{
  static long leaf(int n) {{
    return n +
      {ASK}; // HERE
  }}
  static long middle(int n) {{
    long sum = 0;
    for (int i = 0; i < 3; i++) sum += leaf(i);
    return sum;
  }}
  public static void main(String[] a) {{
    long sum = 0;
    for (int i = 0; i < 8000; i++) sum += middle(i);
  }}
}}
"""
case("Hot", "Hot.leaf", HOT)
case("Interpreted", "Interpreted.leaf", HOT.replace("Hot", "Interpreted"), flags=("-Xint",))
case("Compiled", "Compiled.leaf", HOT.replace("Hot", "Compiled"), flags=("-Xcomp", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,Compiled::*", "-XX:CompileCommand=compileonly,java.io.*::*"))
case("FirstCompiler", "FirstCompiler.leaf", HOT.replace("Hot", "FirstCompiler"), flags=("-XX:TieredStopAtLevel=1",))
case("SecondCompiler", "SecondCompiler.leaf", HOT.replace("Hot", "SecondCompiler"), flags=("-XX:-TieredCompilation",))
case("Lambda", "Lambda.lambda$main$0", f"""
import java.util.function.LongSupplier;
class Lambda {{
  static long times(int n, LongSupplier f) {{
    long sum = 0;
    for (int i = 0; i < n; i++) sum += f.getAsLong();
    return sum;
  }}
  public static void main(String[] a) {{
    times({CALLS}, () ->
      {ASK}); // HERE
  }}
}}
""")
case("Inner", "Inner$Cart.total", f"""
class Inner {{
  class Cart {{
    long total() {{
      return {ASK}; // HERE
    }}
  }}
  public static void main(String[] a) {{
    Cart cart = new Inner().new Cart();
    for (int i = 0; i < {CALLS}; i++) cart.total();
  }}
}}
""")
case("Constructor", "Constructor.<init>", f"""
class Constructor {{
  final long size;
  Constructor() {{
    size = {ASK}; // HERE
  }}
  public static void main(String[] a) {{
    for (int i = 0; i < {CALLS}; i++) new Constructor();
  }}
}}
""")
case("Initializer", "Initializer.<clinit>", f"""
class Initializer {{
  static long sum;
  static {{
    for (int i = 0; i < {CALLS}; i++)
      sum += {ASK}; // HERE
  }}
  public static void main(String[] a) {{ }}
}}
""")
case("Caught", "Caught.careful", f"""
class Caught {{
  static long careful() {{
    try {{
      throw new RuntimeException("x");
    }} catch (RuntimeException e) {{
      return {ASK}; // HERE
    }}
  }}
  public static void main(String[] a) {{
    for (int i = 0; i < {CALLS}; i++) careful();
  }}
}}
""")
case("Threads", "Threads.work", f"""
class Threads {{
  static void work() {{
    for (int i = 0; i < {CALLS}; i++)
      {ASK}; // HERE
  }}
  public static void main(String[] a) throws Exception {{
    Thread[] threads = new Thread[3];
    for (int i = 0; i < 3; i++) (threads[i] = new Thread(Threads::work)).start();
    for (Thread t : threads) t.join();
  }}
}}
""")
case("Pool", "Pool.work", f"""
import java.util.concurrent.*;
class Pool {{
  static long work() {{
    return {ASK}; // HERE
  }}
  public static void main(String[] a) throws Exception {{
    ExecutorService pool = Executors.newFixedThreadPool(2);
    for (int i = 0; i < {CALLS}; i++) pool.submit(Pool::work);
    pool.shutdown();
  }}
}}
""")
case("Streams", "Streams.size", f"""
import java.util.stream.*;
class Streams {{
  static long size(int n) {{
    return n +
      {ASK}; // HERE
  }}
  public static void main(String[] a) {{
    IntStream.range(0, {CALLS}).mapToLong(Streams::size).sum();
  }}
}}
""")
case("Reflected", "Reflected.ask", f"""
class Reflected {{
  public static long ask() {{
    return {ASK}; // HERE
  }}
  public static void main(String[] a) throws Exception {{
    java.lang.reflect.Method method = Reflected.class.getMethod("ask");
    for (int i = 0; i < {CALLS}; i++) method.invoke(null);
  }}
}}
""")
case("LongTable", "LongTable.far", "class LongTable {\n  static long far(int x) {\n    long v = x;\n" + "    v = v * 31 + 7;\n" * 900 + f"""
    v += {ASK}; // HERE
    return v;
  }}
  public static void main(String[] a) {{
    for (int i = 0; i < {CALLS}; i++) far(i);
  }}
}}
""")


def wrong(box, java, name, function, body, flags):
    """Returns what a case's report says instead of the truth; None if it says the truth."""
    line = next(n for n, text in enumerate(body.split("\n"), 1) if "HERE" in text)
    doc, r = box.report([java, *flags, "-cp", box.dir, name])
    assert r.returncode == 0, f"{name}: {r.stderr[:300]} {r.stderr[-300:]}"
    # The call's name depends on the C library that the runtime was built with.
    rows = [r for r in doc["rows"] if r["syscall"] in ("stat", "newfstatat")]
    if not rows:
        return "no calls seen"
    user = max(rows, key=lambda r: r["calls"])["user"] or {}
    told = (user.get("file"), user.get("line"), user.get("function"))
    truth = (f"{name}.java", line, function)
    return None if told == truth else f"{told} and not {truth}; {doc['problems']}"


def hold(box, java, javac):
    files = []
    for name, _, body, _ in CASES:
        files.append(os.path.join(box.dir, f"{name}.java"))
        with open(files[-1], "w", encoding="utf-8") as f:
            f.write(body)
    subprocess.run([javac, "-d", box.dir, *files], check=True, timeout=300)
    for file in os.listdir(box.dir):
        os.chmod(os.path.join(box.dir, file), 0o644)
    failed = {}
    for name, function, body, flags in CASES:
        why = wrong(box, java, name, function, body, flags)
        if why:
            failed[name] = why
    print(f"      {len(CASES) - len(failed)} of {len(CASES)} programs named by their line: {java}")
    assert not failed, failed


@test(users=("nobody",), backends=BOTH)
def lines_of_java(box):
    others = filter(None, os.environ.get("SYSTOLL_TEST_JAVAS", "").split(":"))
    for java, javac in [(tool("java"), tool("javac")), *((f"{j}/bin/java", f"{j}/bin/javac") for j in others)]:
        hold(box, java, javac)


@test(users=("nobody",), backends=BOTH)
def callers_of_javas_executors(box):
    """A pool's thread that calls a method of Java's library is told with the line that gave the pool its task."""
    body = f"""
import java.io.File;
import java.util.concurrent.*;
class Asks {{
  public static void main(String[] a) throws Exception {{
    File file = new File("/etc/hostname");
    ExecutorService pool = Executors.newFixedThreadPool(2);
    for (int i = 0; i < {4 * CALLS}; i++)
      pool.submit(file::length).get(); // HERE
    pool.shutdown();
  }}
}}
"""
    line = next(n for n, text in enumerate(body.split("\n"), 1) if "HERE" in text)
    file = box.file("Asks.java", body)
    subprocess.run([tool("javac"), "-d", box.dir, file], check=True, timeout=300)
    os.chmod(os.path.join(box.dir, "Asks.class"), 0o644)
    asked, made = calls_at(box, [tool("java"), "-cp", box.dir, "Asks"], line, ("stat", "newfstatat"))
    assert asked > made > 4 * CALLS * 0.9, (asked, made)
