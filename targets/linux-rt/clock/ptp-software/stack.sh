# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# PTP with the kernel's stamps.
# shellcheck source=targets/linux-rt/clock/linuxptp.sh
. "$HERE/linuxptp.sh"

stack_start() {
    need_program ptp4l
    keep_system_clock
    daemon_start ptp4l ptp4l -f "$CONFIG/ptp4l-client.conf"
}

server_start() { serve_ptp; }
server_hold() { end_daemons ptp4l; }
