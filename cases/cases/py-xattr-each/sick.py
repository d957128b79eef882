"""Lists files with a tag that none has."""
import os
import sys
import tempfile

n = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
with tempfile.TemporaryDirectory() as d:
    names = [os.path.join(d, str(i)) for i in range(64)]
    for name in names:
        open(name, "w").close()
    tagged = 0
    for i in range(n):
        try:
            tagged += len(os.getxattr(names[i % 64], "user.tag"))
        except OSError:
            pass
print(tagged)
