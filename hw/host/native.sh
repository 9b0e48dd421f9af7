# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The native tools, one Meson build directory a variant. Sourced by setup.sh and by the tests after progress.sh.
#
#   linux   for this host: the virtual bench's producers, tests          .build/linux
#   static  one file that runs on any x86-64 Linux target                .build/static
#   win     for Windows x86-64 targets, by mingw-w64                      .build/win
#   asan    with AddressSanitizer and UndefinedBehaviorSanitizer: tests  .build/asan

readonly MINGW_CROSS_FILE=traffic-gen/cross/x86_64-w64-mingw32.ini

# Set MESON_ARGUMENTS for variant $1.
native_arguments() {
    MESON_ARGUMENTS=(--buildtype=debugoptimized -Dwerror=true)
    case $1 in
        linux) ;;
        static) MESON_ARGUMENTS+=(-Dstatic=true) ;;
        win) MESON_ARGUMENTS+=(--cross-file "$MINGW_CROSS_FILE") ;;
        asan) MESON_ARGUMENTS+=(-Db_sanitize=address,undefined -Db_lundef=false) ;;
        *) die $EXIT_BAD_INPUT "native: unknown variant \"$1\"; allowed: linux static win asan" ;;
    esac
}

# Build variant $1 in .build/$1; nothing happens where nothing has changed. $2, optional: compiler (CC).
native_build() {
    local variant=$1 directory=$BUILD_DIR/$1 compiler=${2:-gcc} key
    local -a MESON_ARGUMENTS
    native_arguments "$variant"
    [[ $variant != win ]] || compiler=x86_64-w64-mingw32-gcc
    key="${MESON_ARGUMENTS[*]} $compiler $("$compiler" -dumpfullversion) $(meson --version)"
    if [[ ! -f $directory/build.ninja ]] || ! stamp_matches "native-$variant" "$key"; then
        rm -rf "$directory"
        CC=$compiler step_run "native-$variant-setup.log" meson setup "${MESON_ARGUMENTS[@]}" "$directory"
        stamp_write "native-$variant" "$key"
    fi
    # Asking ninja first keeps the nothing-to-do case silent and quick.
    ninja -C "$directory" -n 2>/dev/null | grep -q 'no work to do' ||
        step_run "native-$variant.log" ninja -C "$directory"
}

# Build the variants named. Prints one progress line if anything has to be done.
native_ensure() {
    local variant
    [[ -f meson.build ]] || return 0
    for variant in "$@"; do
        step_begin native "build $variant"
        native_build "$variant"
        step_end
    done
}
