#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Download packages that are unpacked by hand instead of installed: kernels (their installation would build an
# initramfs that nobody boots) and the initramfs' busybox.
#
# usage: fetch-packages.sh DIRECTORY PACKAGE...     a kernel meta package is written META/SUITE and is followed to
# the package that it depends on; runs as an mmdebstrap hook, whose apt configuration it uses.
set -eu

directory=$1
shift
cd "$directory"
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
for package in "$@"; do
    apt-get -qq -o APT::Sandbox::User=root download "$package"
    case $package in
    */*)
        meta=${package%%/*}
        set -- "$meta"_*.deb
        # "linux-image-6.12.9-rt-amd64 (= 6.12.9-1)" becomes "linux-image-6.12.9-rt-amd64=6.12.9-1"
        wanted=$(dpkg-deb -f "$1" Depends | sed 's/,.*//; s/ *(= *\([^)]*\))/=\1/')
        apt-get -qq -o APT::Sandbox::User=root download "$wanted"
        rm -f "$1"
        mkdir -p "$meta"
        mv "${wanted%%=*}"_*.deb "$meta/kernel.deb"
        ;;
    *)
        mkdir -p "$package"
        mv "$package"_*.deb "$package/package.deb"
        ;;
    esac
done
