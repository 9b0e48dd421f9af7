#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of `make test`: C code natively, with sanitizers, for ARM and under Wine, then Python. The last line is pytest's.
#
#   tests/run.sh [PYTEST ARGUMENTS]
#
# Every part runs even when an earlier one has failed; exit code 1 if any did.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

. hw/host/progress.sh
. hw/host/native.sh

FAILED=()

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

main() {
    mkdir -p "$BUILD_DIR/log"
    if [[ -f meson.build ]]; then
        test_native linux
        ASAN_OPTIONS=abort_on_error=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
            test_native asan --no-suite fuzz --timeout-multiplier 3
        # Meson runs programs of other machines by the exe_wrapper of their cross file.
        if command -v qemu-arm >/dev/null; then
            test_native armhf --no-suite fuzz --no-suite long --timeout-multiplier 5
        fi
        if command -v wine64 >/dev/null; then
            test_native win --no-suite fuzz --timeout-multiplier 5
        fi
    fi
    .build/venv/bin/python -m pytest "$@" || FAILED+=(pytest)
    # The closing line of pytest stays the last one; what failed before it is repeated on stderr.
    [[ ${#FAILED[@]} -eq 0 ]] || die 1 "tests: failed: ${FAILED[*]}"
}

main "$@"
