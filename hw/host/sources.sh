# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sources of others that are built here (sources.txt), unpacked and patched in .build/sources/PACKAGE. Sourced after progress.sh and apt.sh.
#
# What was fetched is kept in BENCHWRIGHT_CACHE/sources: another clone fetches nothing.

# Fetch version $3 of source package $1 of suite $2 into the folder $4, from the mirror of the machine's own suite and by its keys;
# its lists stay out of apt's own.
sources_fetch() {
    local package=$1 suite=$2 version=$3 folder=$4 own sentry extension=list
    local -a options
    own=$(os_release VERSION_CODENAME)
    sentry=$(apt_place "$own")
    [[ -n $sentry ]] || die "$EXIT_MISSING" "sources: apt has no source for Debian's suite \"$own\" (component main)." \
        "Add the suite to /etc/apt/sources.list and start again."
    [[ ${sentry%:*} != *.sources ]] || extension=sources
    mkdir -p "$folder"/apt/{parts,lists/partial,cache/archives/partial}
    apt_entry deb-src "$own" "$suite" "$sentry" >"$folder/apt/parts/source.$extension"
    options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$folder/apt/parts"
        -o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache" -o APT::Sandbox::User=root)
    step_run "sources-$package-update.log" apt-get "${options[@]}" update
    (cd "$folder" && exec apt-get "${options[@]}" source --download-only "$package=$version") >"$BUILD_DIR/log/sources-$package.log" 2>&1 ||
        die "$EXIT_MISSING" "sources: apt does not have version $version of source package $package, which hw/host/sources.txt names." \
            "The whole output is in $BUILD_DIR/log/sources-$package.log."
    rm -rf "$folder/apt"
}

# Unpack and patch one row of sources.txt: package, suite, version, file, hash, folder of patches.
sources_ensure_one() {
    local package=$1 suite=$2 version=$3 file=$4 hash=$5 patches=$6 key kept directory=$BUILD_DIR/sources/$1 patch
    kept=$(realpath -m "${BENCHWRIGHT_CACHE:-$HOME/.cache/benchwright}/sources")
    key="$hash $(cat "$patches"/*.patch | cksum)"
    [[ ! -d $directory ]] || ! stamp_matches "source-$package" "$key" || return 0
    step_begin sources "$package $version"
    stamp_clear "source-$package"
    rm -rf "$directory"
    mkdir -p "$directory" "$kept" "$BUILD_DIR/log"
    if ! sha256sum --status -c - 2>/dev/null <<<"$hash  $kept/$file"; then
        sources_fetch "$package" "$suite" "$version" "$kept/$package.$$"
        sha256sum --status -c - <<<"$hash  $kept/$package.$$/$file" ||
            die "$EXIT_MISSING" "sources: $file has another SHA-256 than hw/host/sources.txt says."
        mv -f "$kept/$package.$$/$file" "$kept/$file"
        rm -rf "${kept:?}/$package.$$"
    fi
    step_run "sources-$package-unpack.log" tar -x -f "$kept/$file" -C "$directory" --strip-components=1
    # Some files have ends of lines of another system, which a patch would have to have, too.
    find "$directory" -name '*.[ch]' -exec sed -i 's/\r$//' {} +
    for patch in "$patches"/*.patch; do
        step_run "sources-$package-${patch##*/}.log" patch -d "$directory" -p1 -N -i "$(realpath "$patch")"
    done
    stamp_write "source-$package" "$key"
    step_end
}

# Bring all sources up to sources.txt and our patches.
sources_ensure() {
    local package suite version file hash patches
    while read -r package suite version file hash patches; do
        sources_ensure_one "$package" "$suite" "$version" "$file" "$hash" "$patches"
    done < <(grep -v -e '^#' -e '^$' hw/host/sources.txt)
}
