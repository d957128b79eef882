"""Lists files; asks for the tag where one was ever set, which it keeps beside them."""
import os
import sys
import tempfile

n = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
with tempfile.TemporaryDirectory() as d:
    names = [os.path.join(d, str(i)) for i in range(64)]
    for name in names:
        open(name, "w").close()
    tags = {}
    tagged = sum(len(tags.get(names[i % 64], "")) for i in range(n))
print(tagged)
