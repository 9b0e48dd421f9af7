# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The undo file: what every place held before it was changed first. Sourced, never run.
#
# Line 1 is the boot that it belongs to: all settings are of the running kernel, so a reboot has undone them. Each further line
# is KIND TAB TARGET TAB OLD-VALUE TAB end; one without its end was cut off by a crash, before the change that it announces.

TAB=$(printf '\t')

# Tell whether there is an undo file of this boot; one of an earlier boot is dropped.
undo_present() {
    local first='' boot_id
    [ -e "$UNDO" ] || return 1
    boot_id=$(cat /proc/sys/kernel/random/boot_id)
    read -r first <"$UNDO" || :
    [ "$first" != "$boot_id" ] || return 0
    rm -f "$UNDO"
    return 1
}

# Make ready to record: start a file, or close a last line that was cut off.
undo_open() {
    if undo_present; then
        # The substitution drops a newline: what is left is the last character of an unfinished line.
        [ -z "$(tail -c 1 "$UNDO")" ] || echo >>"$UNDO"
    else
        cat /proc/sys/kernel/random/boot_id >"$UNDO.new" && mv "$UNDO.new" "$UNDO" && return 0
        rm -f "$UNDO.new"
        return 1
    fi
}

# undo_record KIND TARGET VALUE: remember a value, unless an older one of this place is there. Returns when it is on disk; 1, with
# $note, if it cannot be put there: nothing may be changed then.
# shellcheck disable=SC2034 # who includes this file reads $note
undo_record() {
    local line
    if ! undo_open 2>/dev/null; then
        note="the old value cannot be written to $UNDO: is its disk full?"
        return 1
    fi
    while IFS= read -r line; do
        case $line in "$1$TAB$2$TAB"*"${TAB}end") return 0 ;; esac
    done <"$UNDO"
    if ! { printf '%s\t%s\t%s\tend\n' "$1" "$2" "$3" >>"$UNDO" && sync "$UNDO"; } 2>/dev/null; then
        note="the old value cannot be written to $UNDO: is its disk full?"
        return 1
    fi
}

# undo_replay CALLBACK: call CALLBACK KIND TARGET VALUE for every record, the newest first. Records whose callback returns 0
# are done with; the file is removed with the last of them. Returns 1 if any is left.
undo_replay() {
    local line kind target old left="$UNDO.new"
    undo_present || return 0
    head -n 1 "$UNDO" >"$left"
    sed 1d "$UNDO" | tac >"$UNDO.reversed"
    # `read` with a tab in IFS would take several tabs for one: a value may be empty, and may hold tabs.
    while IFS= read -r line <&4; do
        case $line in *"$TAB"*"$TAB"*"${TAB}end") ;; *) continue ;; esac
        kind=${line%%"$TAB"*} line=${line#*"$TAB"}
        target=${line%%"$TAB"*} line=${line#*"$TAB"}
        old=${line%"${TAB}end"}
        "$1" "$kind" "$target" "$old" || printf '%s\t%s\t%s\tend\n' "$kind" "$target" "$old" >>"$left"
    done 4<"$UNDO.reversed"
    rm -f "$UNDO.reversed"
    if [ "$(wc -l <"$left")" -eq 1 ]; then
        rm -f "$UNDO" "$left"
        return 0
    fi
    { head -n 1 "$left" && sed 1d "$left" | tac; } >"$UNDO.kept"
    mv "$UNDO.kept" "$UNDO"
    rm -f "$left"
    return 1
}
