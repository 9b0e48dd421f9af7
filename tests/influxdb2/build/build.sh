#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build InfluxDB 2.7 from its Go module, once, and make .build/influxd2 a link to it.
#
#   tests/influxdb2/build/build.sh
#
# go.mod and go.sum beside this file fix every Go module, InfluxDB's own Cargo.lock the Rust ones of its query
# language. The program lies in the cache ($BENCHWRIGHT_CACHE) under the hash of what it is made from. It has no
# web pages. The build takes minutes of all processors and about 3 GB while it lasts; an interrupted one goes on.
# Exit codes: 0 ready; 1 the build failed (its log is named); 3 something is missing on this machine.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$HERE/../../.."

. hw/host/progress.sh

readonly GO_VERSION=1.24 RUST_VERSION=1.72 RUST_TOOLCHAIN=stable
readonly CACHE=${BENCHWRIGHT_CACHE:-$HOME/.cache/benchwright}/influxdb2
readonly LINK=$BUILD_DIR/influxd2
export GOTOOLCHAIN=local RUSTUP_TOOLCHAIN=$RUST_TOOLCHAIN

# Succeeds where version $1 is at least $2.
at_least() {
    [[ $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]
}

# Say everything that is missing at once, each with what brings it.
require_tools() {
    local -a missing=()
    local found
    found=$(go env GOVERSION 2>/dev/null) || found=
    if [[ -z $found ]] || ! at_least "${found#go}" "$GO_VERSION"; then
        missing+=("Go $GO_VERSION or newer (found: ${found:-none}): go.dev's archive, or golang-go from Debian's backports")
    fi
    found=$(rustc --version 2>/dev/null | awk '{ print $2 }') || found=
    if [[ -z $found ]] || ! at_least "$found" "$RUST_VERSION" || ! command -v cargo >/dev/null; then
        missing+=("Rust $RUST_VERSION or newer (found: ${found:-none}): Debian's package rustup, then: rustup default stable")
    fi
    command -v cc >/dev/null || missing+=("a C compiler: Debian's package gcc")
    command -v clang >/dev/null || missing+=("clang: Debian's package clang")
    command -v pkg-config >/dev/null || missing+=("pkg-config: Debian's package pkg-config")
    command -v git >/dev/null || missing+=("git: Debian's package git")
    [[ ${#missing[@]} -eq 0 ]] ||
        die "$EXIT_MISSING" "influxdb2: to build InfluxDB 2.7 this machine lacks:" "${missing[@]/#/  }"
}

build() {
    local work=$1 out=$2
    mkdir -p "$work/bin"
    # The sources of its Rust part are older than the compiler: what newer compilers deny must stay a warning.
    cat >"$work/rustc" <<-'WRAPPER'
	#!/bin/sh
	exec "$@" --cap-lints warn
	WRAPPER
    chmod 755 "$work/rustc"
    export GOCACHE=$work/go GOFLAGS="-buildvcs=false -mod=readonly" CGO_ENABLED=1
    cd "$HERE"
    go build -o "$work/bin/pkg-config" github.com/influxdata/pkg-config
    # pkg-config builds the Rust library when go asks it for the library's flags, and finds the real one behind itself.
    PATH="$work/bin:$PATH" RUSTC_WRAPPER=$work/rustc \
        go build -tags sqlite_foreign_keys,sqlite_json -ldflags "-s -w -X main.version=v2.7.12" \
        -o "$out.part" github.com/influxdata/influxdb/v2/cmd/influxd
    mv "$out.part" "$out"
}

main() {
    local key folder
    # What decides on the program; a newer compiler alone does not.
    key=$(cat "$HERE"/{go.mod,go.sum,build.sh} <(uname -m) | sha256sum | cut -c 1-16)
    folder=$CACHE/$key
    mkdir -p "$folder" "$BUILD_DIR"
    exec 8>"$CACHE/lock"
    flock 8
    if [[ ! -x $folder/influxd ]]; then
        require_tools
        step_begin influxdb2 "building InfluxDB 2.7 (once; 4 to 15 minutes)"
        export -f build
        export HERE
        step_run influxdb2.log nice -n 19 bash -euo pipefail -c 'build "$@"' build "$CACHE/work" "$folder/influxd"
        chmod -R u+w "$CACHE/work"
        rm -rf "$CACHE/work"
        step_end "built"
    fi
    ln -sfn "$folder/influxd" "$LINK"
}

main
