# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The system's clock after a card's. Nobody serves it.
# shellcheck source=targets/linux-rt/clock/linuxptp.sh
. "$HERE/linuxptp.sh"

stack_start() {
    need_program phc2sys phc_ctl bw-wander
    keep_phc_and_clock
    # A card that is connected to nothing shows any time: it gets TAI, by this machine's clock.
    [ ! -e "$CONFIG/phc-preset" ] || phc_ctl -q "$phc" set adj "$(cat "$CONFIG/phc-preset")" >/dev/null
    [ ! -e "$CONFIG/bw-wander.arguments" ] || daemon_start_with bw-wander.arguments bw-wander bw-wander
    daemon_start_with phc2sys.arguments phc2sys phc2sys
}
