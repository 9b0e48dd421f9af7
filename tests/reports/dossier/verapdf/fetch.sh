#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Put veraPDF into the cache by Maven, once, and print its folder. What is in the cache is checked by its hashes.
#
# Exit codes: 0 ready; 1 Maven failed, or a file has another hash; 3 Java or Maven is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

sums=$PWD/jars.sha256
folder=${BENCHWRIGHT_CACHE:-$HOME/.cache/benchwright}/verapdf-1.28.2

holds() { (cd "$1" 2>/dev/null && sha256sum --quiet --check "$sums" >/dev/null 2>&1); }

command -v java >/dev/null || { echo "java is missing: apt-get install default-jre-headless" >&2; exit 3; }
if ! holds "$folder"; then
    command -v mvn >/dev/null || { echo "mvn is missing: apt-get install maven" >&2; exit 3; }
    mkdir -p "$(dirname "$folder")"
    draft=$(mktemp -d "$folder.XXXXXX")
    trap 'rm -rf "$draft"' EXIT
    # The pom is copied: Maven writes beside it.
    cp pom.xml "$draft/pom.xml"
    (cd "$draft" && mvn --batch-mode --quiet dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=jars >&2) ||
        { echo "veraPDF could not be fetched by Maven" >&2; exit 1; }
    holds "$draft/jars" || { echo "what Maven fetched has other hashes than $sums" >&2; exit 1; }
    rm -rf "$folder"
    mv "$draft/jars" "$folder"
fi
echo "$folder"
