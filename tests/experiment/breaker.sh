#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A component that speaks the lines of phases by hand: it keeps data in each phase, and breaks in one of them as it is told.
# $1: how it breaks before it is ready, or nothing.

broken() {
	case $1 in
	killed) kill -KILL $$ ;;
	hangs)
		trap '' TERM
		setsid sleep 10000 & # it is not the only one that stays
		while :; do sleep 10000; done
		;;
	waits) sleep 10000 ;; # for what its node does
	exits) exit 1 ;;
	floods) while :; do echo 'too much, and much more than anybody wants to read' >&2; done ;;
	disk-full)
		# On this machine: who else is on that disk has its files first.
		while [ -z "${PWD##*/experiment-p01-first}" ] && [ ! -e ../experiment-p02-second/data ]; do sleep 0.05; done
		while :; do dd if=/dev/zero bs=65536 count=1 status=none >>data || exit 3; done
		;;
	esac
}

echo start >>data
broken "$1"
echo '{"type":"ready","schema":"benchwright.phase/1","phases":["prepare","work","finish"]}'
while read -r line; do
	phase=${line#*'"name":"'}
	phase=${phase%%'"'*}
	echo "$phase" >>data
	case $line in
	*'"fault":"'*)
		fault=${line#*'"fault":"'}
		broken "${fault%%'"'*}"
		;;
	esac
	echo "{\"type\":\"done\",\"phase\":\"$phase\",\"values\":{}}"
done
