#!/bin/bash
# Installs the packages of aarch64 in the emulated machine, and runs what they installed.
set -euo pipefail
cd packages
sha256sum -c SHA256SUMS

# works NAME SYSTOLL: the command says its version, and watches a program.
works() {
    "$2" --version
    "$2" run -o report -- /bin/true
    grep -q 'system calls' report
    echo "$1: ok"
}

dpkg-deb -I systoll_*_arm64.deb | sed -n '/Package:/,/Installed-Size/p'
dpkg-deb -c systoll_*_arm64.deb | grep -E '/(systoll|systoll\.1\.gz|_systoll)$'
dpkg -i systoll_*_arm64.deb
works deb /usr/bin/systoll
dpkg -r systoll
[ ! -e /usr/bin/systoll ]

# pip itself takes 40 s of an emulated processor to start, from its own wheel without bytecode. Its list of names that this
# machine accepts, and the places of a wheel's files, are all that is asked of it.
PYTHONPATH=$(echo /usr/share/python-wheels/pip-*.whl) python3 -c 'import glob
from pip._vendor.packaging import tags, utils
assert utils.parse_wheel_filename(glob.glob("systoll-*.whl")[0])[3] & set(tags.sys_tags())'
libraries=$(python3 -c 'import site; print(site.getsitepackages()[0])')
python3 -m zipfile -e systoll-*.whl "$libraries"
install -D -m 755 "$libraries"/systoll-*.data/scripts/systoll /usr/local/bin/systoll
works wheel /usr/local/bin/systoll
python3 -c 'import systoll
with systoll.calls() as c: pass
print(c.skipped)
assert "x86-64 only" in c.skipped'

# There is no gzip.
busybox tar -xzf systoll-*-aarch64-linux.tar.gz -C /tmp
works tar /tmp/systoll-*-aarch64-linux/bin/systoll
