# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# Nothing steers the clock.

stack_start() { keep_system_clock; }
stack_hold() { :; }
stack_resume() { :; }
server_start() { :; }
server_hold() { :; }
