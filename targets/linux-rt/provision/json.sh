# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# JSON on stdout, with as few processes as possible: on an emulated machine each costs milliseconds. Sourced, never run.

# json_text STRING: set $json to the quoted string. Control characters become blanks.
json_text() {
    case $1 in
    *[\"\\[:cntrl:]]*)
        json=$(printf '%s' "$1" | tr '[:cntrl:]' ' ' | sed 's/[\\"]/\\&/g')
        json="\"$json\""
        ;;
    *) json="\"$1\"" ;;
    esac
}

# json_object KEY VALUE [KEY VALUE]...: set $json to an object of strings. A value that begins with `json:` is
# taken as it is after that: numbers, true, false, null, inner objects.
json_object() {
    local object='' separator='' key
    while [ $# -ge 2 ]; do
        json_text "$1"
        key=$json
        case $2 in
        json:*) json=${2#json:} ;;
        *) json_text "$2" ;;
        esac
        object="$object$separator$key:$json"
        separator=,
        shift 2
    done
    json="{$object}"
}

# json_list LIST VALUE: append a value (JSON already) to the inner text of a list; set $json to the new inner text.
json_list() {
    json=${1:+$1,}$2
}
