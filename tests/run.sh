#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests, in two tiers, and those that failed once more.
#
#   tests/run.sh gate    `make test`: decides whether a change goes in. Nothing in it keeps a time: C tests natively and with
#                        sanitizers, unit tests, and one simulated test of each thing that the bench lives on
#   tests/run.sh all     `make test-all`: everything. Besides the gate C tests for ARM and under Wine, fuzz targets on their seeds,
#                        tests marked slow; then, one by one, those marked timed
#   tests/run.sh again   alone, one by one, the tests that the run before listed as failed
#
# Every part runs even when an earlier one has failed; exit code 1 if any did. .build/log/test-failed.txt lists what failed, a test a
# line: of Python by its name, of C as "C VARIANT NAME"; "part NAME" is one that broke without naming a test.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

. hw/host/progress.sh
. hw/host/apt.sh
. hw/host/sources.sh
. hw/host/native.sh

readonly FAILED=$BUILD_DIR/log/test-failed.txt GATE="not slow and not timed" WORKERS_MAX=8 INTERRUPTED=2

# Run the Meson tests of one variant. $1: variant; then extra arguments of `meson test`.
test_native() {
    local variant=$1 log=$BUILD_DIR/log/test-$1.log results=$BUILD_DIR/$1/meson-logs/testlog.json
    shift
    (native_ensure "$variant") || { echo "part $variant" >>"$FAILED"; return; }
    step_begin "$variant" "C tests"
    rm -f "$results"
    if ASAN_OPTIONS=abort_on_error=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        meson test -C "$BUILD_DIR/$variant" --no-rebuild --print-errorlogs "$@" >"$log" 2>&1 </dev/null; then
        step_end "$(awk '/^Ok:/ { ok = $2 } /^Skipped:/ { skipped = $2 } /^No tests/ { none = 1 }
                         END { if (none) print "no tests defined"; else printf "%d passed, %d skipped", ok, skipped }' "$log")"
    else
        cat "$log"
        step_end FAILED
        failed_native "$variant" "$results" >>"$FAILED"
    fi
}

# Print what failed in variant $1 by Meson's results, $2.
failed_native() {
    .build/venv/bin/python - "$@" <<'PYTHON' || echo "part $1"
import json
import sys

results = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
failed = [each["name"] for each in results if each["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")]
for name in failed:
    print("C", sys.argv[1], name.rpartition(" ")[2])
sys.exit(not failed)
PYTHON
}

# Run a part of the Python tests. $1: its name; then arguments of pytest. Exits if it is interrupted.
test_python() {
    local code=0 named=$BUILD_DIR/log/test-failed-$1.txt
    rm -f "$named"
    .build/venv/bin/python -m pytest -o cache_dir="$BUILD_DIR/pytest/$1" --failed-to="$named" \
        --pace-to="$BUILD_DIR/log/pace-$1.json" "${@:2}" || code=$?
    case $code in
        0) return ;;
        "$INTERRUPTED") die 1 "tests: interrupted" ;;
    esac
    if [[ -s $named ]]; then cat "$named"; else echo "part $1"; fi >>"$FAILED"
}

# Run a part of them beside each other: some wait for others, so one more than there are CPUs.
test_python_beside() {
    local workers=$(($(nproc) + 1))
    test_python "$1" -n $((workers < WORKERS_MAX ? workers : WORKERS_MAX)) --dist loadfile --no-loadscope-reorder "${@:2}"
}

run_gate() {
    test_native linux --no-suite fuzz --timeout-multiplier 20
    test_native asan --no-suite fuzz --timeout-multiplier 20
    hw/host/images.sh || echo "part images" >>"$FAILED" # no test is to wait for one
    test_python_beside gate -m "$GATE and not influxdb2 and not hardware"
}

# Print a build of each other machine. Of two the one whose programs load libraries: it has the static one's tests, and more.
cross_variants_to_test() {
    .build/venv/bin/python - <<'PYTHON' || echo "part cross" >>"$FAILED"
from hw.tools import ROOT, cross_builds

print(*{**cross_builds(ROOT), **cross_builds(ROOT, dynamic=True)}.values())
PYTHON
}

# Meson runs programs of other machines by the exe_wrapper of their cross file.
run_all() {
    local variant
    run_gate
    test_native linux --suite fuzz --timeout-multiplier 20
    for variant in $(cross_variants_to_test); do
        command -v "$(native_cross_program "$(native_cross_file "$variant")" exe_wrapper)" >/dev/null || continue
        test_native "$variant" --no-suite fuzz --no-suite long --timeout-multiplier 20
    done
    test_python_beside slow -m "slow and not timed and not influxdb2"
    test_python timed -m "timed and not influxdb2"
}

run_again() {
    local line
    local -a lines tests=() words
    mapfile -t lines < <(cat "$FAILED" 2>/dev/null)
    : >"$FAILED"
    for line in "${lines[@]}"; do
        case $line in
            "part "*) echo "$line" >>"$FAILED" ;;
            "C "*) read -ra words <<<"$line"; test_native "${words[@]:1}" --timeout-multiplier 20 ;;
            *) tests+=("$line") ;;
        esac
    done
    [[ ${#tests[@]} -eq 0 ]] || test_python again "${tests[@]}"
}

main() {
    mkdir -p "$BUILD_DIR/log"
    case ${1:-} in
        gate | all) rm -f "$FAILED"; touch "$FAILED"; "run_$1" ;;
        again) run_again ;;
        *) die "$EXIT_BAD_INPUT" "tests/run.sh: unknown tier \"${1:-}\"; allowed: gate all again" ;;
    esac
    [[ ! -s $FAILED ]] || { sed 's/^/failed: /' "$FAILED" >&2; die 1 "tests: failed: $(wc -l <"$FAILED")"; }
}

main "$@"
