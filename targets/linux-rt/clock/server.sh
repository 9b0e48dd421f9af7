#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The time server of a clock stack: PTP grandmaster or NTP server, with a clock that wanders. Run as root on it; the configuration
# lies in /run/benchwright/clock/config already.
#
#   server.sh start STACK   as client.sh; what nobody serves, phc2sys, goes with free-run
#   server.sh hold          vanish: stop serving, the clock wanders on; a standby grandmaster, where one is configured, serves on
#   server.sh resume        serve again
#   server.sh status, stop  as client.sh
# shellcheck source=targets/linux-rt/clock/clock.sh
. "$(dirname "$0")/clock.sh"

role_start() {
    # Who serves does not touch the clock: only what wanders it has to be put back, unless the bench lets it wander itself.
    if [ -e "$CONFIG/bw-wander.arguments" ]; then
        keep_system_clock
        need_program bw-wander
        daemon_start_with bw-wander.arguments bw-wander bw-wander
    fi
    call_stack server_start
    # A second grandmaster with an identity of its own: both serve the same clock. linuxptp does not loop its multicasts back, so
    # both announce, and the target chooses.
    [ ! -e "$CONFIG/ptp4l-standby.conf" ] || daemon_start ptp4l-standby ptp4l -f "$CONFIG/ptp4l-standby.conf"
}

role_hold() { call_stack server_hold; }
role_resume() { call_stack server_start; }

[ $# -ge 1 ] || die 2 "a verb is needed: start, hold, resume, status, stop"
run_verb "$@"
