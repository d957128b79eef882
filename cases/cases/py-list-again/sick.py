"""Makes pages from templates, of which each page looks up its own in the folder's listing."""
import os
import sys
import tempfile


def template(folder, n):
    names = sorted(os.listdir(folder))
    return names[n % len(names)]


def main(pages):
    with tempfile.TemporaryDirectory() as folder:
        for i in range(60):
            open(os.path.join(folder, f"t{i:02}.html"), "w").close()
        print(sum(len(template(folder, n)) for n in range(pages)))


main(int(sys.argv[1]))
