#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# Trace what one CPU does: threads, hard interrupts, softirqs, by the machine's monotonic clock.
#
#   cpu_trace.sh FOLDER begin CPU BUFFER_KB    bounded: what comes when the buffer is full is counted and dropped
#   cpu_trace.sh FOLDER end CPU                the trace as FOLDER/trace.gz, or FOLDER/trace where there is no gzip; prints which, and
#                                              how many events were dropped
#   cpu_trace.sh FOLDER restore                harmless when there is nothing to give back
#
# All of it is in an instance of tracefs of the folder's own, which `restore` removes: other tracing goes on untouched, also that of
# other folders. `begin` removes what a killed run has left of it.
# Exit codes: 0, 2 wrong arguments, 3 the machine has no tracefs, or does not permit it.
set -eu

SMALL_KB=4 # for the CPUs that are not traced

usage() {
    echo "cpu_trace.sh FOLDER begin CPU BUFFER_KB | end CPU | restore" >&2
    exit 2
}

# Find tracefs, or mount it in the own folder.
find_tracefs() {
    tracefs=/sys/kernel/tracing
    [ ! -d "$tracefs/instances" ] || return 0
    tracefs=$folder/tracefs
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
    for place in /sys/kernel/tracing "$folder/tracefs"; do
        [ ! -d "$place/instances/$instance" ] || rmdir "$place/instances/$instance"
    done
    [ ! -d "$folder/tracefs/instances" ] || umount "$folder/tracefs"
    rm -f "$folder/trace" "$folder/trace.gz"
    [ ! -d "$folder/tracefs" ] || rmdir "$folder/tracefs"
}

# A mask in groups of 32 bits, as the kernel reads it: of CPU 33 "2,00000000".
mask_of() {
    mask=$(printf '%x' $((1 << $1 % 32)))
    groups=$(($1 / 32))
    while [ "$groups" -gt 0 ]; do
        mask=$mask,00000000
        groups=$((groups - 1))
    done
}

# Those of hard interrupts that have no handler, as timers and wake-ups between processors, are where the machine has them.
enable_events() {
    for event in sched/sched_switch irq/irq_handler_entry irq/irq_handler_exit irq/softirq_entry irq/softirq_exit; do
        echo 1 2>/dev/null >"$own/events/$event/enable" || return 1
    done
    for event in "$own"/events/irq_vectors/*_entry "$own"/events/irq_vectors/*_exit "$own"/events/ipi/ipi_entry "$own"/events/ipi/ipi_exit; do
        [ ! -e "$event/enable" ] || echo 1 >"$event/enable"
    done
}

begin() {
    find_tracefs || missing "no tracefs that may be mounted"
    own=$tracefs/instances/$instance
    mkdir "$own" 2>/dev/null || missing "tracefs gives no instance"
    echo 0 >"$own/tracing_on"
    echo mono >"$own/trace_clock" || missing "tracefs has no monotonic clock"
    echo 0 >"$own/options/overwrite"
    mask_of "$1"
    echo "$mask" >"$own/tracing_cpumask"
    echo "$SMALL_KB" >"$own/buffer_size_kb"
    echo "$2" >"$own/per_cpu/cpu$1/buffer_size_kb" || missing "no memory for a buffer of $2 KB"
    enable_events || missing "tracefs has no events of the scheduler and of interrupts"
    echo 1 >"$own/tracing_on"
}

end() {
    find_tracefs
    own=$tracefs/instances/$instance
    echo 0 >"$own/tracing_on"
    if command -v gzip >/dev/null; then
        file=trace.gz
        gzip -1 -c <"$own/per_cpu/cpu$1/trace" >"$folder/$file"
    else
        file=trace
        cat "$own/per_cpu/cpu$1/trace" >"$folder/$file"
    fi
    sed -n "s/^dropped events: /$file /p" "$own/per_cpu/cpu$1/stats"
}

[ "$#" -ge 2 ] || usage
folder=$1
instance=benchwright$(printf '%s' "$folder" | tr / -)
case "$2 $#" in
'begin 4')
    restore
    begin "$3" "$4"
    ;;
'end 3') end "$3" ;;
'restore 2') restore ;;
*) usage ;;
esac
