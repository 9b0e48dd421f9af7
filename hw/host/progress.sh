# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Progress lines, logs and stamps of the set-up scripts. Sourced, never run.
#
#   step_begin NAME TEXT     print "NAME  TEXT ..." and start the step's clock
#   step_end [TEXT]          print "NAME  done in N s"
#   step_run LOG COMMAND...  run a command with its output in .build/log/LOG; on failure show the log's end
#   die CODE TEXT...         print the lines on stderr and exit (codes: docs/exit-codes.md)
#   stamp_matches NAME KEY   true if step NAME was finished with KEY
#   stamp_write NAME KEY     remember that it was; stamp_clear NAME forgets

# shellcheck disable=SC2034 # used by the scripts that source this one
readonly EXIT_BAD_INPUT=2 EXIT_MISSING=3
readonly BUILD_DIR=.build

step_begin() {
    STEP_NAME=$1
    STEP_START_S=$SECONDS
    printf '%-9s %s\n' "$STEP_NAME" "$2 ..."
}

step_end() {
    printf '%-9s %s in %d s\n' "$STEP_NAME" "${1:-done}" "$((SECONDS - STEP_START_S))"
}

die() {
    local code=$1
    shift
    printf '%s\n' "$@" >&2
    exit "$code"
}

# Say every 20 s that a long step is under way; ended by step_run.
step_heartbeat() {
    local pause=
    trap 'kill "$pause" 2>/dev/null; exit 0' TERM
    while true; do
        sleep 20 &
        pause=$!
        wait "$pause"
        printf '%-9s still at it after %d s\n' "$STEP_NAME" "$((SECONDS - STEP_START_S))"
    done
}

step_run() {
    local log="$BUILD_DIR/log/$1"
    shift
    mkdir -p "$BUILD_DIR/log"
    step_heartbeat &
    local heartbeat=$! code=0
    "$@" >"$log" 2>&1 </dev/null || code=$?
    kill "$heartbeat" 2>/dev/null || true
    wait "$heartbeat" 2>/dev/null || true
    if [[ $code -ne 0 ]]; then
        tail -n 30 "$log" >&2
        die 1 "$STEP_NAME: failed: $*" "The whole output is in $log."
    fi
}

stamp_matches() {
    [[ -f $BUILD_DIR/stamp/$1 && $(<"$BUILD_DIR/stamp/$1") == "$2" ]]
}

stamp_write() {
    mkdir -p "$BUILD_DIR/stamp"
    printf '%s\n' "$2" >"$BUILD_DIR/stamp/$1"
}

stamp_clear() {
    rm -f "$BUILD_DIR/stamp/$1"
}
