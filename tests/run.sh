#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of `make test`: C code natively, with sanitizers, for ARM and under Wine, then Python.
#
#   tests/run.sh [PYTEST ARGUMENTS]
#
# C tests and Python's unit tests run from the beginning at idle priority, on what the others leave of the CPUs; what they
# say comes at the end. Simulated tests that keep no time run beside each other; what keeps one comes after them, test by test.
# Every part runs even when an earlier one has failed; exit code 1 if any did. Ctrl-C ends all of it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

. hw/host/progress.sh
. hw/host/native.sh

FAILED=()
readonly IDLE_LOG=.build/log/test-idle.log IDLE_FAILED=.build/log/test-idle-failed.txt FAILED_TESTS=.build/log/test-failed.txt
readonly WORKERS_MAX=8 INTERRUPTED=2 NO_TESTS=5
IDLE_PID=

# Run the Meson tests of one variant. $1: variant; then extra arguments of `meson test`.
test_native() {
    local variant=$1 log
    log=.build/log/test-$1.log
    shift
    (native_ensure "$variant") || { FAILED+=("$variant"); return; }
    step_begin "$variant" "C tests"
    if meson test -C "$BUILD_DIR/$variant" --no-rebuild --print-errorlogs "$@" >"$log" 2>&1 </dev/null; then
        step_end "$(awk '/^Ok:/ { ok = $2 } /^Skipped:/ { skipped = $2 } /^No tests/ { none = 1 }
                         END { if (none) print "no tests defined"; else printf "%d passed, %d skipped", ok, skipped }' "$log")"
    else
        cat "$log"
        step_end FAILED
        FAILED+=("$variant")
    fi
}

# Run a part of the Python tests. $1: its name; then arguments of pytest. That the caller's arguments leave nothing of a part is
# no failure. Exits if it is interrupted.
test_python() {
    local code=0
    .build/venv/bin/python -m pytest -o cache_dir=".build/pytest/$1" --failed-to=".build/log/test-failed-$1.txt" \
        --pace-to=".build/log/pace-$1.json" "${@:2}" || code=$?
    case $code in
        0 | "$NO_TESTS") return 0 ;;
        "$INTERRUPTED") die 1 "tests: interrupted" ;;
    esac
    [[ " ${FAILED[*]} " == *" pytest "* ]] || FAILED+=(pytest)
}

# Run the C tests of all variants that this machine can run.
test_c() {
    local variant
    [[ -f meson.build ]] || return 0
    test_native linux --timeout-multiplier 5
    ASAN_OPTIONS=abort_on_error=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        test_native asan --no-suite fuzz --timeout-multiplier 10
    # Meson runs programs of other machines by the exe_wrapper of their cross file.
    for variant in $(native_cross_variants); do
        command -v "$(native_cross_program "$(native_cross_file "$variant")" exe_wrapper)" >/dev/null || continue
        test_native "$variant" --no-suite fuzz --no-suite long --timeout-multiplier 20
    done
}

# Build the images of the guests: no test is to wait for one.
build_images() {
    local recipe kind
    for recipe in targets/*/image/recipe.toml; do
        kind=${recipe#targets/} kind=${kind%%/*}
        step_begin images "$kind"
        step_run "image-$kind.log" .build/venv/bin/python -m hw.virtual.image --kind "$kind"
        step_end
    done
}

# Begin what gets no more than all other processes leave; it has a process group of its own, and ends with this script.
begin_idle() {
    set -m
    (
        set +m
        chrt --idle --pid 0 "$BASHPID"
        test_c
        test_python idle -m "beside and not simulated" -n "$(nproc)" --dist loadfile --no-loadscope-reorder "$@"
        printf '%s\n' "${FAILED[@]}" >"$IDLE_FAILED"
    ) >"$IDLE_LOG" 2>&1 </dev/null &
    IDLE_PID=$!
    set +m
    trap 'kill -- "-$IDLE_PID" 2>/dev/null || true' EXIT
}

# Wait for it and show what it said.
end_idle() {
    local part
    step_begin idle "C tests and unit tests at idle priority"
    wait "$IDLE_PID" || FAILED+=(idle)
    trap - EXIT
    step_end
    cat "$IDLE_LOG"
    while read -r part; do
        [[ -z $part || " ${FAILED[*]} " == *" $part "* ]] || FAILED+=("$part")
    done <"$IDLE_FAILED"
}

main() {
    local workers
    mkdir -p "$BUILD_DIR/log"
    rm -f "$BUILD_DIR"/log/test-failed*.txt
    : >"$IDLE_FAILED"
    (native_ensure linux) || die 1 "tests: failed: linux"
    begin_idle "$@"
    (build_images) || FAILED+=(images)
    # Some wait for others: one more than there are CPUs.
    workers=$(($(nproc) + 1))
    test_python guests -m "beside and simulated" -n $((workers < WORKERS_MAX ? workers : WORKERS_MAX)) --dist loadfile \
        --no-loadscope-reorder "$@"
    test_python alone -m "not beside and not influxdb2" "$@"
    end_idle
    cat "$BUILD_DIR"/log/test-failed-*.txt >"$FAILED_TESTS"
    sed 's/^/failed: /' "$FAILED_TESTS" >&2
    [[ ${#FAILED[@]} -eq 0 ]] || die 1 "tests: failed: ${FAILED[*]}"
}

main "$@"
