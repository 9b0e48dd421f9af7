#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Print name and version of each package that was fetched for a root and only unpacked: dpkg keeps no record of those.
# usage: list-packages.sh ROOT
set -eu

# shellcheck disable=SC2016 # ${NAME} is dpkg-deb's own notation, not the shell's
for package in "$1"/var/cache/apt/archives/*.deb; do
    dpkg-deb --show --showformat '${Package} ${Version}\n' "$package"
done
