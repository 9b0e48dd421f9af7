# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016 # $(NAME) in formats is apt's own notation, not the shell's
# Further entries of apt's sources, derived from the one that this machine has for its own suite. Sourced after progress.sh.

# Print a value of this machine's os-release. $1: its key.
os_release() {
    (. /etc/os-release && printf '%s' "${!1:-}")
}

# Print file:line of the entry for component main of suite $1; nothing where there is none.
apt_place() {
    apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(SOURCESENTRY)' 'Created-By: Packages' |
        awk -v suite="$1" '$1 == suite && $2 == "main" { print $3; exit }'
}

# Print the entry at file:line $4 for suite $2 with its type replaced by $1 (deb, deb-src), the suite by $3 and the components by
# "main"; options and keys of the entry are kept as they are.
apt_entry() {
    local type=$1 suite=$2 other=$3 file=${4%:*} line=${4##*:}
    if [[ $file == *.sources ]]; then
        # Deb822: apt counts paragraphs or lines, depending on its version: take the first paragraph with the suite.
        awk -v type="$type" -v suite="$suite" -v other="$other" '
            BEGIN { RS = ""; FS = "\n" }
            $0 ~ "(^|\n)Suites:([^\n]* )?" suite "( |\n|$)" && $0 !~ "(^|\n)Enabled: *no" {
                for (i = 1; i <= NF; i++) {
                    if ($i ~ /^Suites:/) print "Suites: " other
                    else if ($i ~ /^Components:/) print "Components: main"
                    else if ($i ~ /^Types:/) print "Types: " type
                    else if ($i !~ /^#/) print $i
                }
                exit
            }' "$file"
    else
        awk -v want="$line" -v type="$type" -v suite="$suite" -v other="$other" '
            NR == want {
                printf "%s ", type
                for (i = 2; i <= NF; i++) {
                    if ($i == suite) { print other, "main"; exit }
                    printf "%s ", $i
                }
            }' "$file"
    fi
}
