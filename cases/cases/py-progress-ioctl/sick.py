"""Normalises a list of addresses and shows how far it has come."""
import hashlib
import os
import re
import sys


class Progress:
    def __init__(self, total):
        self.total, self.done = total, 0

    def columns(self):
        try:
            return os.get_terminal_size(sys.stderr.fileno()).columns
        except OSError:
            return 80

    def step(self):
        self.done += 1
        width = self.columns() - 10
        if sys.stderr.isatty():
            full = width * self.done // self.total
            sys.stderr.write("\r%s %3d %%" % ("#" * full, 100 * self.done // self.total))


ABBREVIATIONS = [(re.compile(p, re.I), r) for p, r in [
    (r"\bstr\.", "straße"), (r"\bpl\.", "platz"), (r"\bst\.", "sankt"), (r"\s+", " "), (r"(\d+)\s*([a-d])\b", r"\1\2"),
]]


def normalise(line):
    for pattern, replacement in ABBREVIATIONS:
        line = pattern.sub(replacement, line)
    parts = [p.strip().title() for p in line.split(",")]
    return ", ".join(sorted(parts, key=len))


def addresses(n):
    for i in range(n):
        yield "st. anna str.  %d %s, %05d  neu%d , pl.  der  republik" % (i % 200, "abcd"[i % 4], i * 7 % 99999, i % 31)


def main():
    n = 25000
    bar = Progress(n)
    digest = hashlib.sha1()
    longest = 0
    for line in addresses(n):
        text = normalise(line)
        longest = max(longest, len(text))
        digest.update(text.encode())
        bar.step()
    print(n, "addresses, longest", longest, digest.hexdigest())


main()
