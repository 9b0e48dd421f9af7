#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# Record events of the kernel into its ring, and give the ring as it is: no text is made of it here.
#
#   kernel_recorder.sh FOLDER begin MODE CLOCK CPUS BUFFER_KB EVENT...
#       MODE: `stop`, what comes when a CPU's buffer is full is counted and dropped; `overwrite`, the oldest goes.
#       CPUS: `all`, or 0,2. BUFFER_KB: of each. EVENT: sched/sched_switch; ?irq_vectors/*_exit, those that there are;
#       tracer:timerlat, what that tracer of the kernel writes.
#   kernel_recorder.sh FOLDER end CPUS
#       No more is recorded. FOLDER/description says how the ring is laid out, FOLDER/cpuN are its pages.
#   kernel_recorder.sh FOLDER restore          harmless when there is nothing to give back
#
# All of it is in an instance of tracefs of the folder's own, which `restore` removes: other tracing goes on untouched, also that of
# other folders. `begin` removes what a killed run has left of it.
# Exit codes: 0, 2 wrong arguments, 3 the machine has no tracefs, or does not permit it.
set -eu

SMALL_KB=4 # for the CPUs that are not recorded

usage() {
    echo "kernel_recorder.sh FOLDER begin MODE CLOCK CPUS BUFFER_KB EVENT... | end CPUS | restore" >&2
    exit 2
}

# Find tracefs, or mount it beside the own folder: who empties that shall not meet it.
find_tracefs() {
    tracefs=/sys/kernel/tracing
    [ ! -d "$tracefs/instances" ] || return 0
    tracefs=$folder.tracefs
    [ ! -d "$tracefs/instances" ] || return 0
    mkdir -p "$tracefs"
    mount -t tracefs tracefs "$tracefs" 2>/dev/null && [ -d "$tracefs/instances" ] && return 0
    umount "$tracefs" 2>/dev/null || :
    rmdir "$tracefs"
    return 1
}

missing() {
    echo "$1" >&2
    restore
    exit 3
}

restore() {
    find_tracefs || : # where each command has mounts of its own, that of the one before is gone, and the instance is not
    for place in /sys/kernel/tracing "$folder.tracefs"; do
        [ ! -d "$place/instances/$instance" ] || echo nop >"$place/instances/$instance/current_tracer"
        [ ! -d "$place/instances/$instance" ] || rmdir "$place/instances/$instance"
    done
    [ ! -d "$folder.tracefs/instances" ] || umount "$folder.tracefs"
    [ ! -d "$folder.tracefs" ] || rmdir "$folder.tracefs"
    rm -f "$folder/description" "$folder"/cpu*
}

# A mask in groups of 32 bits, as the kernel reads it: of CPU 33 "2,00000000".
mask_of() {
    groups=0
    for cpu in $1; do
        [ $((cpu / 32)) -le "$groups" ] || groups=$((cpu / 32))
    done
    mask=
    while [ "$groups" -ge 0 ]; do
        bits=0
        for cpu in $1; do
            [ $((cpu / 32)) -ne "$groups" ] || bits=$((bits | 1 << cpu % 32))
        done
        mask=$mask${mask:+,}$(printf '%08x' "$bits")
        groups=$((groups - 1))
    done
}

# Give the numbers of CPUs: of `all` those that the ring has.
cpus_of() {
    cpus=$(printf '%s' "$1" | tr , ' ')
    [ "$1" = all ] || return 0
    cpus=
    for each in "$own"/per_cpu/cpu*; do
        cpus="$cpus ${each##*/cpu}"
    done
}

enable_events() {
    for event; do
        case $event in
        tracer:*) echo "${event#*:}" 2>/dev/null >"$own/current_tracer" || missing "the kernel has no tracer ${event#*:}" ;;
        '?'*)
            for found in "$own"/events/${event#?}; do
                [ ! -e "$found/enable" ] || echo 1 >"$found/enable"
            done
            ;;
        *) echo 1 2>/dev/null >"$own/events/$event/enable" || missing "tracefs has no event $event" ;;
        esac
    done
}

begin() {
    find_tracefs || missing "no tracefs that may be mounted"
    own=$tracefs/instances/$instance
    mkdir "$own" 2>/dev/null || missing "tracefs gives no instance"
    echo 0 >"$own/tracing_on"
    echo "$2" 2>/dev/null >"$own/trace_clock" || missing "tracefs has no clock $2"
    [ "$1" = overwrite ] && echo 1 >"$own/options/overwrite" || echo 0 >"$own/options/overwrite"
    cpus_of "$3"
    echo "$SMALL_KB" >"$own/buffer_size_kb"
    for cpu in $cpus; do
        echo "$4" 2>/dev/null >"$own/per_cpu/cpu$cpu/buffer_size_kb" || missing "no CPU $cpu, or no memory for a buffer of $4 KB"
    done
    mask_of "$cpus"
    echo "$mask" >"$own/tracing_cpumask"
    shift 4
    enable_events "$@"
    echo 1 >"$own/tracing_on"
}

# The sixth byte of a program of this machine says it.
byte_order() {
    case $(dd if=/proc/self/exe bs=1 skip=5 count=1 2>/dev/null) in
    "$(printf '\001')") echo little ;;
    *) echo big ;;
    esac
}

describe() {
    echo "byte order: $(byte_order)"
    {
        printf '%s\n' header_page header_event
        tracer=$(cat "$own/current_tracer")
        [ "$tracer" = nop ] || echo "ftrace/$tracer/format"
        sed 's|:|/|; s|$|/format|' "$own/set_event"
    } | while read -r name; do
        echo "file: events/$name"
        cat "$own/events/$name"
    done
    for cpu in $cpus; do
        echo "file: per_cpu/cpu$cpu/stats"
        cat "$own/per_cpu/cpu$cpu/stats"
    done
}

end() {
    find_tracefs
    own=$tracefs/instances/$instance
    cpus_of "$1"
    echo 0 >"$own/tracing_on"
    describe >"$folder/description"
    page_bytes=$(($(sed -n 's/.* data;.*offset:\([0-9]*\);.*size:\([0-9]*\);.*/\1 + \2/p' "$own/events/header_page")))
    for cpu in $cpus; do
        # It ends with an error when the ring is empty, instead of a wait for more.
        dd if="$own/per_cpu/cpu$cpu/trace_pipe_raw" of="$folder/cpu$cpu" bs="$page_bytes" iflag=nonblock 2>"$folder/cpu.said" || :
        [ "$(sed -n 's/^entries: //p' "$own/per_cpu/cpu$cpu/stats")" = 0 ] || {
            echo "CPU $cpu: its ring cannot be read: $(cat "$folder/cpu.said")" >&2
            exit 1
        }
    done
    echo "$cpus"
}

[ "$#" -ge 2 ] || usage
folder=$1
verb=$2
shift 2
instance=benchwright$(printf '%s' "$folder" | tr / -)
case "$verb $#" in
'begin '[0-4]) usage ;;
'begin '*)
    case $1 in stop | overwrite) ;; *) usage ;; esac
    restore
    begin "$@"
    ;;
'end 1') end "$1" ;;
'restore 0') restore ;;
*) usage ;;
esac
