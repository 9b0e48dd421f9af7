# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# What both roles of a clock stack need: other time services out of the way, daemons that are watched, and the way back.
# Sourced by client.sh and server.sh, never run.
#
# A stack is NAME/stack.sh here and stacks/NAME.sh on a machine, of functions without arguments:
#   stack_start    on a target: check what is needed, write down what is changed (keep), start the daemons (daemon_start)
#   stack_hold     stop listening to the server, keep the frequency
#   stack_resume   listen again
#   server_start   on a time server: start what serves; left out: `served_as` of its stack.toml names another stack's
#   server_hold    end that
#
# Every change is written to $STATE/clock.undo before it is made, in the form of ../provision/undo.sh. `stop` replays it, and
# so does provision.sh's `restore`: what a killed run has left is put back by whichever comes first.
set -eu
export LC_ALL=C
STATE=${BENCHWRIGHT_STATE:-/var/lib/benchwright}
export PATH="$STATE/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

HERE=$(cd "$(dirname "$0")" && pwd)
# Logs of the daemons, and what tells how they ended.
RUN=${BENCHWRIGHT_CLOCK_RUN:-/run/benchwright/clock}
# Configurations, as resources/clock_sync/config.py has filled them in.
CONFIG=$RUN/config
# shellcheck disable=SC2034  # used by undo.sh, and by items.sh
UNDO=$STATE/clock.undo TEST_INTERFACE=

# shellcheck source=targets/linux-rt/provision/json.sh
. "$HERE/json.sh"
# shellcheck source=targets/linux-rt/provision/kinds.sh
. "$HERE/kinds.sh"
# shellcheck source=targets/linux-rt/provision/undo.sh
. "$HERE/undo.sh"
# shellcheck source=targets/linux-rt/provision/items.sh
. "$HERE/items.sh"

# Services that would steer the clock, too.
TIME_SERVICES='systemd-timesyncd.service chrony.service chronyd.service ntp.service ntpd.service ntpsec.service
openntpd.service ptp4l.service phc2sys.service timemaster.service'
# The same as processes, by the first 15 characters of their names, as the kernel keeps them. Not bw-wander: a bench may have let
# it loose on the time server for longer than one stack runs.
TIME_PROCESSES='systemd-timesyn|chronyd|ntpd|openntpd|ptp4l|phc2sys|timemaster|bw-ntp-user|bw-timed'

die() { # CODE TEXT
    echo "${0##*/}: $2" >&2
    exit "$1"
}

need_root() {
    [ "$(id -u)" -eq 0 ] || die 3 "root is needed"
}

need_program() { # NAME...
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || die 3 "$program is not installed"
    done
}

# Write down a value of the clock as it is now.
keep() { # KIND TARGET
    local value='' note=''
    "$1_read" "$2" || die 3 "$1 $2: $note"
    undo_record "$1" "$2" "$value"
}

stop_time_services() {
    local service others value='' note=''
    for service in $TIME_SERVICES $(systemctl list-units --plain --no-legend 'ptp4l@*' 'phc2sys@*' 2>/dev/null | sed 's/ .*//'); do
        if service_read "$service" && [ "$value" = active ]; then
            undo_record service "$service" active
            service_write "$service" inactive || die 3 "$note"
        fi
    done
    others=$(grep -xE "$TIME_PROCESSES" /proc/[0-9]*/comm 2>/dev/null | head -n 1)
    [ -z "$others" ] || die 3 "another program steers the clock, and is no service that could be stopped: $others"
}

# Values of the system clock; what is written down first is put back last.
keep_system_clock() {
    keep clock tai_utc_s
    keep clock tick_us
    keep clock frequency_ppb
    keep clock status
}

# Start a daemon, in the foreground of a shell of its own, which waits for its end. The lock (9) does not go along.
daemon_start() { # NAME COMMAND...
    local tries=60
    undo_record daemon "$1" ended
    grep -qx "$1" "$RUN/daemons" 2>/dev/null || echo "$1" >>"$RUN/daemons"
    rm -f "$RUN/$1.exit"
    # shellcheck disable=SC2016  # expanded by the shell that is started
    setsid sh -c 'name=$1; shift
        BENCHWRIGHT_DAEMON=$name "$@" >>"$0/$name.log" 2>>"$0/$name.err" </dev/null &
        code=0; wait $! || code=$?
        echo $code >"$0/$name.exit.new"; mv "$0/$name.exit.new" "$0/$name.exit"' "$RUN" "$@" </dev/null >/dev/null 2>&1 9>&- &
    # It is there, or has ended already, before anybody asks.
    while [ "$tries" -gt 0 ] && [ -z "$(daemon_pids "$1")" ] && [ ! -e "$RUN/$1.exit" ]; do
        tries=$((tries - 1))
        sleep 0.05
    done
}

# The same with its arguments from a file of the configuration.
daemon_start_with() { # FILE NAME COMMAND...
    local file="$CONFIG/$1"
    shift
    # shellcheck disable=SC2046  # words are the purpose; none holds blanks
    daemon_start "$@" $(cat "$file")
}

end_daemons() { # NAME...
    local daemon note=''
    for daemon in "$@"; do
        daemon_write "$daemon" ended || die 4 "$daemon does not end"
    done
}

# A process that a daemon has started may end between the look and the signal; one that takes it is enough.
signal_daemon() { # NAME SIGNAL
    local pid taken=
    for pid in $(daemon_pids "$1"); do
        if kill "-$2" "$pid" 2>/dev/null; then taken=1; fi
    done
    [ -n "$taken" ] || die 4 "$1 does not run"
}

# Print how each daemon of this run is, and what the clock shows, as NDJSON.
print_status() {
    local name value='' note='' running code words uptime
    [ -e "$RUN/daemons" ] || : >"$RUN/daemons"
    while read -r name; do
        daemon_read "$name"
        [ "$value" = running ] && running=true || running=false
        code=null
        [ ! -e "$RUN/$name.exit" ] || read -r code <"$RUN/$name.exit"
        words=$(tail -n 3 "$RUN/$name.err" 2>/dev/null)
        [ -n "$words" ] || words=$(tail -n 3 "$RUN/$name.log" 2>/dev/null) || :
        json_object type daemon name "$name" running "json:$running" exit_code "json:$code" last_words "$words"
        printf '%s\n' "$json"
    done <"$RUN/daemons"
    # Logs of linuxptp count from the machine's start: this is what their times become by.
    read -r uptime _ </proc/uptime
    clock_read tai_utc_s || value=0
    json_object type clock uptime_s "json:$uptime" realtime_ns "json:$(date +%s%N)" tai_utc_s "json:$value"
    printf '%s\n' "$json"
}

# Take the functions of a stack. The name is that of a file of stacks/, never a way to another one.
load_stack() { # STACK
    local file names=''
    case $1 in
    '' | *[!a-z0-9-]*) ;;
    *)
        if [ -r "$HERE/stacks/$1.sh" ]; then
            stack=$1
            # shellcheck disable=SC1090  # each of stacks/ is checked by itself
            . "$HERE/stacks/$1.sh"
            return
        fi
        ;;
    esac
    for file in "$HERE"/stacks/*.sh; do
        file=${file##*/}
        names="$names${names:+, }${file%.sh}"
    done
    die 2 "unknown stack \"$1\"; allowed: $names"
}

call_stack() { # FUNCTION
    command -v "$1" >/dev/null || die 4 "clock stack $stack cannot do this: no $1 in stacks/$stack.sh"
    "$1"
}

begin() {
    need_root
    mkdir -p "$STATE" "$RUN/chrony/command"
    # chronyd insists on a folder that only its user can enter.
    chmod 0700 "$RUN/chrony/command"
    rm -f "$RUN/daemons" "$RUN"/*.log "$RUN"/*.err "$RUN"/*.exit "$RUN"/chrony/*.log
    echo "$stack" >"$RUN/stack"
    stop_time_services
}

restore_all() {
    need_root
    mkdir -p "$STATE"
    undo_replay put_back || :
    report_summary restore
    [ "$count_wrong" -eq 0 ]
}

# Run one verb of a role: start STACK, hold, resume, status, stop.
run_verb() { # VERB [STACK]
    case $1 in
    start)
        [ $# -eq 2 ] || die 2 "start: name the stack"
        load_stack "$2"
        lock_state
        restore_all >/dev/null || die 5 "what an earlier run has left cannot be put back"
        begin
        role_start
        ;;
    hold | resume)
        need_root
        [ -r "$RUN/stack" ] || die 4 "no stack runs"
        load_stack "$(cat "$RUN/stack")"
        "role_$1"
        ;;
    status) print_status ;;
    stop)
        lock_state
        restore_all
        ;;
    *) die 2 "unknown verb $1; allowed: start, hold, resume, status, stop" ;;
    esac
}
