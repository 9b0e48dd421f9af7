#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# Prepare a Debian machine to be measured, say what it is, and put it back. Run as root on the target.
#
#   provision.sh [--interface NAME] [--settings FILE] [--undo NAME] [--scope SCOPE] VERB
#
#   check     compare every setting with what settings.conf wants; changes nothing
#   apply     set what differs, old values first into the undo file; what is right already is not touched
#   restore   put every old value back; harmless when there is none, after half an apply, and twice
#   facts     print what this machine is, as one JSON object; the same facts give the same bytes
#
#   --interface NAME   the test network's card; without it no setting of a card applies, and the control network's is
#                      never touched
#   --settings FILE    instead of settings.conf beside this script
#   --undo NAME        where old values go: undo (default), or stack.undo for the settings of a network stack. `restore` gives
#                      back what is in stack.undo alone; without this option also what a clock stack (clock.undo) and a network
#                      stack have left that were not stopped
#   --scope SCOPE      machine (default), or namespace: of a target that is a network namespace of its bench's own host. Then
#                      only what belongs to the namespace is set (its card, what the kernel keeps of net/ for each namespace);
#                      every other setting is reported as shared with the host, with what it is there, and never written
#
# check, apply and restore print NDJSON: one line an item
#   {"type":"item","item","status","ok","wanted","found","changed","why","note"}
# (status: ok, wrong, not applicable; found: before a change; note: what is in the way) and at the end
#   {"type":"summary","verb","items","ok","wrong","not_applicable","changed"}.
#
# Exit codes: 0 all is as wanted; 1 something is not; 2 bad argument or settings; 3 not root, or with --scope namespace a machine
# that could write the settings of its host; 5 another provisioning runs.
# Files are in ${BENCHWRIGHT_STATE:-/var/lib/benchwright}. Settings are those of the running kernel: a reboot undoes them.
set -eu
export LC_ALL=C

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=${BENCHWRIGHT_STATE:-/var/lib/benchwright}
export PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$STATE/bin"
LEFT='stack.undo clock.undo undo'
UNDO=$STATE/undo
SETTINGS=$HERE/settings.conf
SCOPE=machine
TEST_INTERFACE=

# shellcheck source=targets/linux-rt/provision/json.sh
. "$HERE/json.sh"
# shellcheck source=targets/linux-rt/provision/kinds.sh
. "$HERE/kinds.sh"
# shellcheck source=targets/linux-rt/provision/undo.sh
. "$HERE/undo.sh"
# shellcheck source=targets/linux-rt/provision/items.sh
. "$HERE/items.sh"
# shellcheck source=targets/linux-rt/provision/scope.sh
. "$HERE/scope.sh"
# shellcheck source=targets/linux-rt/provision/facts.sh
. "$HERE/facts.sh"

die() { # CODE TEXT
    echo "provision.sh: $2" >&2
    exit "$1"
}

# each_setting CALLBACK: call CALLBACK KIND NAME WANTED WHY for every setting, in the file's order.
each_setting() {
    local line why='' number=0 kind name
    while IFS= read -r line <&3; do
        number=$((number + 1))
        case $line in
        '') why='' ;;
        '#'*)
            line=${line#\#}
            why="${why:+$why }${line# }"
            ;;
        *)
            # shellcheck disable=SC2086
            set -f && set -- "$1" $line && set +f
            [ $# -ge 4 ] || die 2 "$SETTINGS:$number: must be KIND NAME WANTED…"
            kind_known "$2" || die 2 "$SETTINGS:$number: unknown kind \"$2\""
            kind=$2 name=$3
            callback=$1
            shift 3
            "$callback" "$kind" "$name" "$*" "$why"
            set -- "$callback"
            why=''
            ;;
        esac
    done 3<"$SETTINGS"
}

# goal_of KIND WANTED FOUND: set $goal to what has to be written; return 0 if what was found is as wanted already.
goal_of() {
    local online
    goal=$2
    case $1:$2 in
    idle:*)
        goal=off
        [ "$3" = off ] || [ "$3" -le "$2" ]
        return
        ;;
    *:'>='*)
        goal=${2#>=}
        [ "$3" -ge "$goal" ]
        return
        ;;
    irq_cpu:last)
        read -r online </sys/devices/system/cpu/online
        goal=${online##*[-,]}
        ;;
    esac
    [ "$3" = "$goal" ]
}

# visit MODE KIND NAME WANTED WHY: check or apply one setting at all of its places.
visit() {
    local mode=$1 kind=$2 wanted=$4 why=$5 target targets='' note='' value='' goal='' found
    "${kind}_targets" "$3"
    if shared_with_host "$kind" "$targets"; then
        report_shared "$kind" "$3" "$wanted" "$why" "$targets"
        return
    fi
    [ -n "$targets" ] || report 'not applicable' "$kind" "$3" "$wanted" '' false "$why" "$note"
    for target in $targets; do
        note=''
        if ! "${kind}_read" "$target"; then
            report 'not applicable' "$kind" "$target" "$wanted" '' false "$why" "$note"
            continue
        fi
        found=$value note=''
        if goal_of "$kind" "$wanted" "$found"; then
            report ok "$kind" "$target" "$wanted" "$found" false "$why" ''
        elif [ "$mode" = check ] || ! kind_writable "$kind"; then
            report wrong "$kind" "$target" "$wanted" "$found" false "$why" ''
        elif undo_record "$kind" "$target" "$found" && "${kind}_write" "$target" "$goal" &&
            "${kind}_read" "$target" && goal_of "$kind" "$wanted" "$value"; then
            report ok "$kind" "$target" "$wanted" "$found" true "$why" ''
        else
            report wrong "$kind" "$target" "$wanted" "$found" false "$why" "${note:-it did not stay}"
        fi
    done
}

visit_check() { visit check "$@"; }
visit_apply() { visit apply "$@"; }

while [ $# -gt 0 ]; do
    case $1 in
    --interface | --settings | --undo | --scope)
        [ $# -ge 2 ] || die 2 "$1 needs a value"
        case $1 in
        --interface) TEST_INTERFACE=$2 ;;
        --settings) SETTINGS=$2 ;;
        --undo)
            case $2 in
            undo) ;;
            stack.undo) LEFT=$2 UNDO=$STATE/$2 ;;
            *) die 2 "--undo $2: must be undo or stack.undo" ;;
            esac
            ;;
        --scope) SCOPE=$2 ;;
        esac
        shift 2
        ;;
    --help)
        sed -n '4,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"
        exit 0
        ;;
    -*) die 2 "unknown option $1; allowed: --interface, --settings, --undo, --scope, --help" ;;
    *) break ;;
    esac
done
[ $# -eq 1 ] || die 2 "one verb is needed: check, apply, restore or facts"
[ -r "$SETTINGS" ] || die 2 "$SETTINGS cannot be read"
[ -z "$TEST_INTERFACE" ] || [ -e "/sys/class/net/$TEST_INTERFACE" ] || die 2 "there is no interface $TEST_INTERFACE"
[ "$(id -u)" -eq 0 ] || die 3 "root is needed"
require_scope

case $1 in
check)
    each_setting visit_check
    report_summary check
    ;;
apply)
    lock_state
    each_setting visit_apply
    report_summary apply
    ;;
restore)
    lock_state
    # What was put on last comes off first.
    for name in $LEFT; do
        # shellcheck disable=SC2034  # used by undo.sh
        UNDO=$STATE/$name
        undo_replay put_back || :
    done
    report_summary restore
    ;;
facts) facts_print ;;
*) die 2 "unknown verb $1; allowed: check, apply, restore, facts" ;;
esac
[ "$count_wrong" -eq 0 ]
