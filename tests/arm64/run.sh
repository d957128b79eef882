#!/bin/bash
# Builds systoll for arm64 and runs suites in a Debian for arm64 that this machine emulates:
#   tests/arm64/run.sh [SUITE…]
# Without SUITEs: those of ptrace and of names. What was built stays in target/arm64 (5 GB; `rm -r` it to begin anew).
# Ends with status 77 and a reason if the emulator or the packages can't be had.
#
# ARM64_MIRROR names another mirror of Debian's, ARM64_CPU another processor: the default has no pointer authentication and
# boots in 40 % of the time that `max,pauth-impdef=on` takes, which has.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/tests/arm64 bed=$PWD/target/arm64 target=aarch64-unknown-linux-gnu
mirror=${ARM64_MIRROR:-http://deb.debian.org/debian} cpu=${ARM64_CPU:-neoverse-n1}
suites=("$@")
[ $# = 0 ] && suites=(counts names. names_scripts names_perl_php names_lua names_node go_and_musl)

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

# unpack NAME SUITE OPTIONS...: packages in a folder, without running any of their code.
unpack() {
    local name=$1 suite=$2
    shift 2
    [ -e "$bed/$name.done" ] && return
    rm -rf "${bed:?}/$name"
    echo "unpacking $name (minutes, once)"
    mmdebstrap --quiet --variant=extract "$@" "$suite" "$bed/$name" "deb $mirror $suite main" >"$bed/$name.log" 2>&1 ||
        skip "the packages of $name can't be had: $(grep -m 1 -i error "$bed/$name.log" || tail -n 1 "$bed/$name.log")"
    touch "$bed/$name.done"
}

# What is watched, and what counts beside systoll.
unpack guest trixie --architectures=arm64 --include=linux-image-arm64,bash,coreutils,util-linux,procps,findutils,grep,sed,tar,\
python3,strace,gcc,g++,libc6-dev,binutils,busybox-static,nodejs,perl,ruby,lua5.4,php-cli,dash,zsh,golang-go,musl-tools,iproute2,\
kmod,libc-bin,gdb,git,sqlite3,mawk,make,libc6-dbg
# The compiler: Debian's own Rust has a standard library for other machines. Its list of packages may be older than it says.
unpack cross sid --architectures=amd64,arm64 --aptopt='Acquire::Check-Valid-Until "false"' \
    --include=bash,coreutils,rustc,cargo,libstd-rust-dev:arm64,gcc,libc6-dev,gcc-aarch64-linux-gnu,libc6-dev-arm64-cross

build() {
    local keep=$bed/cross/w
    mkdir -p "$keep"/{main,cargo,target} "$bed"/{cargo,target}
    CARGO_HOME=$bed/cargo cargo fetch --quiet --locked || skip "the crates can't be fetched"
    # The mounts end with the namespace.
    unshare --mount bash -euc '
        mount --bind "$1" "$3/w/main" && mount --bind "$2/cargo" "$3/w/cargo" && mount --bind "$2/target" "$3/w/target"
        mount -t proc proc "$3/proc" && mount --bind /dev "$3/dev"
        exec chroot "$3" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CARGO_HOME=/w/cargo \
            CARGO_TARGET_DIR=/w/target CARGO_NET_OFFLINE=true CARGO_PROFILE_DEV_OPT_LEVEL=1 \
            CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
            bash -c "cd /w/main && exec cargo build --quiet --locked --target $4 --package systoll --bin systoll"
    ' - "$PWD" "$bed" "$bed/cross" "$target"
}

disk() {
    local modules work name file
    [ -e "$bed/disk.done" ] && [ "$bed/disk.done" -nt "$here/init" ] && return
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

# Copies what the guest needs and boots it on a copy of the disk that is thrown away; one processor, since hand-overs between
# emulated processors take long.
boot() {
    local share=$bed/share
    rm -rf "$share"
    mkdir -p "$share/repository"
    cp "$bed/target/$target/debug/systoll" "$share/systoll"
    # Suites beside those that run read other files of the repository.
    git ls-files -z -- ':!reports' ':!fuzz' ':!docs/evidence' | tar -c --null -T - | tar -x -C "$share/repository"
    printf 'exec /usr/bin/python3 repository/tests/run.py --systoll systoll --user nobody --jobs 1 %s\n' "${suites[*]}" \
        >"$share/in-guest"
    timeout "${ARM64_SECONDS:-900}" qemu-system-aarch64 -M virt,gic-version=3 -cpu "$cpu" -smp 1 -m 3072 \
        -accel tcg,thread=multi,tb-size=512 -kernel "$bed/vmlinuz" -initrd "$bed/initrd.gz" \
        -append "console=hvc0 quiet panic=-1 mitigations=off nokaslr" \
        -drive "file=$bed/disk.img,if=none,id=disk,format=raw,snapshot=on" -device virtio-blk-pci,drive=disk \
        -fsdev "local,id=host,path=$share,security_model=none" -device virtio-9p-pci,fsdev=host,mount_tag=host \
        -device virtio-serial-pci -chardev stdio,id=console,signal=off -device virtconsole,chardev=console \
        -device virtio-rng-pci -display none -monitor none -serial none -nodefaults -no-reboot
    grep -q 'with 0$' "$share/ended"
}

build
disk
boot
