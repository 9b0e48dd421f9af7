#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All static checks. Each runs even when an earlier one has failed; the exit code is 1 if any did.
#
#   tests/lint/run.sh            everything
#   tests/lint/run.sh NAME...    only these: rules python types shell suites gcc clang mingw port tidy
#   tests/lint/run.sh --since REVISION tidy    clang-tidy of what was changed since, not of everything
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit

. hw/host/progress.sh
. hw/host/apt.sh
. hw/host/sources.sh
. hw/host/native.sh

readonly BIN=.build/venv/bin
SINCE=
readonly WARNINGS="['-Wextra','-Wshadow','-Wvla']"

lint_rules() {
    $BIN/python -m tests.lint.sources
}

lint_python() {
    $BIN/ruff check --quiet --output-format concise . && $BIN/ruff format --check --quiet --output-format concise .
}

lint_types() {
    $BIN/pyright --warnings
}

lint_shell() {
    local -a scripts
    mapfile -t scripts < <(git ls-files -co --exclude-standard -- '*.sh' '.ci/run')
    shellcheck -x "${scripts[@]}"
}

lint_suites() {
    local -a folders=()
    local folder
    for folder in robot resources; do
        [[ -z $(find "$folder" -name '*.robot' -o -name '*.resource' 2>/dev/null) ]] || folders+=("$folder")
    done
    [[ ${#folders[@]} -gt 0 ]] || { echo "no suites yet"; return 0; }
    $BIN/robocop check --no-cache "${folders[@]}" && $BIN/robocop format --no-cache --check --diff "${folders[@]}"
}

# Build everything with one compiler, warnings as errors, in a directory of its own, made anew when its arguments change.
lint_compiler() {
    local name=$1 directory=.build/lint-$1 key
    shift
    [[ -f meson.build ]] || { echo "no native code yet"; return 0; }
    native_cache
    key="$* $(printf '%s ' targets/*/src/meson.build)"
    if [[ ! -f $directory/build.ninja || $(cat "$directory/key" 2>/dev/null) != "$key" ]]; then
        rm -rf "$directory"
        meson setup --buildtype=debugoptimized -Dwerror=true -Dwarning_level=2 "$@" "$directory" || return 1
        printf '%s\n' "$key" >"$directory/key"
    fi
    ninja -k 0 -C "$directory" # all findings, not the first
}

lint_gcc() {
    CC=gcc lint_compiler gcc "-Dc_args=$WARNINGS"
}

lint_clang() {
    CC=clang lint_compiler clang "-Dc_args=$WARNINGS"
}

lint_mingw() {
    lint_compiler mingw --cross-file "$(native_cross_file win)" "-Dc_args=$WARNINGS"
}

# Calls of the operating system, from the symbols of what the compilers have made.
lint_port() {
    [[ -f .build/lint-gcc/compile_commands.json ]] || lint_gcc || return 1
    [[ -f .build/lint-mingw/compile_commands.json ]] || lint_mingw || return 1
    $BIN/python -m tests.lint.port_layer .build/lint-gcc .build/lint-mingw
}

# Our sources of which something differs from revision $1, headers too, by what the compiler has read: one regular expression a line.
tidy_since() {
    { git diff --name-only "$1" -- && git ls-files -o --exclude-standard; } | awk -v root="$(pwd -P)/" '
        FILENAME == "-" { changed[root $0]; next }
        /^[^ ]/ { source = ""; next }
        NF { sub(/^\.\.\/\.\.\//, root, $1); source = source ? source : $1 }
        NF && $1 in changed && index(source, root ".build/") != 1 { print "^" source "$" }
    ' - <(ninja -C .build/lint-clang -t deps) | sort -u
}

lint_tidy() {
    local database=.build/lint-clang/compile_commands.json sources
    [[ -f meson.build ]] || { echo "no native code yet"; return 0; }
    # It brings the database and what is generated up to date; what the compiler finds is not asked here.
    lint_clang || [[ -z $SINCE && -f $database ]] || return 1
    sources="^(?!$(pwd -P)/\\.build/)" # not what others wrote (.build/sources), nor what is made of it
    [[ -z $SINCE ]] || sources=$(tidy_since "$SINCE") || return 1
    [[ -n $sources ]] || { echo "no C file differs from $SINCE"; return 0; }
    run-clang-tidy -quiet -j 2 -p .build/lint-clang "${sources//$'\n'/|}"
}

# Run one check with its output in a log; show the output only when it fails.
run_check() {
    local name=$1 log=.build/log/lint-$1.log
    STEP_NAME=$name STEP_START_S=$SECONDS
    if "lint_$name" >"$log" 2>&1 </dev/null; then
        step_end ok
        return 0
    fi
    cat "$log"
    step_end FAILED
    return 1
}

main() {
    local name
    [[ ${1-} != --since ]] || { SINCE=${2:?a revision}; shift 2; }
    local -a names=("$@") failed=()
    [[ ${#names[@]} -gt 0 ]] || names=(rules python types shell suites gcc clang mingw port tidy)
    mkdir -p .build/log
    for name in "${names[@]}"; do
        declare -F "lint_$name" >/dev/null || die "$EXIT_BAD_INPUT" "tests/lint/run.sh: unknown check \"$name\""
        run_check "$name" || failed+=("$name")
    done
    [[ ${#failed[@]} -eq 0 ]] || die 1 "lint: failed: ${failed[*]}"
    echo "lint      clean after $SECONDS s"
}

main "$@"
