# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# PTP with the cards' stamps.
# shellcheck source=targets/linux-rt/clock/linuxptp.sh
. "$HERE/linuxptp.sh"

stack_start() {
    need_program ptp4l phc2sys phc_ctl
    keep_phc_and_clock
    daemon_start ptp4l ptp4l -f "$CONFIG/ptp4l-client.conf"
    daemon_start_with phc2sys-hardware.arguments phc2sys phc2sys
}

server_start() { serve_ptp; }
server_hold() { end_daemons ptp4l; }
