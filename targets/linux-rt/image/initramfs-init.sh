#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First program of a guest: mount the read-only root with a memory overlay, hand over to bw-init.
# A guest keeps nothing: a power cut leaves the image as it was.
export PATH=/bin

fail() {
    echo "benchwright: boot failed: $*" >/dev/console
    sleep 1
    exit 1
}

# A kernel argument `benchwright_probe=1` arrives here as a variable: someone only asks whether a guest boots at all
# (hw/virtual/accel.py), and ends it.
if [ -n "${benchwright_probe:-}" ]; then
    echo "benchwright: probe booted" >/dev/console
    exec sleep 60
fi

mount -t devtmpfs dev /dev || fail "no devtmpfs"
while read -r module; do
    insmod "/modules/$module" || fail "module $module"
done </modules/order

# A kernel argument `benchwright_root=/dev/…` names the disk or partition of the root on a real board.
root=${benchwright_root:-/dev/vda}
tries=200
until [ -b "$root" ]; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "no disk $root after 10 s"
    sleep 0.05
done

mount -t squashfs -o ro "$root" /lower || fail "root is no squashfs"
mount -t tmpfs -o mode=755 overlay /memory || fail "no tmpfs"
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/lower,upperdir=/memory/upper,workdir=/memory/work overlay /new || fail "no overlay"
mount -t tmpfs -o mode=755,nosuid,nodev run /new/run || fail "no /run"
mkdir -p /new/run/benchwright
[ ! -d /run.d ] || cp -a /run.d/. /new/run/benchwright/
mount --move /dev /new/dev
exec switch_root /new /usr/lib/benchwright/bw-init
