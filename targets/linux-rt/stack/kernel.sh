#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The kernel's network stack on an interface: nothing to put on, nothing to give back.
#
#   kernel.sh --interface NAME apply      says what it goes through: one JSON object
#   kernel.sh --interface NAME restore
#
# Exit codes: 0, 2 wrong arguments, 3 the interface is not there, or down.
set -eu
# shellcheck source=targets/linux-rt/provision/json.sh
. "$(dirname "$0")/json.sh"

usage() {
    echo "kernel.sh --interface NAME apply|restore" >&2
    exit 2
}

read_sys() {
    value=''
    [ ! -r "/sys/class/net/$interface/$1" ] || value=$(cat "/sys/class/net/$interface/$1" 2>/dev/null) || value=''
}

[ "$#" -eq 3 ] || usage
[ "$1" = --interface ] || usage
interface=$2
case $3 in
restore) exit 0 ;;
apply) ;;
*) usage ;;
esac
if [ ! -e "/sys/class/net/$interface" ]; then
    echo "there is no interface $interface" >&2
    exit 3
fi
read_sys operstate
state=$value
if [ "$state" = down ]; then
    echo "interface $interface is down" >&2
    exit 3
fi
read_sys mtu
mtu=$value
read_sys tx_queue_len
queue=$value
qdisc=$(ip link show dev "$interface" | sed -n 's/.* qdisc \([^ ]*\).*/\1/p')
json_object type stack stack kernel interface "$interface" state "$state" mtu_bytes "json:${mtu:-null}" \
    queue_packets "json:${queue:-null}" qdisc "$qdisc"
printf '%s\n' "$json"
