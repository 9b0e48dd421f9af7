# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# chronyd on both sides.

chrony_command() {
    chronyc -h "$RUN/chrony/command/chronyd.sock" "$@" >/dev/null || die 4 "chronyc $*: it does not answer"
}

stack_start() {
    need_program chronyd chronyc
    keep_system_clock
    daemon_start chronyd chronyd -d -u root -f "$CONFIG/chrony-client.conf"
}

stack_hold() { chrony_command offline; }
stack_resume() { chrony_command online; }

server_start() {
    need_program chronyd
    # -x: it may not touch the clock.
    daemon_start chronyd chronyd -d -x -u root -f "$CONFIG/chrony-server.conf"
}

server_hold() { end_daemons chronyd; }
