#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Set up this machine as a bench host: Debian packages, Python environment, native tools.
#
#   hw/host/setup.sh          what `make qualify` needs
#   hw/host/setup.sh --dev    and what `make test`, `make lint` and `make bench` need besides
#
# May be run at any time: what is there already is left alone. Starts and enables no service.
# Exit codes: 0 ready; 1 a step failed (its log is named); 2 bad arguments; 3 something is missing that
# cannot be installed from here (it is named, with the way to get it).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. hw/host/progress.sh
. hw/host/apt.sh
. hw/host/packages.sh
. hw/host/python.sh
. hw/host/sources.sh
. hw/host/native.sh

SETUP_ARGUMENTS=$*
case $SETUP_ARGUMENTS in
    "") use=bench uses=bench ;;
    --dev) use=dev uses="bench dev" ;;
    -h | --help)
        sed -n '3,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *) die "$EXIT_BAD_INPUT" "setup.sh: unknown argument \"$SETUP_ARGUMENTS\"; allowed: --dev, --help" ;;
esac

mkdir -p "$BUILD_DIR"
# A second set-up at the same time waits for the first. flock comes with util-linux, which Debian always has.
exec 9>"$BUILD_DIR/setup.lock"
flock -n 9 || {
    echo "setup     waiting for another set-up in this folder ..."
    flock 9
}

packages_ensure "$uses"
python_ensure "$use"
mapfile -t cross_variants < <(native_cross_variants)
[[ $use == dev ]] || NATIVE_TESTS=false
native_ensure linux static "${cross_variants[@]}"
printf '%-9s %s\n' setup "ready after $SECONDS s"
