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

# pip reads certificates even where it fetches nothing. They are unpacked here, but no script of a package has put them together.
mkdir -p /etc/ssl/certs
cat /usr/share/ca-certificates/mozilla/*.crt >/etc/ssl/certs/ca-certificates.crt
PYTHONPATH=$(echo /usr/share/python-wheels/pip-*.whl) python3 -m pip install --quiet --no-index --no-deps --break-system-packages \
    --root-user-action=ignore systoll-*.whl
works wheel /usr/local/bin/systoll
python3 -c 'import systoll
with systoll.calls() as c: pass
print(c.skipped)
assert "x86-64 only" in c.skipped'

# There is no gzip.
busybox tar -xzf systoll-*-aarch64-linux.tar.gz -C /tmp
works tar /tmp/systoll-*-aarch64-linux/bin/systoll
