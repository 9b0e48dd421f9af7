#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Give an empty root the merged /usr of Debian, which its installer makes before it unpacks anything; for roots whose
# packages are only unpacked. usage: merge-usr.sh ROOT
set -eu

for folder in bin lib sbin; do
    mkdir -p "$1/usr/$folder"
    ln -s "usr/$folder" "$1/$folder"
done
