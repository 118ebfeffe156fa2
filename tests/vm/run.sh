#!/usr/bin/env bash
# The tests of the crate `cage` inside a small virtual machine that has cgroup v2 and nothing else
# (jobs-and-nodes.md 11), and disks with quotas of projects. Usage: run.sh LOG [PART OF THE TESTS' NAMES].
# Software emulation, so it needs no rights and no hardware; where QEMU or a kernel cannot be had it says why and skips.
set -uo pipefail
cd "$(dirname "$0")/../.."
log=$1
: >"$log"
work=target/vm
# Seconds. The whole takes eleven minutes beside the other tests, and a machine that does more is slower.
limit=2700
mkdir -p "$work"

skip() {
    echo "SKIPPED cgroup v2 in a virtual machine: $*" | tee -a "$log"
    exit 0
}

[ "$(uname -m)" = x86_64 ] || skip "only made for x86_64 hosts, this is $(uname -m)"
bash tests/setup.sh vm || skip "QEMU, busybox or cpio cannot be installed"

# The distribution's kernel for virtual machines: downloaded and unpacked, not installed.
kernel() {
    local package
    package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends:/ {print $2; exit}')
    [ -n "$package" ] || return 1
    echo "[vm] downloading the kernel package $package"
    rm -rf "$work/kernel.new"
    mkdir -p "$work/kernel.new/modules"
    (cd "$work/kernel.new" && apt-get download -qq "$package" 2>/dev/null && dpkg-deb -x ./*.deb unpacked) || return 1
    mv "$work"/kernel.new/unpacked/boot/vmlinuz-* "$work/kernel.new/vmlinuz" || return 1
    local module
    for module in fs/overlayfs/overlay fs/squashfs/squashfs drivers/block/loop fs/quota/quota_tree fs/quota/quota_v2 \
        lib/libcrc32c fs/xfs/xfs; do
        cp "$work"/kernel.new/unpacked/lib/modules/*/kernel/$module.ko "$work/kernel.new/modules/" || return 1
    done
    rm -rf "$work/kernel.new/unpacked" "$work"/kernel.new/*.deb "$work/kernel"
    mv "$work/kernel.new" "$work/kernel"
}
# The module that was needed last, so that a kernel from an earlier run has all of them.
[ -e "$work/kernel/modules/xfs.ko" ] || kernel || skip "no kernel package linux-image-cloud-amd64 can be downloaded"

# The programs that the Rust tests have built, with the shared libraries that they need.
programs=$(cargo nextest list --workspace --locked --lib --bins --tests --list-type binaries-only --message-format json \
    2>"$work/build.log" | python3 -c '
import json, sys
for program in json.load(sys.stdin)["rust-binaries"].values():
    if program["package-id"].split("#")[0].endswith("/crates/cage"):
        print(program["binary-path"])')
[ -n "$programs" ] || { cat "$work/build.log"; echo "no test program of cage was built"; exit 1; }
root=$work/root
rm -rf "$root"
mkdir -p "$root"/{bin,etc,new,modules,tests,proc,lib,lib64,usr}
cp /bin/busybox "$root/bin/" 2>/dev/null || cp /usr/bin/busybox "$root/bin/"
ln -s busybox "$root/bin/sh"
cp "$work"/kernel/modules/*.ko "$root/modules/"
cp tests/vm/init "$root/init"
chmod 755 "$root/init"
printf '%s' "${2:-}" >"$root/filter"
printf 'root:x:0:0::/:/bin/sh\n' >"$root/etc/passwd"
# Disks that count for projects, most of them holes (jobs-and-nodes.md 4.9).
truncate -s 96M "$root/quota.ext4"
mkfs.ext4 -q -O project,quota -E lazy_itable_init=1 "$root/quota.ext4" || { echo "no file system with quotas was made"; exit 1; }
# The smallest that the kernel takes; its makers call that one for tests, and want to be told that it is.
truncate -s 40M "$root/quota.xfs"
TEST_DIR=/ TEST_DEV=/ QA_CHECK_FS=/ mkfs.xfs -q -l size=1400b "$root/quota.xfs" 2>>"$work/build.log" || {
    echo "SKIPPED quotas of xfs: no mkfs.xfs that makes a small one" | tee -a "$log"
    rm "$root/quota.xfs"
}
for program in $programs; do
    name=$(basename "$program")
    strip -o "$root/tests/${name%-*}" "$program"
    for library in $(ldd "$program" | grep -o '/[^ ]*'); do
        mkdir -p "$root/$(dirname "$library")"
        cp -L "$library" "$root/$library"
    done
done
(cd "$root" && find . | cpio --quiet -o -H newc) | gzip -1 >"$work/initramfs.gz"

echo "[vm] booting"
# On a busy host the interrupts of the timer come too late for the check of the kernel.
begin=$(date +%s)
timeout "$limit" qemu-system-x86_64 \
    -accel tcg -machine q35 -cpu qemu64 -m 512 -nodefaults -no-reboot -display none -serial stdio \
    -kernel "$work/kernel/vmlinuz" -initrd "$work/initramfs.gz" \
    -append "cgroup_no_v1=all psi=1 no_timer_check panic=-1 console=ttyS0 quiet" </dev/null 2>&1 | tr -d '\r' |
    tee "$log" | grep --line-buffered -E '^(test |test result|kernel |SKIPPED|left behind|thread |=== |MILLPOND)|panicked|^  ' |
    grep --line-buffered -vE '^SKIPPED (hybrid|cgroup_v1):' || true
status=$(sed -n 's/^MILLPOND-VM-EXIT //p' "$log")
echo "[vm] ended after $(($(date +%s) - begin)) s"
if [ -z "$status" ]; then
    echo "the virtual machine ended, or was ended after $limit s, without a result; its last words:"
    tail -n 30 "$log"
    exit 1
fi
exit "$status"
