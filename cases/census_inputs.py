"""Makes what the census' commands read: on the spot, the same each time, from things that are in every Debian.

`make(name, folder)` puts the input `name` into `folder` once and returns its path. A function below is an input, its
docstring what it is."""
import csv
import io
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tarfile
import wave
import zipfile

WORDS = [a + b + c for a in ("ba", "co", "de", "fi", "go", "lu", "ma", "pe") for b in ("ri", "no", "ta", "le", "so") for c in ("", "n", "sk", "ter", "ling")]
# Time of all files, 2020-01-01, so that nothing depends on the day.
EPOCH = 1577836800


def make(name, folder):
    """Makes the input unless it is there. Returns its path."""
    path = os.path.join(folder, name)
    if not os.path.lexists(path):
        half = path + ".half"
        shutil.rmtree(half, ignore_errors=True)
        INPUTS[name](half, folder)
        os.rename(half, path)
    return path


def rng(name):
    return random.Random(f"census {name}")


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def prose(r, words):
    """Returns sentences, a dozen words in a line."""
    lines = [" ".join(r.choices(WORDS, k=12)).capitalize() + "." for _ in range(words // 12)]
    return "\n".join(lines) + "\n"


def tree(path, _):
    """2,400 small files of several sorts in 60 folders, three deep, with links"""
    r = rng("tree")
    for d in range(60):
        folder = os.path.join(path, f"a{d % 6}", f"b{d % 12}", f"c{d}")
        for n in range(40):
            sort = ("txt", "c", "py", "json")[n % 4]
            put(os.path.join(folder, f"{r.choice(WORDS)}{n}.{sort}"), prose(r, r.randrange(20, 900)) if sort != "json" else json.dumps({w: n for w in r.choices(WORDS, k=30)}))
        os.symlink(f"../../b{d % 12}", os.path.join(folder, "up"))


def text(path, _):
    """prose, 6 MB in 80,000 lines"""
    put(path, prose(rng("text"), 960_000))


def words(path, _):
    """20,000 words, one a line"""
    put(path, "".join(f"{w}{n}\n" for n, w in enumerate(rng("words").choices(WORDS, k=20_000))))


def numbers(path, _):
    """200,000 numbers, one a line"""
    r = rng("numbers")
    put(path, "".join(f"{r.randrange(1 << 30)}\n" for _ in range(200_000)))


def times(path, _):
    """50,000 times in seconds since 1970, one a line"""
    r = rng("times")
    put(path, "".join(f"{EPOCH + r.randrange(10_000_000)}\n" for _ in range(50_000)))


def log(path, _):
    """a web server's log of 60,000 requests"""
    r = rng("log")
    line = '10.0.{}.{} - - [0{}/Jan/2020:10:{:02}:{:02} +0000] "GET /{} HTTP/1.1" {} {}\n'
    put(path, "".join(line.format(r.randrange(9), r.randrange(250), r.randrange(1, 9), r.randrange(60), r.randrange(60), r.choice(WORDS), r.choice((200, 200, 304, 404)), r.randrange(90_000)) for _ in range(60_000)))


def rows(path, _):
    """a table of 40,000 rows as CSV"""
    r, out = rng("rows"), io.StringIO()
    table = csv.writer(out)
    table.writerow(["id", "name", "city", "amount", "day"])
    table.writerows([n, r.choice(WORDS), r.choice(WORDS), r.randrange(10_000) / 100, f"2020-0{r.randrange(1, 9)}-1{r.randrange(9)}"] for n in range(40_000))
    put(path, out.getvalue())


def records(r, n):
    return [{"id": i, "name": r.choice(WORDS), "tags": r.choices(WORDS, k=4), "at": {"x": r.random(), "y": r.random()}} for i in range(n)]


def document(path, _):
    """15,000 records as JSON"""
    put(path, json.dumps(records(rng("document"), 15_000), indent=1))


def lines(path, _):
    """15,000 records as JSON, one a line"""
    put(path, "".join(json.dumps(x) + "\n" for x in records(rng("document"), 15_000)))


def settings(path, _):
    """1,500 records as YAML"""
    put(path, "".join(f"- id: {x['id']}\n  name: {x['name']}\n  tags: [{', '.join(x['tags'])}]\n  at:\n    x: {x['at']['x']:.4f}\n    y: {x['at']['y']:.4f}\n" for x in records(rng("settings"), 1500)))


def markup(path, _):
    """15,000 records as XML"""
    items = "".join(f'<item id="{x["id"]}"><name>{x["name"]}</name><x>{x["at"]["x"]:.5f}</x></item>\n' for x in records(rng("document"), 15_000))
    put(path, f'<?xml version="1.0"?>\n<items>\n{items}</items>\n')


def page(path, _):
    """a web page of 3,000 paragraphs"""
    r = rng("page")
    body = "".join(f"<h2>{r.choice(WORDS)}</h2><p>{' '.join(r.choices(WORDS, k=30))} <a href='#x'>{r.choice(WORDS)}</a></p>\n" for _ in range(3000))
    put(path, f"<!DOCTYPE html><html><head><title>Census</title></head><body>{body}</body></html>\n")


def notes(path, _):
    """2,000 paragraphs as Markdown"""
    r = rng("notes")
    put(path, "# Census\n\n" + "".join(f"## {r.choice(WORDS)} {n}\n\n{' '.join(r.choices(WORDS, k=40))} `{r.choice(WORDS)}` *{r.choice(WORDS)}*\n\n- {r.choice(WORDS)}\n- {r.choice(WORDS)}\n\n" for n in range(2000)))


def csource(path, _):
    """a C program of 40 files with a makefile"""
    for n in range(40):
        put(os.path.join(path, f"m{n}.h"), f"#ifndef M{n}\n#define M{n}\nint m{n}(int x);\n#endif\n")
        includes = "".join(f'#include "m{i}.h"\n' for i in range(40))
        body = "".join(f"  if (x % {i + 2} == {n % 3}) printf(\"%d\\n\", x * {i});\n" for i in range(30))
        put(os.path.join(path, f"m{n}.c"), f"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n{includes}int m{n}(int x)\n{{\n{body}  return x + {n};\n}}\n")
    calls = "".join(f"  s += m{n}(s);\n" for n in range(40))
    put(os.path.join(path, "main.c"), "".join(f'#include "m{n}.h"\n' for n in range(40)) + f"int main(void)\n{{\n  int s = 1;\n{calls}  return s == 0;\n}}\n")
    put(os.path.join(path, "Makefile"), "OBJ := $(patsubst %.c,%.o,$(wildcard *.c))\nCFLAGS := -O0\nprog: $(OBJ)\n\t$(CC) -o $@ $^\n%.o: %.c $(wildcard *.h)\n\t$(CC) $(CFLAGS) -c -o $@ $<\n")


def pysource(path, _):
    """some packages of Python's own library"""
    own = sysconfig.get_paths()["stdlib"]
    for name in ("email", "http", "json", "logging"):
        shutil.copytree(os.path.join(own, name), os.path.join(path, name), ignore=shutil.ignore_patterns("__pycache__"))


def jssource(path, _):
    """120 modules of JavaScript that use each other, with a package.json"""
    r = rng("jssource")
    for n in range(120):
        uses = "".join(f"import {{ f{i} }} from './f{i}.js';\n" for i in range(max(0, n - 3), n))
        body = "".join(f"  const {w}{k} = x + {k};\n  if ({w}{k} % 3 === 0) {{\n    console.log('{w}', {w}{k});\n  }}\n" for k, w in enumerate(r.choices(WORDS, k=20)))
        calls = "".join(f"  f{i}(x);\n" for i in range(max(0, n - 3), n))
        put(os.path.join(path, f"f{n}.js"), f"{uses}export function f{n}(x) {{\n{body}{calls}  return x;\n}}\n")
    put(os.path.join(path, "index.js"), "import { f119 } from './f119.js';\nf119(1);\n")
    put(os.path.join(path, "package.json"), '{"name": "census", "version": "1.0.0", "private": true, "type": "module"}\n')


def tssource(path, _):
    """80 modules of TypeScript"""
    r = rng("tssource")
    for n in range(80):
        body = "".join(f"  const {w}{k}: number = x + {k};\n  s += {w}{k};\n" for k, w in enumerate(r.choices(WORDS, k=20)))
        put(os.path.join(path, f"f{n}.ts"), f"export interface I{n} {{ a: number; b?: string }}\nexport function f{n}(x: number): I{n} {{\n  let s = 0;\n{body}  return {{ a: s }};\n}}\n")
    put(os.path.join(path, "tsconfig.json"), '{"compilerOptions": {"strict": true, "target": "es2020", "module": "es2020", "types": [], "outDir": "out"}, "include": ["*.ts"]}\n')


def gosource(path, _):
    """a Go module of 30 packages"""
    for n in range(30):
        body = "".join(f"\tif x%{i + 2} == 1 {{\n\t\tfmt.Println(x * {i})\n\t}}\n" for i in range(20))
        put(os.path.join(path, f"p{n}", "p.go"), f"// Package p{n} is one of many.\npackage p{n}\n\nimport \"fmt\"\n\n// F counts.\nfunc F(x int) int {{\n{body}\treturn x + {n}\n}}\n")
    imports = "".join(f'\t"census/p{n}"\n' for n in range(30))
    calls = "".join(f"\ts += p{n}.F(s)\n" for n in range(30))
    put(os.path.join(path, "main.go"), f"package main\n\nimport (\n{imports})\n\nfunc main() {{\n\ts := 1\n{calls}\tprintln(s)\n}}\n")
    put(os.path.join(path, "go.mod"), "module census\n\ngo 1.18\n")


def rssource(path, _):
    """a crate of 30 modules without dependencies"""
    for n in range(30):
        body = "".join(f'    if x % {i + 2} == 1 {{\n        println!("{{}}", x * {i});\n    }}\n' for i in range(20))
        put(os.path.join(path, "src", f"m{n}.rs"), f"pub fn f(x: u64) -> u64 {{\n{body}    x + {n}\n}}\n")
    put(os.path.join(path, "src", "main.rs"), "".join(f"mod m{n};\n" for n in range(30)) + "\nfn main() {\n    let mut s = 1;\n" + "".join(f"    s += m{n}::f(s);\n" for n in range(30)) + '    println!("{s}");\n}\n')
    put(os.path.join(path, "Cargo.toml"), '[package]\nname = "census"\nversion = "0.1.0"\nedition = "2021"\n')


def shsource(path, _):
    """a shell script of 900 lines"""
    r = rng("shsource")
    put(path, "#!/bin/sh\n" + "".join(f'{w}{n}() {{\n\tif [ "$1" = {w} ]; then\n\t\techo "$1"\n\tfi\n\tfor i in 1 2 3; do echo "$i"; done\n}}\n' for n, w in enumerate(r.choices(WORDS, k=150))))


def repo(path, folder):
    """a git repository of 400 files and 80 commits"""
    r = rng("repo")
    env = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": folder}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "Census", f"GIT_{who}_EMAIL": "census@localhost"}

    def git(*argv, when=EPOCH):
        dates = {"GIT_AUTHOR_DATE": f"{when} +0000", "GIT_COMMITTER_DATE": f"{when} +0000"}
        subprocess.run(["git", "-C", path, *argv], env=env | dates, check=True, capture_output=True)

    os.makedirs(path)
    git("init", "-q")
    names = [f"d{n % 20}/f{n}.txt" for n in range(400)]
    for name in names:
        put(os.path.join(path, name), prose(r, 300))
    for n in range(80):
        for name in r.sample(names, 8):
            put(os.path.join(path, name), prose(r, 300))
        git("add", "-A", when=EPOCH + n * 3600)
        git("commit", "-qm", f"change {n}", when=EPOCH + n * 3600)


def archive(path, folder):
    """the tree as a tar archive"""
    with tarfile.open(path, "w") as t:
        t.add(make("tree", folder), "tree")


def gzipped(path, folder):
    """the tree as a compressed tar archive"""
    with tarfile.open(path, "w:gz") as t:
        t.add(make("tree", folder), "tree")


def zipped(path, folder):
    """the tree as a zip archive"""
    top = make("tree", folder)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for d, _, names in os.walk(top):
            for name in names:
                z.write(os.path.join(d, name), os.path.relpath(os.path.join(d, name), folder))


def database(path, _):
    """an SQLite database of 40,000 rows"""
    r = rng("database")
    db = sqlite3.connect(path)
    db.execute("create table t(id integer primary key, name text, amount real)")
    db.executemany("insert into t values(?, ?, ?)", [(n, r.choice(WORDS), r.random()) for n in range(40_000)])
    db.commit()
    db.close()


def statements(path, _):
    """2,000 inserts as SQL"""
    r = rng("statements")
    put(path, "create table t(id integer, name text);\n" + "".join(f"insert into t values({n}, '{r.choice(WORDS)}');\n" for n in range(400)))


def picture(path, _):
    """a picture of 1,000 by 800 pixels, as PPM"""
    r = rng("picture")
    with open(path, "wb") as f:
        f.write(b"P6\n1000 800\n255\n" + bytes((x * y // 64 + r.randrange(6)) & 255 for y in range(800) for x in range(3000)))


def sound(path, _):
    """twenty seconds of sound, as WAV"""
    r = rng("sound")
    with wave.open(path, "wb") as w:
        w.setparams((2, 2, 44100, 0, "NONE", ""))
        w.writeframes(bytes(r.randrange(256) for _ in range(44100 * 4 * 20)))


def graph(path, _):
    """a graph of 150 nodes, as dot"""
    r = rng("graph")
    put(path, "digraph g {\n" + "".join(f"n{r.randrange(150)} -> n{n};\n" for n in range(150)) + "}\n")


INPUTS = {name: f for name, f in list(globals().items()) if callable(f) and f.__doc__ and f.__module__ == __name__ and name not in ("make", "prose")}

if __name__ == "__main__":
    for which in sys.argv[2:] or INPUTS:
        print(make(which, os.path.abspath(sys.argv[1])))
