#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program that knows nothing of phases: it notes the machine's load until it is ended.
echo watching
while :; do
	cat /proc/loadavg >>load
	sleep 0.1
done
