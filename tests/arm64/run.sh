#!/bin/bash
# Builds systoll for arm64 and runs unit tests and suites in a Debian for arm64 that this machine emulates:
#   tests/arm64/run.sh [--packages | SUITE…]
# Without SUITEs: the packages are made, installed and run, and so are the unit tests of the crates with code of their own for
# aarch64 and some tests of counts, attaching and names. A whole suite takes long there; name it to run it.
# Each part ends with the time that it took. What was built stays in target/arm64 (4 GB; `rm -r` it to begin anew).
# --packages builds them as for a release, in target/arm64/packages, and runs nothing else.
# Ends with status 77 and a reason if the emulator or the packages can't be had.
#
# ARM64_MIRROR names another mirror of Debian's, ARM64_CPU another processor: the default has no pointer authentication and
# boots in 40 % of the time that `max,pauth-impdef=on` takes, which has. ARM64_GUEST names a script to run in the guest instead:
# it finds systoll and the repository in its folder. Times that are said in the guest are by its own clock, which counts
# instructions.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/tests/arm64 bed=$PWD/target/arm64 target=aarch64-unknown-linux-gnu
mirror=${ARM64_MIRROR:-http://deb.debian.org/debian} cpu=${ARM64_CPU:-neoverse-n1}
# Crates whose unit tests run: those with folders `arch`, and the one that translates numbers, flags and structs.
crates=(model price symbols record)
# Words in names of their tests that do not run: these read bytes changed at random, or all entries of large files, which is the
# same work on every machine. Without them, the units take a third of the time.
portable=(hostile damaged read_alone)
# One of so many scripts and programs of the suites of names: a variable of theirs.
scripts=${SYSTOLL_TEST_SCRIPTS:-1} units=0 packages=0 build=build suites=("$@")
if [ $# = 0 ]; then
    units=1 packages=1 scripts=10
    # A few of each kind: all of `counts.`, of the forty commands and of attaching take many times as long.
    suites=(counts.{mix_musl_static,spawn,signals} counts_everyday.{ls,sort,find_exec,tar,bash,zsh,php,sqlite3}
        attach_ptrace.{what_it_does,threads,functions,a_stopped,systoll_is,the_watching}
        names.names_are names_scripts.lines_of_scripts names_perl_php. names_lua. names_node.lines)
elif [ "$1" = --packages ]; then
    packages=1 build=build_dist suites=()
fi

skip() {
    echo "$*"
    exit 77
}

[ "$(id -u)" = 0 ] || skip "only root can unpack a Debian and enter it"
missing=()
for tool in qemu-system-aarch64:qemu-system-arm mmdebstrap:mmdebstrap cpio:cpio mke2fs:e2fsprogs xz:xz-utils; do
    command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
done
[ ${#missing[@]} = 0 ] || skip "not installed: ${missing[*]} (apt-get install --no-install-recommends ${missing[*]})"
mkdir -p "$bed"

# cpu: processor time of all commands that have ended, s (proc(5): cutime and cstime, in hundredths).
cpu() {
    awk '{ print int(($16 + $17) / 100) }' "/proc/$$/stat"
}

# timed NAME COMMAND...: runs a part, and says how long it took; on a busy machine, the processor's time says more.
timed() {
    local name=$1 begun=$SECONDS used
    used=$(cpu)
    shift
    "$@"
    echo "$name: $((SECONDS - begun)) s, $(($(cpu) - used)) s of processor"
}

# unpack NAME SUITE OPTIONS...: packages in a folder, without running any of their code.
unpack() {
    local name=$1 suite=$2
    shift 2
    # A list that has changed since is another folder's.
    [ -e "$bed/$name.done" ] && [ "$(cat "$bed/$name.done")" = "$*" ] && return
    rm -rf "${bed:?}/$name" "$bed/$name.done"
    mmdebstrap --quiet --variant=extract "$@" "$suite" "$bed/$name" "deb $mirror $suite main" >"$bed/$name.log" 2>&1 || return
    rm -rf "$bed/$name"/usr/share/{doc,locale,man} "$bed/$name"/var/cache/apt
    echo "$*" >"$bed/$name.done"
}

# What is watched, and what counts beside systoll.
unpack_guest() {
    unpack guest trixie --architectures=arm64 --include=linux-image-arm64,bash,coreutils,util-linux,procps,findutils,grep,sed,tar,\
python3,strace,gcc,g++,libc6-dev,binutils,busybox-static,nodejs,perl,ruby,lua5.1,lua5.2,lua5.3,lua5.4,php-cli,dash,zsh,golang-go,musl-tools,iproute2,\
kmod,libc-bin,gdb,git,sqlite3,mawk,make,libc6-dbg,luajit,dpkg,diffutils,python3-pip-whl
}

# The compiler: Debian's own Rust has a standard library for other machines. Its list of packages may be older than it says.
unpack_cross() {
    unpack cross sid --architectures=amd64,arm64 --aptopt='Acquire::Check-Valid-Until "false"' \
        --include=bash,coreutils,rustc,cargo,libstd-rust-dev:arm64,gcc,libc6-dev,gcc-aarch64-linux-gnu,libc6-dev-arm64-cross
}

unpack_both() {
    local name guest
    unpack_guest &
    guest=$!
    unpack_cross || true
    wait $guest || true
    for name in guest cross; do
        [ -e "$bed/$name.done" ] ||
            skip "the packages of $name can't be had: $(grep -m 1 -i error "$bed/$name.log" || tail -n 1 "$bed/$name.log")"
    done
}

# cross COMMAND...: runs a command in the folder with the compiler. The mounts end with the namespace. No script of a package
# has run there, so nothing is named cc. What is built needs no lines for debuggers: linking them takes long.
cross() {
    local keep=$bed/cross/w
    mkdir -p "$keep"/{main,cargo,target} "$bed/target"
    unshare --mount bash -euc '
        mount --bind "$1" "$3/w/main" && mount --bind "$2/cargo" "$3/w/cargo" && mount --bind "$2/target" "$3/w/target"
        mount -t proc proc "$3/proc" && mount --bind /dev "$3/dev"
        root=$3
        shift 3
        exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CARGO_HOME=/w/cargo \
            CARGO_TARGET_DIR=/w/target CARGO_NET_OFFLINE=true CARGO_INCREMENTAL=0 \
            CARGO_PROFILE_DEV_DEBUG=none HOST_CC=gcc \
            CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
            CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
            bash -c "cd /w/main && exec \"\$@\"" - "$@"
    ' - "$PWD" "$bed" "$bed/cross" "$@"
}

# Crates that work for each call, or on each name: emulated, they are too slow unoptimised. Optimising the others, which judge
# and show, takes longer than it saves: `judge` alone two minutes of processor.
quick=(binfile hooks model record symbols)
slow=(import prove)
profile=(--config 'profile.dev.opt-level=0' --config 'profile.dev.package."*".opt-level=1')
for name in "${quick[@]}"; do profile+=(--config "profile.dev.package.systoll-$name.opt-level=1"); done
# Its tests look up the lines of their own program.
profile+=(--config 'profile.dev.package.systoll-symbols.debug="line-tables-only"')
for name in "${slow[@]}"; do profile+=(--config "profile.dev.package.systoll-$name.opt-level=0"); done

fetch() {
    mkdir -p "$bed/cargo"
    CARGO_HOME=$bed/cargo cargo fetch --quiet --locked || skip "the crates can't be fetched"
}

# quietly COMMAND...: shows what a command wrote to standard error only where it fails: the linker warns of each function that is
# linked statically and may load a library.
quietly() {
    "$@" 2>"$bed/errors" || { cat "$bed/errors" >&2; return 1; }
}

build() {
    fetch
    quietly cross cargo build --quiet --locked "${profile[@]}" --target "$target" --package systoll --bin systoll
    # Half of the bytes that the guest copies and unpacks.
    cross aarch64-linux-gnu-strip -o /w/target/systoll "/w/target/$target/debug/systoll"
}

# Builds as releases are built (dist/built.py), without the name of any folder in it.
build_dist() {
    local crates
    fetch
    crates=$(cd "$bed/cargo/registry/src" && echo *)
    quietly cross env RUSTFLAGS="--remap-path-prefix=/w/main=/systoll --remap-path-prefix=/w/cargo/registry/src/$crates=/crates" \
        cargo build --quiet --locked --profile dist --target "$target" --package systoll --bin systoll
    cp "$bed/target/$target/dist/systoll" "$bed/target/systoll"
}

# make_packages: makes the packages of the command that was built, with pages by the tool that ./test has built.
make_packages() {
    local what
    rm -rf "$bed/packages" "$bed/pieces"
    mkdir -p "$bed/packages"
    if [ ! -x target/tests/xtask ]; then
        echo "packages: skipped, there is no target/tests/xtask yet, which makes their pages (./test builds it)"
        return
    fi
    install -D -m 755 "$bed/target/systoll" "$bed/pieces/systoll"
    for what in man completions; do target/tests/xtask $what "$bed/pieces/$what"; done
    # What is not given away need not be small.
    [ $build = build_dist ] || export SYSTOLL_PACKAGE_LEVEL=1
    dist/package.py all --from "$bed/pieces" --out "$bed/packages"
}

# Builds the unit tests, and lists them: crate, path.
build_units() {
    local packages=() name
    for name in "${crates[@]}"; do packages+=(--package "systoll-$name"); done
    cross cargo test --quiet --locked "${profile[@]}" --target "$target" "${packages[@]}" --lib --no-run --message-format json |
        sed -nE 's,.*"name":"systoll_([a-z]+)".*"executable":"/w/target/([^"]+)".*,\1 \2,p' >"$bed/units"
    [ "$(wc -l <"$bed/units")" = ${#crates[@]} ]
}

disk() {
    local modules work name file
    [ -e "$bed/disk.done" ] && [ "$bed/disk.done" -nt "$here/init" ] && [ "$bed/disk.done" -nt "$bed/guest.done" ] && return
    install -m 755 "$here/init" "$bed/guest/init-arm64"
    cp "$bed"/guest/boot/vmlinuz-* "$bed/vmlinuz"
    work=$(mktemp -d)
    mkdir -p "$work"/{bin,modules,proc,sys,dev,new}
    cp "$bed/guest/usr/bin/busybox" "$work/bin/busybox"
    for name in sh mount insmod switch_root poweroff; do ln -s busybox "$work/bin/$name"; done
    modules="virtio_blk crc32c_generic libcrc32c crc16 mbcache jbd2 ext4 netfs 9pnet 9pnet_virtio 9p"
    for name in $modules; do
        file=$(find "$bed/guest/usr/lib/modules" -name "$name.ko.xz")
        [ -z "$file" ] || xz -dc "$file" >"$work/modules/$name.ko"
    done
    cat >"$work/init" <<END
#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for name in $modules; do [ -f /modules/\$name.ko ] && insmod /modules/\$name.ko; done
mount -t ext4 /dev/vda /new || poweroff -f
for name in dev proc sys; do mount --move /\$name /new/\$name; done
exec switch_root /new /init-arm64
END
    chmod 755 "$work/init"
    (cd "$work" && find . | cpio -o -H newc --quiet | gzip -1) >"$bed/initrd.gz"
    rm -r "$work" "$bed/disk.img" 2>/dev/null || true
    truncate -s 5G "$bed/disk.img"
    mke2fs -q -t ext4 -O ^has_journal -d "$bed/guest" "$bed/disk.img"
    touch "$bed/disk.done"
}

# Copies what the guest needs, for a script that runs there.
share() {
    local share=$bed/share name path
    rm -rf "$share"
    mkdir -p "$share"/{repository,units}
    cp "$bed/target/systoll" "$share/systoll"
    # Suites beside those that run read other files of the repository.
    git ls-files -z -- ':!reports' ':!fuzz' ':!docs/evidence' | tar -c --ignore-failed-read --null -T - | tar -x -C "$share/repository"
    if [ -n "${ARM64_GUEST:-}" ]; then
        cp "$ARM64_GUEST" "$share/in-guest"
        return
    fi
    {
        echo "status=0"
        if [ $packages = 1 ] && [ -e "$bed/packages/SHA256SUMS" ]; then
            cp -r "$bed/packages" "$here/packages.sh" "$share"
            echo "begun=\$SECONDS; bash packages.sh || status=1"
            echo "echo \"packages: \$((SECONDS - begun)) s\""
        fi
        if [ $units = 1 ]; then
            while read -r name path; do
                cp "$bed/target/$path" "$share/units/$name"
                echo "begun=\$SECONDS; echo 'unit tests of $name'"
                echo "(cd repository/crates/$name && timeout 300 /host/units/$name --test-threads 1 --quiet ${portable[*]/#/--skip }) || status=1"
                echo "echo \"unit tests of $name: \$((SECONDS - begun)) s\""
            done <"$bed/units"
        fi
        if [ ${#suites[@]} != 0 ]; then
            echo "begun=\$SECONDS"
            echo "SYSTOLL_TEST_SCRIPTS=$scripts /usr/bin/python3 repository/tests/run.py --systoll systoll --user nobody --jobs 1 ${suites[*]} || status=1"
            echo "echo \"suites: \$((SECONDS - begun)) s\""
        fi
        echo "exit \$status"
    } >"$share/in-guest"
}

# Boots the guest on a copy of the disk that is thrown away; with one processor, since hand-overs between emulated processors
# take long. Its clock counts instructions, 1 ns each, while there is work: the emulator's own slowness, and other work of this
# machine, would otherwise be the guest's time, of which sampling may take a share only and tests have a limit. By this machine's
# clock, watching `true` took 5 to 12 s there on a busy machine, and most cases had 1 to 15 samples; by that clock, 0.11 s.
# Not `sleep=off`, by which that clock leaps while the disk is waited for: tests reach their limits. `norandmaps`: files lie at
# the same addresses in each process, so that code is translated once and not for each of them (12 starts of Python, 3 of systoll and
# the boot: 24 s of processor instead of 28, one run each).
#
# On a busy machine only the processor's time says that a guest hangs; one that waits for ever is ended by the other limit.
boot() {
    local seconds=${ARM64_SECONDS:-900}
    (ulimit -t "$seconds" && exec timeout $((4 * seconds)) qemu-system-aarch64 -M virt,gic-version=3 -cpu "$cpu" -smp 1 -m 3072 \
        -accel tcg,thread=single,tb-size=512 -icount shift=0 -kernel "$bed/vmlinuz" -initrd "$bed/initrd.gz" \
        -append "console=hvc0 quiet panic=-1 mitigations=off nokaslr norandmaps" \
        -drive "file=$bed/disk.img,if=none,id=disk,format=raw,snapshot=on" -device virtio-blk-pci,drive=disk \
        -fsdev "local,id=host,path=$bed/share,security_model=none" -device virtio-9p-pci,fsdev=host,mount_tag=host \
        -device virtio-serial-pci -chardev stdio,id=console,signal=off -device virtconsole,chardev=console \
        -device virtio-rng-pci -display none -monitor none -serial none -nodefaults -no-reboot) ||
        echo "the guest was ended after $seconds s of processor, or 4 times as long (ARM64_SECONDS)"
}

timed "packages had" unpack_both
disk &
disk=$!
timed "build" $build
[ $packages = 0 ] || timed "packages made" make_packages
[ $units = 0 ] || timed "unit tests built" build_units
timed "disk" wait $disk
share
timed "guest" boot
# A guest that did not come that far has failed.
grep -qs 'with 0$' "$bed/share/ended"
