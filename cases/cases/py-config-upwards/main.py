"""For each of many files, looks for settings in the sixty folders that may have some. `cured` remembers where there
are none."""
import os
import sys

FOLDERS = [f"/opt/project/part{i}/settings.toml" for i in range(60)]
known = {}


def settings(cured):
    found = 0
    for path in FOLDERS:
        if cured:
            if path not in known:
                known[path] = os.path.exists(path)
            found += known[path]
        else:
            found += os.path.exists(path)
    return found


def main():
    cured, files = sys.argv[1] == "cured", int(sys.argv[2])
    print(sum(settings(cured) for _ in range(files)))


main()
