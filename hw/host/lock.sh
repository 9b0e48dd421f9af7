#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Write the *.lock files beside the *.in files: exact versions with hashes, no address of any registry.
#
#   hw/host/lock.sh             resolve what the *.in files ask for, keeping locked versions where possible
#   hw/host/lock.sh --upgrade   take the newest versions that fit
#
# requirements-dev.lock has only what requirements.lock does not have: a version stands in one place.
# Needs the environment of set-up (.build/uv). The locks are for Python 3.11 and newer, wheels only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
uv=../../.build/uv/bin/uv
unset PIP_FIND_LINKS UV_FIND_LINKS

lock() {
    local source=$1 target=$2
    shift 2
    "$uv" pip compile "$source" -o "$target" --quiet --python-version 3.11 --only-binary :all: --generate-hashes \
        --no-header --no-emit-index-url --no-emit-find-links "$@"
    sed -i '1i # SPDX-License-Identifier: Apache-2.0\n# Made by hw/host/lock.sh; do not edit.' "$target"
}

lock uv.in uv.lock "$@"
lock requirements.in requirements.lock "$@"
mapfile -t locked < <(sed -n 's/==.*//p' requirements.lock)
lock requirements-dev.in requirements-dev.lock --constraint requirements.lock "${locked[@]/#/--no-emit-package=}" "$@"
