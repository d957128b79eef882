#!/bin/sh
# Compiles for ./test (RUSTC_WORKSPACE_WRAPPER): tests themselves without optimisation, which takes longer than they run.
# What they test in other crates is optimised, as it is for the tests of programs.
case " $* " in
    *" --test "*) exec "$@" -C opt-level=0 ;;
esac
exec "$@"
