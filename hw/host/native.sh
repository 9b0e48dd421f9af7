# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The native tools, one Meson build directory a variant. Sourced after progress.sh by setup.sh, tests/run.sh and
# tests/lint/run.sh.
#
#   linux   for this host: the virtual bench's producers, tests          .build/linux
#   static  one file that runs on any x86-64 Linux target                .build/static
#   armhf   the same for 32-bit ARM: Debian's armhf (armv7, hard float)   .build/armhf
#   win     for Windows x86-64 targets, by mingw-w64                      .build/win
#   asan    with AddressSanitizer and UndefinedBehaviorSanitizer: tests  .build/asan

# Debian's wine64 package alone puts nothing into PATH. Meson tries under Wine, if there is one, what it builds for
# Windows: in a prefix of our own, not in ~/.wine.
[[ ! -x /usr/lib/wine/wine64 ]] || PATH+=:/usr/lib/wine
export WINEPREFIX=$PWD/$BUILD_DIR/wine WINEDEBUG=-all

readonly MINGW_CROSS_FILE=traffic-gen/cross/x86_64-w64-mingw32.ini
readonly ARMHF_CROSS_FILE=traffic-gen/cross/arm-linux-gnueabihf.ini

# Set MESON_ARGUMENTS for variant $1.
native_arguments() {
    MESON_ARGUMENTS=(--buildtype=debugoptimized -Dwerror=true)
    case $1 in
        linux) ;;
        static) MESON_ARGUMENTS+=(-Dstatic=true) ;;
        armhf) MESON_ARGUMENTS+=(--cross-file "$ARMHF_CROSS_FILE" -Dstatic=true) ;;
        win) MESON_ARGUMENTS+=(--cross-file "$MINGW_CROSS_FILE") ;;
        asan) MESON_ARGUMENTS+=("-Db_sanitize=address,undefined" -Db_lundef=false) ;;
        *) die "$EXIT_BAD_INPUT" "native: unknown variant \"$1\"; allowed: linux static armhf win asan" ;;
    esac
}

# Print what MESON_ARGUMENTS and compiler $1 stand for; a change of it makes the directory anew.
native_key() {
    printf '%s ' "${MESON_ARGUMENTS[@]}" "$1" "$("$1" --version | head -n 1)" "$(meson --version)" \
        "$(command -v wine64)" "$(command -v qemu-arm)"
}

# Bring variant $1 up to the sources, in .build/$1. Prints nothing where nothing has changed.
native_ensure_variant() {
    local variant=$1 directory=$BUILD_DIR/$1 compiler=gcc key
    local -a MESON_ARGUMENTS
    native_arguments "$variant"
    # A cross file names its compiler; CC would mean the build machine's.
    case $variant in
        win) compiler=x86_64-w64-mingw32-gcc ;;
        armhf) compiler=arm-linux-gnueabihf-gcc ;;
        *) local -x CC=$compiler ;;
    esac
    key=$(native_key "$compiler")
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
    for variant in "$@"; do
        native_ensure_variant "$variant"
    done
}
