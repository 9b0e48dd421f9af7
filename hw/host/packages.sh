# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016 # $(NAME) in formats is apt's own notation, not the shell's
# Install the Debian packages of packages.txt, and of each kind of target, that are missing. Sourced by setup.sh after
# progress.sh and apt.sh.

readonly PACKAGE_LIST=hw/host/packages.txt
readonly HOST_SYSTEM="Benchwright's host is Debian 12 or 13"

# Print all lists, one after the other, without their comments: the host's and those of the kinds of targets.
package_lists() {
    local list
    for list in "$PACKAGE_LIST" targets/*/packages.txt; do
        [[ ! -f $list ]] || sed 's/ *#.*//' "$list"
    done
}

# Print "package source minimum" of each listed package that is absent or too old. $1: the uses, "bench" or "bench dev".
packages_missing() {
    local -A installed=()
    local -a names
    local name status version use source minimum
    mapfile -t names < <(package_lists | awk 'NF { print $1 }')
    while read -r name status version; do
        [[ $status == installed ]] && installed[$name]=$version
    done < <(dpkg-query -W -f '${Package} ${db:Status-Status} ${Version}\n' "${names[@]}" 2>/dev/null)
    while read -r name use source minimum; do
        [[ -z $name || " $1 " != *" $use "* ]] && continue
        version=${installed[$name]:-}
        if [[ -z $version ]] ||
            { [[ $minimum != - ]] && dpkg --compare-versions "$version" lt "$minimum"; }; then
            printf '%s %s %s\n' "$name" "$source" "$minimum"
        fi
    done < <(package_lists) | sort -u
}

# Print a line for each package that apt does not have in a version that is new enough. $1: as of packages_missing.
# Apt knows only what it has fetched, so `apt-get update` must have run.
packages_unavailable() {
    local name minimum version newest found known
    local -a names
    mapfile -t names < <(awk '{ print $1 }' <<<"$1")
    known=$(apt-cache madison "${names[@]}" 2>/dev/null |
        awk -F '|' '$3 !~ /Sources$/ { gsub(/ /, "", $1); gsub(/ /, "", $2); print $1, $2 }') || true
    while read -r name _ minimum; do
        newest='' found=
        while read -r version; do
            if [[ -z $newest ]] || dpkg --compare-versions "$version" gt "$newest"; then newest=$version; fi
            if [[ $minimum == - ]] || dpkg --compare-versions "$version" ge "$minimum"; then found=yes; fi
        done < <(awk -v name="$name" '$1 == name { print $2 }' <<<"$known")
        [[ -n $found ]] || printf '  %s: %s\n' "$name" "needs ${minimum/#-/any version}, apt has ${newest:-none}"
    done <<<"$1"
}

# Print the packages of source "backports" that apt would not take new enough by itself. $1: as of packages_missing.
packages_from_backports() {
    local name source minimum candidate
    while read -r name source minimum; do
        [[ $source == backports ]] || continue
        candidate=$(LC_ALL=C apt-cache policy "$name" 2>/dev/null | awk '$1 == "Candidate:" { print $2 }')
        [[ -n $candidate ]] && dpkg --compare-versions "$candidate" ge "$minimum" || printf '%s\n' "$name"
    done <<<"$1"
}

# Make apt know the backports suite: from an entry that exists, else by one derived from the suite's own.
# Apt lists only what it has fetched, so `apt-get update` must have run.
backports_enable() {
    local suite backports entry sentry file
    suite=$(os_release VERSION_CODENAME)
    backports="$suite-backports"
    apt-get indextargets --format '$(RELEASE)' 'Created-By: Packages' | grep -qxF "$backports" && return 0
    sentry=$(apt_place "$suite")
    [[ -n $sentry ]] || die "$EXIT_MISSING" \
        "packages: apt has no source for Debian's suite \"$suite\" (component main), so \"$backports\" cannot be derived." \
        "Add the suite to /etc/apt/sources.list and start again."
    entry=$(apt_entry deb "$suite" "$backports" "$sentry")
    [[ $entry == *"$backports"* ]] || die "$EXIT_MISSING" \
        "packages: cannot derive \"$backports\" from $sentry; add that suite to apt's sources by hand."
    file=/etc/apt/sources.list.d/benchwright-backports
    [[ ${sentry%:*} == *.sources ]] && file+=.sources || file+=.list
    printf '# Written by Benchwright set-up: %s, taken from %s\n%s\n' "$backports" "${sentry%:*}" "$entry" >"$file"
    printf '%-9s %s\n' packages "added $backports to apt ($file); its packages replace nothing that is installed"
    step_run apt-update.log "${apt[@]}" update
}

# Forbid that package scripts start services while apt runs; packages_install takes the ban back.
services_ban() {
    BAN_FILE=/usr/sbin/policy-rc.d
    if [[ -e $BAN_FILE ]]; then
        BAN_FILE=
        return
    fi
    printf '#!/bin/sh\n# Benchwright set-up: start no service during installation.\nexit 101\n' >"$BAN_FILE"
    chmod 755 "$BAN_FILE"
    trap 'rm -f "$BAN_FILE"' EXIT
}

services_unban() {
    [[ -z $BAN_FILE ]] || rm -f "$BAN_FILE"
    trap - EXIT
}

units_enabled() {
    find /etc/systemd/system -path '*.wants/*' -name '*.service' -printf '%f\n' 2>/dev/null | sort -u
}

# Disable the services that the installation has enabled for the next boot. $1: those enabled before it.
services_disable_new() {
    local unit
    while read -r unit; do
        systemctl --root=/ disable "$unit" >/dev/null 2>&1 || true
        find /etc/systemd/system -path '*.wants/*' -name "$unit" -delete
        printf '%-9s %s\n' packages "left $unit disabled"
    done < <(comm -13 <(printf '%s\n' "$1") <(units_enabled))
}

packages_install() {
    local missing=$1 count before_units unavailable
    local -a from_main from_backports apt
    count=$(wc -l <<<"$missing")
    apt=(env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -y -q -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)

    step_begin packages "installing $count Debian packages"
    before_units=$(units_enabled)
    step_run apt-update.log "${apt[@]}" update
    mapfile -t from_backports < <(packages_from_backports "$missing")
    mapfile -t from_main < <(awk '{ print $1 }' <<<"$missing" | grep -vxF -f <(printf '%s\n' "${from_backports[@]:--}"))
    if [[ ${#from_backports[@]} -gt 0 && $(os_release ID) == debian ]]; then
        backports_enable
    fi
    unavailable=$(packages_unavailable "$missing")
    [[ -z $unavailable ]] || die "$EXIT_MISSING" \
        "packages: nothing was installed: this is $(os_release PRETTY_NAME), $HOST_SYSTEM, and apt has not:" \
        "$unavailable"
    services_ban
    [[ ${#from_main[@]} -eq 0 ]] ||
        step_run apt-install.log "${apt[@]}" install --no-install-recommends "${from_main[@]}"
    [[ ${#from_backports[@]} -eq 0 ]] ||
        step_run apt-backports.log "${apt[@]}" install --no-install-recommends \
            -t "$(os_release VERSION_CODENAME)-backports" "${from_backports[@]}"
    services_unban
    services_disable_new "$before_units"
    missing=$(packages_missing "$PACKAGE_USES")
    [[ -z $missing ]] || die "$EXIT_MISSING" "packages: apt ended well, but these are still absent or too old:" "$missing"
    step_end
}

# Bring the host's packages up to the list. $1: the uses, "bench" or "bench dev".
packages_ensure() {
    local missing
    readonly PACKAGE_USES=$1
    command -v dpkg-query >/dev/null || die "$EXIT_MISSING" \
        "packages: this is no Debian system (no dpkg-query); $HOST_SYSTEM." \
        "The programs that it needs are listed in $PACKAGE_LIST and targets/*/packages.txt."
    missing=$(packages_missing "$1")
    [[ -z $missing ]] && return 0
    [[ $(os_release ID) == debian ]] || printf '%-9s %s\n' packages \
        "this is $(os_release PRETTY_NAME); $HOST_SYSTEM, and it has been tried on no other system"
    [[ $EUID -eq 0 ]] || die "$EXIT_MISSING" \
        "packages: missing or too old, and installing needs root:" \
        "$(awk '{ print "  " $1 ($2 == "backports" ? "  (from backports)" : "") }' <<<"$missing")" \
        "Run once as root: hw/host/setup.sh $SETUP_ARGUMENTS"
    packages_install "$missing"
}
