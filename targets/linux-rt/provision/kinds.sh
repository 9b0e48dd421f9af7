# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The kinds of settings: where each is found, read and written. Sourced, never run.
#
#   KIND_targets NAME         set $targets to the places of this setting on this machine, separated by blanks
#   KIND_read TARGET          set $value to what is set there; return 1, with the reason in $note, where it does not exist
#   KIND_write TARGET VALUE   set it; return 1, with the reason in $note, where the machine refuses
#
# A kind without KIND_write can only be checked. A target never holds blanks: it names its place for as long as the
# machine runs, and the undo file keeps it.
# shellcheck disable=SC2034  # targets, value and note are results, read by the callers

kind_known() { # KIND
    case $1 in
    kernel | tool | service | sysctl | fair_server | governor | idle | offload | coalesce | nic | irq_cpu | irq_priority | thread) return 0 ;;
    clock | phc | page | daemon) return 0 ;;
    esac
    return 1
}

kind_writable() { # KIND
    case $1 in kernel | tool) return 1 ;; esac
    return 0
}

# First line of a file as a list of words with single blanks, in $value. Below /proc/sys not by `read`: dash reads byte by
# byte, and such a file gives only its first byte then. Elsewhere by `read`, which costs no process.
read_words() { # FILE
    value=
    case $1 in
    /proc/sys/*) value=$(cat "$1" 2>/dev/null) || return 1 ;;
    # A pseudo-file may exist and refuse to be read: a card without a link has no speed.
    *) { read -r value <"$1"; } 2>/dev/null || [ -n "$value" ] || return 1 ;;
    esac
    # shellcheck disable=SC2086  # splitting is the purpose
    set -f && set -- $value && set +f
    value=$*
}

write_text() { # FILE TEXT
    { printf '%s\n' "$2" >"$1"; } 2>/dev/null || {
        note="the kernel refuses $2"
        return 1
    }
}

# kernel preempt-rt: whether the running kernel is fully preemptible.
kernel_targets() { targets=$1; }
kernel_read() {
    value=no
    if [ -r /sys/kernel/realtime ]; then
        read_words /sys/kernel/realtime && [ "$value" = 1 ] && value=yes || value=no
    else
        case $(uname -v) in *PREEMPT_RT*) value=yes ;; esac
    fi
}

# tool NAME: whether a program is installed.
tool_targets() { targets=$1; }
tool_read() {
    value=missing
    command -v "$1" >/dev/null && value=present
    return 0
}

# service NAME: whether systemd runs it.
service_targets() { targets=$1; }
service_read() {
    note="there is no service $1"
    [ -d /run/systemd/system ] || return 1
    [ "$(systemctl show --property=LoadState --value "$1" 2>/dev/null)" = loaded ] || return 1
    value=inactive
    ! systemctl --quiet is-active "$1" || value=active
}
service_write() {
    local verb=stop
    [ "$2" != active ] || verb=start
    systemctl "$verb" "$1" 2>/dev/null || {
        note="systemctl $verb $1 failed"
        return 1
    }
}

# sysctl PATH: a file below /proc/sys.
sysctl_targets() { targets=$1; }
sysctl_read() {
    note="this kernel has no $1"
    read_words "/proc/sys/$1"
}
sysctl_write() { write_text "/proc/sys/$1" "$2"; }

# fair_server runtime-ns: of each second of a CPU that real-time threads keep busy, what waiting ordinary threads get of it (Linux 6.12
# and later; sched_rt_runtime_us no longer says so). Target: cpuN. The kernel has it in debugfs, which need not be mounted.
FAIR_SERVER=/sys/kernel/debug/sched/fair_server
with_debugfs() { # COMMAND...
    if [ -d /sys/kernel/debug/sched ]; then
        "$@"
    else
        unshare --mount sh -c 'mount -t debugfs debugfs /sys/kernel/debug && exec "$@"' sh "$@"
    fi 2>/dev/null
}
fair_server_targets() {
    targets=$(with_debugfs ls "$FAIR_SERVER" | tr '\n' ' ')
    note="this kernel has no fair server, or keeps debugfs to itself"
}
fair_server_read() {
    note="the kernel does not permit to look at the fair server of $1 (lockdown)"
    value=$(with_debugfs cat "$FAIR_SERVER/$1/runtime") && [ -n "$value" ]
}
fair_server_write() {
    # shellcheck disable=SC2016 # they are of the other shell
    with_debugfs sh -c 'echo "$2" >"$1"' sh "$FAIR_SERVER/$1/runtime" "$2" || {
        note="the kernel refuses $2"
        return 1
    }
}

# governor all: of every CPU whose frequency can be governed. Target: cpuN.
governor_targets() {
    local file
    targets=
    for file in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
        [ -e "$file" ] || continue
        file=${file#/sys/devices/system/cpu/}
        targets="$targets ${file%%/*}"
    done
    note="no CPU frequency can be governed"
}
governor_read() {
    note="$1 has no governor"
    read_words "/sys/devices/system/cpu/$1/cpufreq/scaling_governor"
}
governor_write() { write_text "/sys/devices/system/cpu/$1/cpufreq/scaling_governor" "$2"; }

# idle latency-max-us: sleep states of every CPU. Target: cpuN/stateM. Its value is its exit latency in microseconds while it is
# enabled, and `off` otherwise; wanted is the longest latency that may stay enabled.
idle_targets() {
    local state
    targets=
    for state in /sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*; do
        [ -e "$state/disable" ] || continue
        state=${state#/sys/devices/system/cpu/}
        targets="$targets ${state%%/*}/${state##*/}"
    done
    note="no sleep state can be chosen"
}
idle_read() {
    local state="/sys/devices/system/cpu/${1%/*}/cpuidle/${1#*/}"
    note="$1 does not exist"
    read_words "$state/disable" || return 1
    if [ "$value" != 0 ]; then
        value=off
    else
        read_words "$state/latency"
    fi
}
idle_write() {
    local disable=0
    [ "$2" != off ] || disable=1
    write_text "/sys/devices/system/cpu/${1%/*}/cpuidle/${1#*/}/disable" "$disable"
}

# Settings of the test card. Target: INTERFACE/NAME.
nic_setting_targets() { # NAME
    targets=
    note="no test interface was named"
    [ -z "$TEST_INTERFACE" ] || targets="$TEST_INTERFACE/$1"
}

# offload SHORT: a feature by ethtool's short name.
offload_long_name() { # SHORT
    case $1 in
    gro) echo generic-receive-offload ;;
    gso) echo generic-segmentation-offload ;;
    lro) echo large-receive-offload ;;
    tso) echo tcp-segmentation-offload ;;
    rx) echo rx-checksumming ;;
    tx) echo tx-checksumming ;;
    *) echo "$1" ;;
    esac
}
offload_targets() { nic_setting_targets "$1"; }
offload_read() {
    note="${1%/*} has no such feature"
    value=$(ethtool -k "${1%/*}" 2>/dev/null | sed -n "s/^[[:blank:]]*$(offload_long_name "${1#*/}"): //p")
    # `off [fixed]` and `off [requested on]`: what it is, not whether it could be otherwise.
    value=${value%% *}
    [ -n "$value" ]
}
offload_write() {
    ethtool -K "${1%/*}" "${1#*/}" "$2" >/dev/null 2>&1 || {
        note="the driver fixes it"
        return 1
    }
}

# coalesce NAME: rx-usecs and the like, or adaptive-rx.
coalesce_targets() { nic_setting_targets "$1"; }
coalesce_read() {
    local expression="s/^${1#*/}:[[:blank:]]*//p"
    note="the driver of ${1%/*} cannot"
    case $1 in
    */adaptive-rx) expression='s/^Adaptive RX: \([^ ]*\).*/\1/p' ;;
    */adaptive-tx) expression='s/^Adaptive RX:.*TX: //p' ;;
    esac
    value=$(ethtool -c "${1%/*}" 2>/dev/null | sed -n "$expression")
    [ -n "$value" ] && [ "$value" != n/a ]
}
coalesce_write() {
    ethtool -C "${1%/*}" "${1#*/}" "$2" >/dev/null 2>&1 || {
        note="the driver refuses $2"
        return 1
    }
}

# nic ATTRIBUTE: a file below /sys/class/net/INTERFACE.
nic_targets() { nic_setting_targets "$1"; }
nic_read() {
    note="${1%/*} has no ${1#*/}"
    read_words "/sys/class/net/$1"
}
nic_write() { write_text "/sys/class/net/$1" "$2"; }

# Interrupts of the test card, in $card_irqs: of the PCI device, which for virtio is the parent of the card's own.
card_irqs_find() {
    local device irq
    card_irqs=
    [ -n "$TEST_INTERFACE" ] || return 0
    for device in "/sys/class/net/$TEST_INTERFACE/device" "/sys/class/net/$TEST_INTERFACE/device/.."; do
        for irq in "$device"/msi_irqs/[0-9]*; do
            [ ! -e "$irq" ] || card_irqs="$card_irqs ${irq##*/}"
        done
        [ -z "$card_irqs" ] || return 0
    done
    for device in "/sys/class/net/$TEST_INTERFACE/device" "/sys/class/net/$TEST_INTERFACE/device/.."; do
        [ -r "$device/irq" ] || continue
        read_words "$device/irq"
        [ "$value" = 0 ] || card_irqs=$value
        return 0
    done
}

# irq_cpu all: CPUs that may serve each interrupt of the test card. Target: number of the interrupt.
irq_cpu_targets() {
    card_irqs_find
    targets=$card_irqs
    note="no test interface was named, or it has no interrupt"
}
irq_cpu_read() {
    note="there is no interrupt $1"
    read_words "/proc/irq/$1/smp_affinity_list"
}
irq_cpu_write() {
    write_text "/proc/irq/$1/smp_affinity_list" "$2" || {
        note="the kernel manages the CPU of interrupt $1"
        return 1
    }
}

# irq_priority all: policy and priority of the threads that serve the card's interrupts. Target: number of the interrupt.
irq_priority_targets() {
    card_irqs_find
    targets=$card_irqs
    note="no test interface was named, or it has no interrupt"
}
irq_thread_of() { # IRQ; sets $pid
    local name
    for pid in /proc/[0-9]*; do
        { read -r name <"$pid/comm"; } 2>/dev/null || continue
        case $name in "irq/$1-"*)
            pid=${pid#/proc/}
            return 0
            ;;
        esac
    done
    note="no thread serves interrupt $1"
    return 1
}
# Policy and priority of a thread, as `fifo:51`.
scheduling_read() { # PID
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    # Fields 40 and 41 of proc(5): rt_priority and policy; the first after the name, which ends with `)`, is field 3.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    case ${39} in
    1) value=fifo:${38} ;;
    2) value=rr:${38} ;;
    *) value=other:0 ;;
    esac
}
scheduling_write() { # PID VALUE
    chrt "--${2%:*}" --pid "${2#*:}" "$1" >/dev/null 2>&1 || {
        note="chrt refuses $2 for thread $1"
        return 1
    }
}
irq_priority_read() {
    local pid
    irq_thread_of "$1" && scheduling_read "$pid"
}
irq_priority_write() {
    local pid
    irq_thread_of "$1" && scheduling_write "$pid" "$2"
}

# thread PREFIX: policy and priority of the kernel's threads whose names begin so. Target: name of the thread.
thread_targets() { # PREFIX
    local name pid
    targets=
    note="no thread of the kernel is named $1…"
    for pid in /proc/[0-9]*; do
        # Threads of the kernel have no command line.
        { read -r name <"$pid/comm"; } 2>/dev/null || continue
        case $name in "$1"*) [ -n "$(tr -d '\0' <"$pid/cmdline" 2>/dev/null)" ] || targets="$targets $name" ;; esac
    done
}
thread_find() { # NAME; sets $pid
    local name
    for pid in /proc/[0-9]*; do
        { read -r name <"$pid/comm"; } 2>/dev/null || continue
        [ "$name" != "$1" ] || { pid=${pid#/proc/} && return 0; }
    done
    note="there is no thread $1"
    return 1
}
thread_read() {
    local pid
    thread_find "$1" && scheduling_read "$pid"
}
thread_write() {
    local pid
    thread_find "$1" && scheduling_write "$pid" "$2"
}

# clock NAME: the kernel's idea of time, as bw-setclock prints it: frequency_ppb (rounded), tick_us, tai_utc_s, status (the bits that
# can be written). Only in the undo file of a clock stack.
clock_targets() { targets=$1; }
clock_read() {
    note="bw-setclock does not say $1"
    value=$(bw-setclock 2>/dev/null | sed -n "s/.*\"$1\":\(-\{0,1\}[0-9.]*\).*/\1/p")
    [ -n "$value" ] || return 1
    case $1 in
    frequency_ppb) value=$(printf '%.0f' "$value") ;;
    status) value=$((value & 255)) ;;
    esac
}
clock_write() {
    local option="--$1"
    case $1 in
    frequency_ppb) option=--frequency-ppb ;;
    tick_us) option=--tick-us ;;
    tai_utc_s) option=--tai-utc-s ;;
    esac
    bw-setclock "$option" "$2" >/dev/null 2>&1 || {
        note="bw-setclock refuses $2"
        return 1
    }
}

# phc DEVICE: the frequency correction of a card's clock, in ppb. Only in the undo file of a clock stack.
phc_targets() { targets=$1; }
phc_read() {
    note="$1 has no frequency"
    value=$(phc_ctl "$1" freq 2>&1 | sed -n 's/.* \(-\{0,1\}[0-9.]*\)ppb.*/\1/p')
    [ -n "$value" ] || return 1
    value=$(printf '%.0f' "$value")
}
phc_write() {
    phc_ctl -q "$1" freq "$2" >/dev/null 2>&1 || {
        note="phc_ctl refuses $2"
        return 1
    }
}

# daemon NAME: what clock.sh has started under this name; it bears the name in its environment. Only in the undo file of a clock stack.
daemon_pids() { # NAME
    grep -lzx "BENCHWRIGHT_DAEMON=$1" /proc/[0-9]*/environ 2>/dev/null | sed 's/[^0-9]//g'
}
daemon_targets() { targets=$1; }
daemon_read() {
    value=ended
    [ -z "$(daemon_pids "$1")" ] || value=running
}
daemon_write() {
    local pids tries=40 signal=TERM
    while pids=$(daemon_pids "$1") && [ -n "$pids" ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || {
            note="it does not end"
            return 1
        }
        [ "$tries" -gt 10 ] || signal=KILL
        # shellcheck disable=SC2086  # one word a process
        kill "-$signal" $pids 2>/dev/null || :
        sleep 0.1
    done
    return 0
}

# page FILE: what the time service publishes; there or absent. Only in the undo file of a clock stack.
page_targets() { targets=$1; }
page_read() {
    value=absent
    [ ! -e "$1" ] || value=there
}
page_write() {
    [ "$2" = there ] || rm -f "$1"
}
