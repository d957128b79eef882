"""Names in Perl's and PHP's scripts, tested like Python and Ruby in names_scripts.

Perl 5.32, 5.40 and 5.42, PHP 7.4 and 8.4 were tried by hand, with the same scripts. Other versions have not been run."""
import subprocess

from harness import BOTH, test, tool
from suites.names_scripts import CALLS, hold

PERL, PHP = [], []


def perl(name, function, body, file=None, run=None, shown=None):
    file = file or f"{name}.pl"
    PERL.append((name, "perl", function, body, file, run, shown or file))


def php(name, function, body, file=None, run=None, shown=None):
    file = file or f"{name}.php"
    PHP.append((name, "php", function, "<?php\n" + body, file, run, shown or file))


perl("three_deep_in_perl", "main::leaf", f"""
sub leaf {{
  for my $i (1..{CALLS}) {{
    getppid(); # HERE
  }}
}}
sub render {{ leaf() }}
sub main {{ render() }}
main();
""")
perl("package_in_perl", "Shop::Cart::total", f"""
package Shop::Cart;
sub new {{ bless {{}}, shift }}
sub total {{
  my $self = shift;
  return
    getppid(); # HERE
}}
package main;
my $cart = Shop::Cart->new;
$cart->total for 1..{CALLS};
""")
perl("scripts_own_level_in_perl", "main", f"""
my $i = 0;
while ($i++ < {CALLS}) {{
  getppid(); # HERE
}}
""")
perl("anonymous_in_perl", "main::__ANON__", f"""
sub each_of {{ my ($f) = @_; $f->($_) for 1..{CALLS}; }}
each_of(sub {{
  my $n = shift;
  getppid(); # HERE
}});
""")
perl("sort_in_perl", "main::rank", f"""
sub rank {{
  my @sorted = sort {{
    getppid(); # HERE
    $a <=> $b
  }} reverse 1..{CALLS};
}}
rank();
""")
perl("die_in_perl", "main::careful", f"""
sub careful {{
  for (1..{CALLS}) {{
    eval {{ die "x\\n" }};
    if ($@) {{
      getppid(); # HERE
    }}
  }}
}}
careful();
""")
perl("aliased_in_perl", "Tools::ask", f"""
package Tools;
sub ask {{
  getppid(); # HERE
}}
package main;
*question = \\&Tools::ask;
question() for 1..{CALLS};
""")
perl("overloaded_in_perl", "Num::plus", f"""
package Num;
use overload '+' => \\&plus;
sub plus {{
  getppid(); # HERE
  return $_[0];
}}
package main;
my $n = bless [], 'Num';
$n = $n + 1 for 1..{CALLS};
""")
perl("through_the_library_in_perl", "main::wanted", f"""
use List::Util qw(first);
sub wanted {{
  getppid(); # HERE
  return 0;
}}
first {{ wanted() }} 1..{CALLS};
""")
# A text that is evaluated has no file, so the line that evaluates it stands for it.
perl("evaluated_in_perl", "main", f"""eval q{{ # HERE
  for (1..{CALLS}) {{ getppid(); }}
}};
""")
perl("evaluated_sub_in_perl", "main::made", f"""eval q{{
  sub made {{ getppid() for 1..{CALLS}; }} # HERE
}};
made();
""", shown="(eval)")
perl("deep_in_perl", "main::down", f"""
no warnings;
sub down {{
  my $n = shift;
  return down($n - 1) if $n;
  for (1..{CALLS}) {{
    getppid(); # HERE
  }}
}}
down(150);
""")
perl("thread_in_perl", "main::work", f"""
use threads;
sub work {{
  for (1..{CALLS}) {{
    getppid(); # HERE
  }}
}}
$_->join for map {{ threads->create(\\&work) }} 1..3;
""")
perl("forked_in_perl", "main::work", f"""
sub work {{
  for (1..{CALLS}) {{
    getppid(); # HERE
  }}
}}
if (fork) {{ wait }} else {{ work(); exit }}
""")
perl("signal_in_perl", "main::on_usr1", f"""
sub on_usr1 {{
  getppid(); # HERE
}}
$SIG{{USR1}} = \\&on_usr1;
kill USR1 => $$ for 1..{CALLS};
""")
perl("command_line_in_perl", "main", f"""
for (1..{CALLS}) {{
  getppid(); # HERE
}}
""", run=lambda program, path, body: ([program, "-e", body], b""), shown="-e")
perl("standard_input_in_perl", "main", f"""
for (1..{CALLS}) {{
  getppid(); # HERE
}}
""", run=lambda program, path, body: ([program], body.encode()), shown="-")
perl("letters_in_perl", "main::mäßig", f"""
use utf8;
sub mäßig {{
  for (1..{CALLS}) {{
    getppid(); # HERE
  }}
}}
mäßig();
""", file="größe.pl")

php("three_deep_in_php", "leaf", f"""
function leaf() {{
  for ($i = 0; $i < {CALLS}; $i++) {{
    posix_getppid(); // HERE
  }}
}}
function render() {{ leaf(); }}
render();
""")
php("method_in_php", "Shop\\Cart::total", f"""
namespace Shop;
class Cart {{
  function total() {{
    return [
      1,
      \\posix_getppid(), // HERE
    ];
  }}
}}
$cart = new Cart;
for ($i = 0; $i < {CALLS}; $i++) $cart->total();
""")
php("scripts_own_level_in_php", "{main}", f"""
for ($i = 0; $i < {CALLS}; $i++) {{
  posix_getppid(); // HERE
}}
""")
php("closure_in_php", "{closure}", f"""
array_map(function ($x) {{
  return posix_getppid() + $x; // HERE
}}, range(1, {CALLS}));
""")
php("generator_in_php", "numbers", f"""
function numbers() {{
  for ($i = 0; $i < {CALLS}; $i++) {{
    yield posix_getppid(); // HERE
  }}
}}
foreach (numbers() as $n);
""")
php("exception_in_php", "careful", f"""
function careful() {{
  try {{
    throw new Exception("x");
  }} catch (Exception $e) {{
    posix_getppid(); // HERE
  }}
}}
for ($i = 0; $i < {CALLS}; $i++) careful();
""")
php("destructor_in_php", "Held::__destruct", f"""
class Held {{
  function __destruct() {{
    posix_getppid(); // HERE
  }}
}}
for ($i = 0; $i < {CALLS}; $i++) {{ $h = new Held; unset($h); }}
""")
php("sort_in_php", "compare", f"""
function compare($a, $b) {{
  posix_getppid(); // HERE
  return $b <=> $a;
}}
$a = range(1, {CALLS});
usort($a, 'compare');
""")
# The line that makes the calls is the fourth of another file.
php("included_in_php", "helper", f"""
file_put_contents('helper.inc', "<?php\\n\\nfunction helper() {{\\n  posix_getppid();\\n}}\\n");
include 'helper.inc'; // HERE
for ($i = 0; $i < {CALLS}; $i++) helper();
""", shown="helper.inc")
php("deep_in_php", "down", f"""
function down($n) {{
  if ($n) return down($n - 1);
  for ($i = 0; $i < {CALLS}; $i++) {{
    posix_getppid(); // HERE
  }}
}}
down(150);
""")
php("fiber_in_php", "work", f"""
function work() {{
  for ($i = 0; $i < {CALLS}; $i++) {{
    posix_getppid(); // HERE
  }}
}}
(new Fiber('work'))->start();
""")
php("command_line_in_php", "{main}", f"""
for ($i = 0; $i < {CALLS}; $i++) {{
  posix_getppid(); // HERE
}}
""", run=lambda program, path, body: ([program, "-r", body.removeprefix("<?php")], b""), shown="Command line code")
for how, flags in (("cached", ["opcache.enable_cli=1"]), ("compiled", ["opcache.enable_cli=1", "opcache.jit_buffer_size=32M", "opcache.jit=function"]),
                   ("traced", ["opcache.enable_cli=1", "opcache.jit_buffer_size=32M", "opcache.jit=tracing"])):
    php(f"{how}_in_php", "leaf", f"""
function leaf($n) {{
  for ($i = 0; $i < $n; $i++) {{
    $x = $i * 2;
    posix_getppid(); // HERE
  }}
}}
function render() {{ leaf({CALLS}); leaf({CALLS}); }}
render();
""", run=lambda program, path, body, flags=flags: ([program, *(f"-d{flag}" for flag in flags), path], b""))


def php_cases(version):
    """The cases as a version of PHP has them: fibers came with 8.1, and closures are called by their place from 8.4 on."""
    for name, program, function, *rest in PHP:
        if name != "fiber_in_php" or version >= 80100:
            yield name, program, "{closure:closure_in_php.php:3}" if function == "{closure}" and version >= 80400 else function, *rest


@test(users=("nobody",), backends=BOTH)
def lines_of_perl(box):
    hold(box, PERL)


@test(users=("nobody",), backends=BOTH)
def lines_of_php(box):
    version = subprocess.run([tool("php"), "-r", "echo PHP_VERSION_ID;"], capture_output=True, text=True, timeout=60, check=True)
    hold(box, list(php_cases(int(version.stdout))))


@test(users=("root",), backends=BOTH)
def lines_as_root(box):
    hold(box, PERL[:3] + PHP[:3])
