#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Build one fuzz target with clang's libFuzzer, ASan and UBSan, and run it on its seeds for a bounded time.
#
#   [FUZZ_KEEP=FOLDER] fuzz.sh SECONDS SEEDS INCLUDE[:INCLUDE] TARGET.c SOURCE.c…
#
# In FUZZ_KEEP the corpus grows from call to call, and what was found stays: corpus/, found/, log. Without it every call is
# the same. Exit 0: nothing was found; 77: skipped, with the reason; 1: something was, and the input that did it.
set -eu

seconds=$1 seeds=$2 include=$3
shift 3

if ! command -v clang >/dev/null; then
    echo "skipped: clang is not installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
keep=${FUZZ_KEEP:-$work}
seed=1
[ "$keep" = "$work" ] || seed=0 # another one each time; the log says which
mkdir -p "$keep/corpus" "$keep/found"

echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n); int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { (void)d; (void)n; return 0; }' >"$work/probe.c"
if ! clang -fsanitize=fuzzer,address,undefined -o "$work/probe" "$work/probe.c" 2>/dev/null; then
    echo "skipped: this clang has no libFuzzer"
    exit 77
fi

clang -std=gnu11 -DBW_EVENTS_NONE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I"${include%%:*}" -I"${include#*:}" \
    -o "$work/fuzz" "$@" -lm
status=0
"$work/fuzz" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -max_len=16384 -seed="$seed" -print_final_stats=1 \
    -artifact_prefix="$keep/found/" "$keep/corpus" "$seeds" >"$keep/log" 2>&1 || status=$?
if [ "$status" -ne 0 ]; then
    cat "$keep/log"
    for input in "$keep/found"/*; do
        [ -e "$input" ] && { echo "--- $(basename "$input"), base64:"; base64 "$input"; }
    done
    exit 1 # libFuzzer's own code is 77: who reads it takes that for a test that was skipped
fi
grep -E 'stat::number_of_executed_units|cov:' "$keep/log" | tail -2
