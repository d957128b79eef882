# Counts lines that go through a pipe.
grep 1 data/in | wc -l
