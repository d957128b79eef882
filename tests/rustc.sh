#!/bin/sh
# Compiles for ./test (RUSTC_WORKSPACE_WRAPPER): tests themselves without optimisation, which takes longer than they run.
# What they test in other crates is optimised, as it is for the tests of programs.
# Clippy, where it is installed, compiles tests and programs: it is the compiler with more lints, and tests contain their
# library's code as well. Checking all crates beside compiling them takes as long as compiling tests.
case " $* " in
    *" --test "*) set -- "$@" -C opt-level=0 ;;
    *" --crate-type bin --emit"*) ;;
    *) exec "$@" ;;
esac
clippy-driver --version >/dev/null 2>&1 && exec clippy-driver "$@"
exec "$@"
