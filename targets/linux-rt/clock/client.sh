#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The clock stack of a target. Run as root on it; the configuration lies in /run/benchwright/clock/config already.
#
#   client.sh start STACK   stop other time services and start this one's daemons; old values first into the undo file
#   client.sh hold          holdover: stop listening to the server, keep the frequency
#   client.sh resume        listen again
#   client.sh status        NDJSON: how each daemon is, what the clock shows
#   client.sh stop          end the daemons; put clock and time services back as they were; harmless when nothing runs, and twice
#
# STACK is the name of a file of stacks/ (clock.sh says what stands in one).
#
# Exit codes: 0 done; 1 something could not be put back; 2 bad argument; 3 not permitted, or something is missing; 4 not in this
# state; 5 busy, or an earlier run cannot be undone.
# shellcheck source=targets/linux-rt/clock/clock.sh
. "$(dirname "$0")/clock.sh"

role_start() { call_stack stack_start; }
role_hold() { call_stack stack_hold; }
role_resume() { call_stack stack_resume; }

[ $# -ge 1 ] || die 2 "a verb is needed: start, hold, resume, status, stop"
run_verb "$@"
