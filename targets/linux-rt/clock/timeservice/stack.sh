# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The project's time service. It touches no clock.

# What it publishes; its programs know no other place.
TIME_PAGE=/run/benchwright/time/page

stack_start() {
    need_program bw-timed
    # What it has published is gone with the service: a later reader must not take it for a time.
    keep page "$TIME_PAGE"
    mkdir -p "${TIME_PAGE%/*}"
    daemon_start_with bw-timed.arguments bw-timed bw-timed
}

stack_hold() { signal_daemon bw-timed USR1; }

stack_resume() {
    if [ -n "$(daemon_pids bw-timed)" ]; then
        signal_daemon bw-timed USR2
    else
        # The log goes on: readers see one service that was away.
        daemon_start_with bw-timed.arguments bw-timed bw-timed
    fi
}
