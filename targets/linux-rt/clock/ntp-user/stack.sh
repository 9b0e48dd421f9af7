# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The project's plain NTP client.

stack_start() {
    need_program bw-ntp-user
    keep_system_clock
    daemon_start_with bw-ntp-user.arguments bw-ntp-user bw-ntp-user
}

stack_hold() { signal_daemon bw-ntp-user USR1; }
stack_resume() { signal_daemon bw-ntp-user USR2; }
