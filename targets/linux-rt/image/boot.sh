#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bring a guest up from the run's configuration; started once by bw-init, which announces `benchwright: ready` when
# this script ends with 0. The configuration is written by hw/virtual/guest_config.py, one word list a line:
#
#   hostname NAME
#   interface MAC NAME MTU ADDRESS/PREFIX|-
#   bridge NAME PORT...
#   clock OFFSET_NS FREQUENCY_PPB TAI_UTC_S
#   ssh ADDRESS
set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
config=/run/benchwright/config
ssh_address=

fail() {
    echo "benchwright: boot failed: $*" >&2
    exit 1
}

interface_of_mac() { # MAC
    for directory in /sys/class/net/*; do
        [ -e "$directory/address" ] || continue
        read -r found <"$directory/address"
        if [ "$found" = "$1" ]; then
            echo "${directory##*/}"
            return 0
        fi
    done
    return 1
}

set_up_interface() { # MAC NAME MTU ADDRESS/PREFIX|-
    old=$(interface_of_mac "$1") || fail "no interface with MAC $1"
    ip link set dev "$old" name "$2" mtu "$3" || fail "interface $2: name or MTU $3 refused"
    # No interrupt for each frame sent: what emulates the machine pays for them. Cards of other makes refuse, and may.
    ethtool -C "$2" tx-frames 0 2>/dev/null
    ip link set dev "$2" up || fail "interface $2 does not come up"
    [ "$4" = - ] || ip address add "$4" dev "$2" || fail "interface $2: address $4 refused"
}

set_up_bridge() { # NAME PORT...
    bridge=$1
    shift
    # No spanning tree and no snooping: a bridge between two hosts forwards from its first frame on.
    ip link add name "$bridge" type bridge stp_state 0 forward_delay 0 mcast_snooping 0 || fail "bridge $bridge"
    for port in "$@"; do
        ip link set dev "$port" master "$bridge" || fail "bridge $bridge: port $port refused"
    done
    ip link set dev "$bridge" up || fail "bridge $bridge does not come up"
}

apply_line() { # WORD...
    case $1 in
    hostname) hostname "$2" && echo "127.0.0.1 localhost $2" >/etc/hosts ;;
    interface) set_up_interface "$2" "$3" "$4" "$5" ;;
    bridge)
        shift
        set_up_bridge "$@"
        ;;
    clock)
        bw-setclock --step-ns "$2" --frequency-ppb "$3" --tai-utc-s "$4" >/run/benchwright/clock.json ||
            fail "clock refused"
        ;;
    ssh) ssh_address=$2 ;;
    *) fail "unknown word $1 in the run's configuration" ;;
    esac
}

mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t sysfs -o nosuid,nodev,noexec sys /sys
mount -t debugfs -o nosuid,nodev,noexec debugfs /sys/kernel/debug
mount -t tracefs -o nosuid,nodev,noexec tracefs /sys/kernel/tracing 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777,nosuid,nodev shm /dev/shm
ln -sf /proc/self/fd /dev/fd

# Drivers for all that is there, as udev would load them. Failures are those of devices that the image has no driver for.
cat /sys/bus/*/devices/*/modalias 2>/dev/null | sort -u | xargs modprobe -abq 2>/dev/null
# The power button's driver makes an input device only now; bw-init reads it through evdev.
modprobe -q evdev

ip link set dev lo up || fail "no loopback"
[ -r "$config" ] || fail "no configuration in the initrd"
while read -r line; do
    # The words are ours and checked when they were written: none holds blanks or globs.
    # shellcheck disable=SC2086
    set -- $line
    [ $# -eq 0 ] || apply_line "$@"
done <"$config"

if [ -n "$ssh_address" ]; then
    mkdir -p /run/sshd
    /usr/sbin/sshd -o "ListenAddress=$ssh_address" || fail "sshd does not start"
    # It goes into the background before it listens, and writes this file afterwards.
    tries=0
    until [ -s /run/sshd.pid ]; do
        tries=$((tries + 1))
        [ "$tries" -le 600 ] || fail "sshd does not listen"
        sleep 0.1
    done
fi
exit 0
