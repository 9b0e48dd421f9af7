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

# Say every 20 s that a long step is under way. Ended by step_run, or by itself when the script has died.
step_heartbeat() {
    local start_s=$SECONDS
    while sleep 1 && kill -0 "$$" 2>/dev/null; do
        (((SECONDS - start_s) % 20 != 19)) ||
            printf '%-9s still at it after %d s\n' "$STEP_NAME" "$((SECONDS - STEP_START_S))"
    done
}

step_run() {
    local log="$BUILD_DIR/log/$1"
    shift
    mkdir -p "$BUILD_DIR/log"
    step_heartbeat 9>&- &
    local heartbeat=$! code=0
    # Descriptor 9 is the lock of set-up: a program that stays behind, as Wine's server does, must not hold it.
    "$@" >"$log" 2>&1 </dev/null 9>&- || code=$?
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
