#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the job of a CI server does on a bench; the pipelines beside this file call it.
#
#   docs/pipelines/bench-job.sh qualify [VARIABLE=VALUE...]   run `make qualify` with these variables
#   docs/pipelines/bench-job.sh keep                          gather what the job has left, however it ended
#
# results/job/ then holds each run folder of the job under its own name, `exit-code`, the page of trends, and of
# acceptance runs the dossier. Exit codes: docs/exit-codes.md; `qualify` ends with the qualification's own, which
# make would hide.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly JOB=results/job BEFORE=results/job/runs-before FAILED=1 INTERRUPTED=4

run_folders() {
    find results -mindepth 1 -maxdepth 1 -type d -name '[0-9]*Z-*' -printf '%f\n' | sort
}

qualify() {
    rm -rf "$JOB"
    mkdir -p "$JOB"
    run_folders >"$BEFORE"
    # A group of its own: when the job is cancelled, the qualification is told, and closes the bench before this ends.
    # make and its shell would end at once.
    local group code=$FAILED
    set -m
    QUALIFY_EXIT_FILE=$PWD/$JOB/exit-code make qualify "$@" </dev/null &
    group=$!
    set +m
    trap 'code=$INTERRUPTED; kill -TERM -- "-$group" 2>/dev/null || true' INT TERM
    while kill -0 -- "-$group" 2>/dev/null; do
        wait "$group" || true
        sleep 0.2
    done
    # Without the file it did not come to an end: a step of set-up has failed, or the job was cancelled.
    [[ -s $JOB/exit-code ]] || echo "$code" >"$JOB/exit-code"
    return "$(<"$JOB/exit-code")"
}

# What is made from the run folders besides; without it they are kept all the same.
add() {
    .build/venv/bin/python -m "$@" || echo "bench-job: failed: $*" >&2
}

keep() {
    local run
    local -a acceptance=()
    if [[ ! -f $BEFORE ]]; then
        rm -rf "$JOB" # of an earlier job
        echo "bench-job: no qualification was begun" >&2
        return 1
    fi
    while read -r run; do
        # Links, not copies: the run folder itself stays where the store and the next report look for it.
        cp -al "results/$run" "$JOB/$run"
        echo "bench-job: kept $JOB/$run"
        [[ $run != *-acceptance || ! -f results/$run/SHA256SUMS ]] || acceptance+=("results/$run")
    done < <(run_folders | comm -13 "$BEFORE" -)
    rm "$BEFORE"
    add dashboards trends --output "$JOB/trends.html"
    [[ ${#acceptance[@]} -eq 0 ]] || add reports dossier "${acceptance[@]}" --output "$JOB/dossier.pdf"
}

case ${1:-} in
    qualify) shift && qualify "$@" ;;
    keep) keep ;;
    *)
        sed -n '3,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
esac
