#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of `make test`: C code natively, with sanitizers, for ARM and under Wine, then Python.
#
#   tests/run.sh [PYTEST ARGUMENTS]
#
# Python's unit tests, and those simulated ones that keep no time, run beside each other. What boots or keeps a time
# comes after them, test by test. Both write one cache: `pytest --last-failed` knows the failures of both.
# Every part runs even when an earlier one has failed; exit code 1 if any did. Ctrl-C ends all of it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

. hw/host/progress.sh
. hw/host/native.sh

FAILED=()
readonly BESIDE_FAILED=.build/log/test-failed-beside.txt
readonly WORKERS_MAX=8 INTERRUPTED=2 NO_TESTS=5

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

# Run a part of the Python tests; that arguments of ours leave nothing of it is no failure. Exits if it is interrupted.
test_python() {
    local code=0
    .build/venv/bin/python -m pytest "$@" || code=$?
    case $code in
        0 | "$NO_TESTS") return 0 ;;
        "$INTERRUPTED") die 1 "tests: interrupted" ;;
    esac
    [[ " ${FAILED[*]} " == *" pytest "* ]] || FAILED+=(pytest)
}

main() {
    local variant workers
    mkdir -p "$BUILD_DIR/log"
    rm -f "$BESIDE_FAILED"
    if [[ -f meson.build ]]; then
        test_native linux
        ASAN_OPTIONS=abort_on_error=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
            test_native asan --no-suite fuzz --timeout-multiplier 3
        # Meson runs programs of other machines by the exe_wrapper of their cross file.
        for variant in $(native_cross_variants); do
            command -v "$(native_cross_program "$(native_cross_file "$variant")" exe_wrapper)" >/dev/null || continue
            test_native "$variant" --no-suite fuzz --no-suite long --timeout-multiplier 5
        done
    fi
    # Some wait for others: one more than there are CPUs.
    workers=$(($(nproc) + 1))
    test_python -m beside -n $((workers < WORKERS_MAX ? workers : WORKERS_MAX)) --dist loadfile \
        --no-loadscope-reorder --failed-to "$BESIDE_FAILED" --pace-to .build/log/pace-beside.json "$@"
    test_python -m "not beside and not influxdb2" --pace-to .build/log/pace-alone.json "$@"
    # The closing line of pytest stays the last one; what failed before it is repeated on stderr.
    [[ ! -s $BESIDE_FAILED ]] || sed 's/^/failed, beside others: /' "$BESIDE_FAILED" >&2
    [[ ${#FAILED[@]} -eq 0 ]] || die 1 "tests: failed: ${FAILED[*]}"
}

main "$@"
