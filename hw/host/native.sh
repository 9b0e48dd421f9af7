# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The native tools, one Meson build directory a variant. Sourced after progress.sh and sources.sh by setup.sh, tests/run.sh and
# tests/lint/run.sh.
#
#   linux   for this host: the virtual bench's producers, tests          .build/linux
#   static  one file that runs on any x86-64 Linux target                .build/static
#   asan    with AddressSanitizer and UndefinedBehaviorSanitizer: tests  .build/asan
#   NAME    for what the cross file targets/*/cross/NAME.ini describes    .build/NAME
#
# ccache keeps what was compiled by content, beside the guests' images in BENCHWRIGHT_CACHE: another clone does not compile it again.

# Debian's wine64 package alone puts nothing into PATH. Meson tries under Wine what it builds for Windows: in a prefix
# of our own, not in ~/.wine. In PATH before the package is there, too: the same set-up installs it.
PATH+=:/usr/lib/wine
export WINEPREFIX=$PWD/$BUILD_DIR/wine WINEDEBUG=-all

readonly COMPILERS=$BUILD_DIR/compilers

# Put ccache before the compilers, by links that bear their names: Meson asks it for no compiler of a cross file.
native_cache() {
    local ccache file compiler
    ccache=$(command -v ccache) || return 0
    export CCACHE_DIR=${BENCHWRIGHT_CACHE:-$HOME/.cache/benchwright}/compiled CCACHE_MAXSIZE=1G
    # Another folder's clone has the same objects: paths in them are the first one's, which only a debugger reads.
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
    [[ :$PATH: != *:"$PWD/$COMPILERS":* ]] || return 0
    mkdir -p "$COMPILERS"
    for file in '' targets/*/cross/*.ini; do
        compiler=gcc
        [[ -z $file ]] || compiler=$(native_cross_program "$file" c)
        [[ -z $(command -v "$compiler") ]] || ln -sfn "$ccache" "$COMPILERS/$compiler"
    done
    [[ -z $(command -v clang) ]] || ln -sfn "$ccache" "$COMPILERS/clang"
    PATH=$PWD/$COMPILERS:$PATH
}

# Print the variants that kinds of targets bring, one a line.
native_cross_variants() {
    local file
    for file in targets/*/cross/*.ini; do
        [[ ! -f $file ]] || basename "$file" .ini
    done
}

# Print the cross file of variant $1; fails where there is none.
native_cross_file() {
    local -a found=(targets/*/cross/"$1".ini)
    [[ -f ${found[0]} ]] || return 1
    [[ ${#found[@]} -eq 1 ]] || die "$EXIT_BAD_INPUT" "native: two cross files of one name: ${found[*]}"
    printf '%s\n' "${found[0]}"
}

# Print the program of key $2 (c, exe_wrapper) in cross file $1, without its arguments.
native_cross_program() {
    sed -n "s/^$2 *= *\[\{0,1\}'\([^']*\)'.*/\1/p" "$1"
}

# Set MESON_ARGUMENTS for variant $1, with the tests of C or without: $2, true or false.
native_arguments() {
    local cross
    MESON_ARGUMENTS=(--buildtype=debugoptimized -Dwerror=true "-Dtests=${2:-true}")
    case $1 in
        linux) ;;
        static) MESON_ARGUMENTS+=(-Dstatic=true) ;;
        asan) MESON_ARGUMENTS+=("-Db_sanitize=address,undefined" -Db_lundef=false) ;;
        *)
            cross=$(native_cross_file "$1") ||
                die "$EXIT_BAD_INPUT" "native: unknown variant \"$1\"; allowed: linux static asan" "$(native_cross_variants)"
            MESON_ARGUMENTS+=(--cross-file "$cross")
            ;;
    esac
}

# Print what MESON_ARGUMENTS, compiler $1 and cross file $2, if there is one, stand for; a change of it makes the directory anew.
native_key() {
    printf '%s ' "${MESON_ARGUMENTS[@]}" "$1" "$("$1" --version | head -n 1)" "$(meson --version)" \
        "${2:+$(command -v "$(native_cross_program "$2" exe_wrapper)")}" "${2:+$(cksum <"$2")}" targets/*/src/meson.build
}

# Bring variant $1 up to the sources, in .build/$1. Prints nothing where nothing has changed. What was built with the tests serves
# whoever asks for none of them (NATIVE_TESTS=false).
native_ensure_variant() {
    local variant=$1 directory=$BUILD_DIR/$1 compiler=gcc cross key tests=${NATIVE_TESTS:-true}
    local -a MESON_ARGUMENTS
    ! grep -qs -e -Dtests=true "$BUILD_DIR/stamp/native-$variant" || tests=true
    native_arguments "$variant" "$tests"
    # A cross file names its compiler; CC would mean the build machine's.
    if cross=$(native_cross_file "$variant"); then
        compiler=$(native_cross_program "$cross" c)
    else
        local -x CC=$compiler
    fi
    key=$(native_key "$compiler" "$cross")
    if [[ -f $directory/build.ninja ]] && stamp_matches "native-$variant" "$key"; then
        ninja -C "$directory" -n 2>/dev/null | grep -q 'no work to do' && return 0
        step_begin native "build $variant"
    else
        step_begin native "configure and build $variant"
        stamp_clear "native-$variant"
        rm -rf "$directory"
        step_run "native-$variant-setup.log" meson setup "${MESON_ARGUMENTS[@]}" "$directory"
        stamp_write "native-$variant" "$key"
    fi
    step_run "native-$variant.log" ninja -C "$directory"
    step_end
}

# Bring the variants named up to the sources.
native_ensure() {
    local variant
    [[ -f meson.build ]] || return 0
    native_cache
    sources_ensure
    for variant in "$@"; do
        native_ensure_variant "$variant"
    done
}
