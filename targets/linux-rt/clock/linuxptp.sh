# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# What the stacks of linuxptp have in common. Sourced by theirs, never run.

need_phc() { # DEVICE
    [ -c "$1" ] || die 3 "no PHC: there is no device $1"
    phc_ctl -q "$1" caps >/dev/null 2>&1 || die 3 "no PHC: $1 does not answer as one"
}

# Check the PHC that the configuration names, and write down its frequency and the system clock's values.
keep_phc_and_clock() {
    phc=$(cat "$CONFIG/phc")
    need_phc "$phc"
    keep_system_clock
    keep phc "$phc"
}

# linuxptp's daemons leave the clock, at their end, with the frequency that they had set last; they have no other way to let go.
stack_hold() {
    local daemon
    for daemon in phc2sys ptp4l; do
        ! grep -qx "$daemon" "$RUN/daemons" || end_daemons "$daemon"
    done
}

# shellcheck disable=SC2154  # $stack: clock.sh's
# The old logs stay: what would begin is a new life of the same daemon.
stack_resume() { die 4 "$stack is not resumed: start it again"; }

# A grandmaster.
serve_ptp() {
    need_program ptp4l
    daemon_start ptp4l ptp4l -f "$CONFIG/ptp4l-server.conf"
}
