import os
from collections import Counter

sizes = Counter()
links = 0
for folder, _, names in sorted(os.walk("store")):
    with os.scandir(folder) as it:
        for e in it:
            if e.is_file(follow_symlinks=False):
                st = e.stat(follow_symlinks=False)
                sizes[st.st_size // 16] += st.st_blocks >= 0
                links += st.st_nlink - 1
                h = 0
                for k in range(900):
                    h = h * 31 + st.st_size * k & 0xFFFF
for bucket, n in sorted(sizes.items()):
    print(bucket * 16, n)
print(links, "hard links")
