"""Makes pages from templates, whose folder is listed once."""
import os
import sys
import tempfile


def main(pages):
    with tempfile.TemporaryDirectory() as folder:
        for i in range(60):
            open(os.path.join(folder, f"t{i:02}.html"), "w").close()
        names = sorted(os.listdir(folder))
        print(sum(len(names[n % len(names)]) for n in range(pages)))


main(int(sys.argv[1]))
