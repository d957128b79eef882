//! Languages in which a case can be written: names, and commands that build and run it.

/// A language in which cases can be written.
pub(super) struct Language {
    /// Name of the language in causes' files.
    pub name: &'static str,
    /// Prefix of the names of the language's cases.
    pub prefix: &'static str,
    /// Name of the language in a case's `lang`.
    pub shown: &'static str,
    /// Ending of source files.
    pub ending: &'static str,
    /// Program without which the language's cases are skipped.
    pub needs: &'static str,
    /// Command that builds `NAME.ENDING`; `{}` is replaced by NAME. Empty for an interpreted language.
    pub builds: &'static str,
    /// Command that runs the built program.
    pub runs: &'static str,
    /// Source of a program that repeats an empty loop and prints the number of repetitions. `{}` is replaced by a
    /// comment that marks the place for the calls.
    pub source: &'static str,
}

const fn interpreted(name: &'static str, prefix: &'static str, shown: &'static str, source: &'static str) -> Language {
    Language { name, prefix, shown, ending: prefix, needs: name, builds: "", runs: "", source }
}

/// All languages in which cases can be written.
pub(super) const LANGUAGES: &[Language] = &[
    Language {
        builds: "gcc -O2 -g -o bin/{} {}.c",
        runs: "./bin/{}",
        needs: "gcc",
        ..interpreted(
            "c",
            "c",
            "C",
            "#include <stdio.h>\n#include <stdlib.h>\n\nint main(int argc, char **argv) {\n  int n = argc > 1 ? atoi(argv[1]) : 1000;\n  \
             for (int i = 0; i < n; i++) {\n    // {}\n  }\n  printf(\"%d\\n\", n);\n}\n",
        )
    },
    Language {
        builds: "g++ -std=c++17 -O2 -g -o bin/{} {}.cpp",
        runs: "./bin/{}",
        needs: "g++",
        ..interpreted(
            "c++",
            "cpp",
            "C++",
            "#include <cstdlib>\n#include <iostream>\n\nint main(int argc, char **argv) {\n  int n = argc > 1 ? std::atoi(argv[1]) : 1000;\n  \
             for (int i = 0; i < n; i++) {\n    // {}\n  }\n  std::cout << n << '\\n';\n}\n",
        )
    },
    Language {
        builds: "rustc -O -g -o bin/{} {}.rs",
        runs: "./bin/{}",
        needs: "rustc",
        ..interpreted(
            "rust",
            "rs",
            "Rust",
            "fn main() {\n    let n: u32 = std::env::args().nth(1).map_or(1000, |n| n.parse().expect(\"a number\"));\n    \
             for _ in 0..n {\n        // {}\n    }\n    println!(\"{n}\");\n}\n",
        )
    },
    Language {
        builds: "GO111MODULE=off GOFLAGS= go build -o bin/{} {}.go",
        runs: "./bin/{}",
        ..interpreted(
            "go",
            "go",
            "Go",
            "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"strconv\"\n)\n\nfunc main() {\n\tn, _ := strconv.Atoi(os.Args[1])\n\t\
             for i := 0; i < n; i++ {\n\t\t// {}\n\t}\n\tfmt.Println(n)\n}\n",
        )
    },
    Language {
        needs: "/usr/bin/python3",
        ..interpreted(
            "python",
            "py",
            "Python",
            "import sys\n\nn = int(sys.argv[1])\nfor i in range(n):\n    pass  # {}\nprint(n)\n",
        )
    },
    interpreted("ruby", "rb", "Ruby", "n = ARGV[0].to_i\nn.times do\n  # {}\nend\nputs n\n"),
    interpreted(
        "perl",
        "pl",
        "Perl",
        "use strict;\nmy $n = shift;\nfor my $i (1 .. $n) {\n    # {}\n}\nprint \"$n\\n\";\n",
    ),
    interpreted(
        "php",
        "php",
        "PHP",
        "<?php\n$n = (int)$argv[1];\nfor ($i = 0; $i < $n; $i++) {\n    // {}\n}\necho \"$n\\n\";\n",
    ),
    Language {
        needs: "node",
        prefix: "node",
        ..interpreted(
            "javascript",
            "js",
            "Node",
            "const n = Number(process.argv[2])\nfor (let i = 0; i < n; i++) {\n  // {}\n}\nconsole.log(n)\n",
        )
    },
    Language {
        prefix: "bash",
        ..interpreted("bash", "sh", "bash", "n=$1\nfor ((i = 0; i < n; i++)); do\n  : # {}\ndone\necho \"$n\"\n")
    },
    Language {
        needs: "sh",
        ..interpreted("shell", "sh", "sh", "n=$1 i=0\nwhile [ $i -lt $n ]; do\n  i=$((i + 1)) # {}\ndone\necho $n\n")
    },
];
