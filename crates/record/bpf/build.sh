#!/bin/sh
# Builds count.o, or the file that is named. The object that is kept was built by
# clang 14
# A test builds it again with that version and compares the bytes (src/bpf/object.rs).
set -e
cd "$(dirname "$0")"
out=${1:-count.o}
clang -target bpf -mcpu=v2 -O2 -Wall -Wno-unused-function -c count.c -o "$out"
llvm-strip --strip-debug "$out"
