# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# What of a machine is its own: all of it, or, of a network namespace of its bench's own host, what the kernel keeps for each
# namespace. What is shared with the host is said and never set. Sourced, never run.

SHARED_NOTE="shared with the bench's host, where it is left as it is"
# Of facts: what a namespace has from its host.
# shellcheck disable=SC2034  # used by facts.sh
SHARED_FACTS='"kernel","processors","memory","system clock","interrupts","time services"'

# Refuse a scope that is none, and a namespace from which the host's settings could be written: what is brought here for a namespace
# would say of a machine of its own that all of it is shared.
require_scope() {
    case $SCOPE in
    machine) return 0 ;;
    namespace) ;;
    *) die 2 "unknown scope \"$SCOPE\"; allowed: machine, namespace" ;;
    esac
    # Its fields: device, place, kind, options.
    awk '$2 == "/proc/sys" { last = $4 } END { exit last !~ /(^|,)ro(,|$)/ }' /proc/self/mounts ||
        die 3 "this is no namespace that the bench has made: /proc/sys is not read-only"
}

# Tell whether a setting is shared with the host: one of its places is enough.
shared_with_host() { # KIND TARGETS
    local target
    [ "$SCOPE" = namespace ] || return 1
    case $1 in
    tool | offload | coalesce | nic) return 1 ;;
    sysctl)
        for target in $2; do
            case $target in net/*) ;; *) return 0 ;; esac
            # What is of all namespaces the kernel shows in another one not at all, or lets nobody write it there.
            [ -w "/proc/sys/$target" ] || return 0
        done
        return 1
        ;;
    esac
    return 0
}

# Report a shared setting as one item, with all that its places hold.
report_shared() { # KIND NAME WANTED WHY TARGETS
    local target value='' found=''
    for target in $5; do
        "$1_read" "$target" || continue
        case " $found " in *" $value "*) ;; *) found="${found:+$found }$value" ;; esac
    done
    report 'not applicable' "$1" "$2" "$3" "$found" false "$4" "$SHARED_NOTE${found:+: $found}"
}
