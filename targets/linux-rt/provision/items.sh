# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# Items: what was done to each place, counted and printed; and putting a place back. Sourced, never run.

LOCK_TIMEOUT_S=10
items=0 count_ok=0 count_wrong=0 count_absent=0 count_changed=0

# report STATUS KIND PLACE WANTED FOUND CHANGED WHY NOTE: print an item and count it.
report() {
    local ok=true
    items=$((items + 1))
    case $1 in
    ok) count_ok=$((count_ok + 1)) ;;
    wrong)
        count_wrong=$((count_wrong + 1))
        ok=false
        ;;
    *) count_absent=$((count_absent + 1)) ;;
    esac
    [ "$6" = false ] || count_changed=$((count_changed + 1))
    json=''
    json_object type item item "$2 $3" status "$1" ok "json:$ok" wanted "$4" found "$5" changed "json:$6" why "$7" note "$8"
    printf '%s\n' "$json"
}

report_summary() {
    json_object type summary verb "$1" items "json:$items" ok "json:$count_ok" wrong "json:$count_wrong" \
        not_applicable "json:$count_absent" changed "json:$count_changed"
    printf '%s\n' "$json"
}

# put_back KIND TARGET OLD: restore one place; return 1 if it is not as it was.
put_back() {
    local kind=$1 target=$2 old=$3 value='' note='' found
    if ! kind_known "$kind" || ! "${kind}_read" "$target"; then
        report 'not applicable' "$kind" "$target" "$old" '' false 'as it was before' "$note"
        return 0
    fi
    found=$value
    if [ "$found" = "$old" ]; then
        report ok "$kind" "$target" "$old" "$found" false 'as it was before' ''
    elif "${kind}_write" "$target" "$old" && "${kind}_read" "$target" && [ "$value" = "$old" ]; then
        report ok "$kind" "$target" "$old" "$found" true 'as it was before' ''
    else
        report wrong "$kind" "$target" "$old" "$found" false 'as it was before' "${note:-it did not stay}"
        return 1
    fi
}

lock_state() {
    mkdir -p "$STATE"
    exec 9>"$STATE/lock"
    flock -w "$LOCK_TIMEOUT_S" 9 || die 5 "another provisioning holds $STATE/lock"
}
