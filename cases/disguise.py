"""Ways to disguise scripts and Go programs for vary.py, and diseases told in another language.

A disguise changes what a rule must not rely on: names, places, the way by which the code is reached. What the
program does stays.
"""

# Ways to run a script: each hides where its text is found, the interpreter's options apart. {script} is its new name.
# name -> (a file to write beside it, that file's text, the command's words before the script's arguments)
SCRIPTS = {
    ".py": {
        "module": ("gnu.py", "import runpy, sys\n\n\nclass Herd:\n    def graze(self, path):\n        sys.argv[0:1] = []\n        runpy.run_path(path, run_name='__main__')\n\n\nHerd().graze(sys.argv[1])\n", ["gnu.py", "{script}"]),
        "exec-lambda": ("gnu.py", "import sys\nsys.argv[0:1] = []\nrun = lambda path: exec(compile(open(path).read(), path, 'exec'), {'__name__': '__main__'})\nrun(sys.argv[0])\n", ["gnu.py", "{script}"]),
        "minus-m": (None, "", ["-m", "{stem}"]),
        "minus-c": (None, "", ["-c", "import sys; sys.argv[0:1] = []; exec(compile(open(sys.argv[0]).read(), sys.argv[0], 'exec'))", "{script}"]),
    },
    ".rb": {
        "method": ("gnu.rb", "class Herd\n  def graze(path) = load(path)\nend\nHerd.new.graze(File.expand_path(ARGV.shift))\n", ["gnu.rb", "{script}"]),
        "eval-lambda": ("gnu.rb", "path = ARGV.shift\nrun = ->(text) { eval(text, TOPLEVEL_BINDING, path) }\nrun.call(File.read(path))\n", ["gnu.rb", "{script}"]),
    },
    ".pl": {
        "sub": ("gnu.pl", "package Herd;\nsub graze { my ($self, $path) = @_; do $path; die $@ if $@ }\npackage main;\nmy $path = './' . shift @ARGV;\n(bless {}, 'Herd')->graze($path);\n", ["gnu.pl", "{script}"]),
        "eval-text": ("gnu.pl", "my $path = shift @ARGV;\nopen(my $in, '<', $path) or die;\nmy $text = do { local $/; <$in> };\nclose $in;\nmy $run = sub { eval $_[0]; die $@ if $@ };\n$run->($text);\n", ["gnu.pl", "{script}"]),
    },
    ".js": {
        "required": ("gnu.js", "class Herd {\n  graze(path) { process.argv.splice(1, 1); require(path); }\n}\nnew Herd().graze(require('path').resolve(process.argv[2]));\n", ["gnu.js", "{script}"]),
        "eval-arrow": ("gnu.js", "const path = process.argv[2];\nprocess.argv.splice(1, 1);\nglobalThis.require = require;\nconst run = (text) => (0, eval)(text);\nrun(require('fs').readFileSync(path, 'utf8'));\n", ["gnu.js", "{script}"]),
    },
    ".sh": {
        "function": ("gnu.sh", "path=$1\nshift\ngraze() { . \"./$path\"; }\ngraze \"$@\"\n", ["gnu.sh", "{script}"]),
        "eval-text": (None, "", ["-c", "path=$1; shift; eval \"$(cat \"$path\")\"", "gnu", "{script}"]),
    },
}

# Commands that take the place of `go build`.
GO = {
    "stripped": 'go build -ldflags "-s -w"',
    "unoptimised": 'go build -gcflags "-N -l"',
    "renamed": "go build",
}

# Diseases of other cases, told in another language that makes the same call: name -> (cause, APIs of which one must be
# named (none where a pointer leaves no name), focus calls, how many, file, its text, command)
N = 6000
ABROAD = {
    "ctypes-localtime": ("tz-unset", [], ["newfstatat"], N, "yak.py", f"""import ctypes
libc = ctypes.CDLL(None)
when = ctypes.c_long(86400)
libc.localtime.restype = ctypes.c_void_p
for _ in range({N}):
    libc.localtime(ctypes.byref(when))
""", ["/usr/bin/python3", "yak.py"]),
    "ctypes-getpid": ("identity-per-op", ["getpid"], ["getpid"], 30_000, "yak.py", """import ctypes
libc = ctypes.CDLL(None)
log = lambda: libc.getpid()
for _ in range(30_000):
    log()
""", ["/usr/bin/python3", "yak.py"]),
    "fiddle-mktime": ("tz-unset", ["tzset", "mktime", "localtime"], ["newfstatat"], N, "yak.rb", f"""require 'fiddle'
libc = Fiddle.dlopen(nil)
tzset = Fiddle::Function.new(libc['tzset'], [], Fiddle::TYPE_VOID)
{N}.times {{ tzset.call }}
""", ["ruby", "--disable-gems", "yak.rb"]),
    "perl-syscall-getpid": ("identity-per-op", ["syscall"], ["getpid"], 30_000, "yak.pl", """my $n = 0;
for (1 .. 30_000) { $n += syscall(39) }
print $n > 0 ? "ok\\n" : "no\\n";
""", ["perl", "yak.pl"]),
    "perl-syscall-getcwd": ("getcwd-per-op", ["syscall"], ["getcwd"], 20_000, "yak.pl", """my $path = ' ' x 4096;
for (1 .. 20_000) { syscall(79, $path, 4096) > 0 or die }
""", ["perl", "yak.pl"]),
    "go-syscall-getpid": ("identity-per-op", ["syscall.Getpid"], ["getpid"], 100_000, "yak.go", """package main

import "syscall"

func main() {
	for i := 0; i < 100000; i++ {
		syscall.Getpid()
	}
}
""", ["./yak"]),
    "go-syscall-read": ("tiny-io", ["syscall.Read", "syscall"], ["read"], 20_000, "yak.go", """package main

import "syscall"

func main() {
	fd, err := syscall.Open("/usr/bin/perl", syscall.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	one := make([]byte, 1)
	for i := 0; i < 20000; i++ {
		syscall.Read(fd, one)
	}
}
""", ["./yak"]),
    "pointer-localtime": ("tz-unset", [], ["newfstatat"], 20_000, "yak.c", """#include <time.h>
static struct tm *(*const ask[])(const time_t *) = { localtime, localtime };
int main(void) {
    time_t t = 86400;
    for (int i = 0; i < 20000; i++) ask[i & 1](&t);
}
""", ["sh", "-c", "./yak; true"]),
}
# Tools that a source's build needs, and the command that builds it.
BUILDS = {".go": (["go"], "GO111MODULE=off GOFLAGS= go build -o yak yak.go"), ".c": (["gcc"], "gcc -O2 -o yak yak.c")}
