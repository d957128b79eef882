# Counts lines that go through a pipe one by one.
grep --line-buffered 1 data/in | wc -l
