#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The clock stack of a target. Run as root on it; the configuration lies in /run/benchwright/clock/config already.
#
#   client.sh start STACK   stop other time services and start this one's daemons: free-run, chrony, ntp-user, timeservice,
#                           ptp-software, ptp-hardware, phc2sys; old values first into the undo file
#   client.sh hold          holdover: stop listening to the server, keep the frequency
#   client.sh resume        listen again; a time service that was killed is started anew
#   client.sh status        NDJSON: how each daemon is, what the clock shows
#   client.sh stop          end the daemons; put clock and time services back as they were; harmless when nothing runs, and twice
#
# Exit codes: 0 done; 1 something could not be put back; 2 bad argument; 3 not permitted, or something is missing; 4 not in this
# state; 5 busy, or an earlier run cannot be undone.
# shellcheck source=targets/linux-rt/clock/clock.sh
. "$(dirname "$0")/clock.sh"

chrony_command() {
    chronyc -h "$RUN/chrony/command/chronyd.sock" "$@" || die 4 "chronyc $*: it does not answer"
}

need_phc() { # DEVICE
    [ -c "$1" ] || die 3 "no PHC: there is no device $1"
    phc_ctl -q "$1" caps >/dev/null 2>&1 || die 3 "no PHC: $1 does not answer as one"
}

start_stack() { # STACK
    local device
    case $1 in
    free-run) keep_system_clock ;;
    chrony)
        need_program chronyd chronyc
        keep_system_clock
        daemon_start chronyd chronyd -d -u root -f "$CONFIG/chrony-client.conf"
        ;;
    ntp-user)
        need_program bw-ntp-user
        keep_system_clock
        daemon_start_with bw-ntp-user.arguments bw-ntp-user bw-ntp-user
        ;;
    timeservice)
        # It touches no clock. What it has published is gone with the service: a later reader must not take it for a time.
        need_program bw-timed
        keep page "$TIME_PAGE"
        mkdir -p "${TIME_PAGE%/*}"
        daemon_start_with bw-timed.arguments bw-timed bw-timed
        ;;
    ptp-software)
        need_program ptp4l
        keep_system_clock
        daemon_start ptp4l ptp4l -f "$CONFIG/ptp4l-client.conf"
        ;;
    ptp-hardware)
        need_program ptp4l phc2sys phc_ctl
        device=$(cat "$CONFIG/phc")
        need_phc "$device"
        keep_system_clock
        keep phc "$device"
        daemon_start ptp4l ptp4l -f "$CONFIG/ptp4l-client.conf"
        daemon_start_with phc2sys-hardware.arguments phc2sys phc2sys
        ;;
    phc2sys)
        need_program phc2sys phc_ctl bw-wander
        device=$(cat "$CONFIG/phc")
        need_phc "$device"
        keep_system_clock
        keep phc "$device"
        # A card that is connected to nothing shows any time: it gets TAI, by this machine's clock.
        [ ! -e "$CONFIG/phc-preset" ] || phc_ctl -q "$device" set adj "$(cat "$CONFIG/phc-preset")" >/dev/null
        [ ! -e "$CONFIG/bw-wander.arguments" ] || daemon_start_with bw-wander.arguments bw-wander bw-wander
        daemon_start_with phc2sys.arguments phc2sys phc2sys
        ;;
    esac
}

# linuxptp's daemons leave the clock, at their end, with the frequency that they had set last; they have no other way to let go.
hold_stack() { # STACK
    local daemon
    case $1 in
    chrony) chrony_command offline >/dev/null ;;
    ntp-user) signal_daemon bw-ntp-user USR1 ;;
    timeservice) signal_daemon bw-timed USR1 ;;
    ptp-software | ptp-hardware | phc2sys)
        for daemon in phc2sys ptp4l; do
            grep -qx "$daemon" "$RUN/daemons" || continue
            daemon_write "$daemon" ended || die 4 "$daemon does not end"
        done
        ;;
    free-run) ;;
    esac
}

resume_stack() { # STACK
    case $1 in
    chrony)
        chrony_command online >/dev/null
        ;;
    ntp-user) signal_daemon bw-ntp-user USR2 ;;
    timeservice)
        if [ -n "$(daemon_pids bw-timed)" ]; then
            signal_daemon bw-timed USR2
        else
            # The log goes on: readers see one service that was away.
            daemon_start_with bw-timed.arguments bw-timed bw-timed
        fi
        ;;
    ptp-software | ptp-hardware | phc2sys)
        # The old logs stay: what begins is a new life of the same daemon.
        die 4 "$1 is not resumed: start it again"
        ;;
    free-run) ;;
    esac
}

[ $# -ge 1 ] || die 2 "a verb is needed: start, hold, resume, status, stop"
run_verb "$@"
