#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The time server of a clock stack: PTP grandmaster or NTP server, with a clock that wanders. Run as root on it; the configuration
# lies in /run/benchwright/clock/config already.
#
#   server.sh start STACK   as client.sh; phc2sys and free-run serve nothing
#   server.sh hold          vanish: stop serving, the clock wanders on; a standby grandmaster, where one is configured, serves on
#   server.sh resume        serve again
#   server.sh status, stop  as client.sh
# shellcheck source=targets/linux-rt/clock/clock.sh
. "$(dirname "$0")/clock.sh"

serve() { # STACK
    case $1 in
    chrony | ntp-user)
        need_program chronyd
        # -x: it may not touch the clock.
        daemon_start chronyd chronyd -d -x -u root -f "$CONFIG/chrony-server.conf"
        ;;
    ptp-software | ptp-hardware)
        need_program ptp4l
        daemon_start ptp4l ptp4l -f "$CONFIG/ptp4l-server.conf"
        ;;
    phc2sys | free-run) ;;
    esac
}

start_stack() { # STACK
    # Who serves does not touch the clock: only what wanders it has to be put back, unless the bench lets it wander itself.
    if [ -e "$CONFIG/bw-wander.arguments" ]; then
        keep_system_clock
        need_program bw-wander
        daemon_start_with bw-wander.arguments bw-wander bw-wander
    fi
    serve "$1"
    # A second grandmaster with an identity of its own: both serve the same clock.
    [ ! -e "$CONFIG/ptp4l-standby.conf" ] || daemon_start ptp4l-standby ptp4l -f "$CONFIG/ptp4l-standby.conf"
}

hold_stack() { # STACK
    local daemon
    for daemon in chronyd ptp4l; do
        daemon_write "$daemon" ended || die 4 "$daemon does not end"
    done
}

resume_stack() { serve "$1"; }

[ $# -ge 1 ] || die 2 "a verb is needed: start, hold, resume, status, stop"
run_verb "$@"
