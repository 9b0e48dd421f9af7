# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# What this machine is: kernel, CPU, clocks, cards, interrupts, settings, versions. Sourced, never run.
# Nothing in it changes by itself, so that equal bytes mean an equal machine.

DEVICE_TREE=/sys/firmware/devicetree/base

# fact_file FILE: set $fact to a file's first line with single blanks, or to nothing.
fact_file() {
    local value=
    fact=
    ! read_words "$1" || fact=$value
}

# fact_line COMMAND...: set $fact to the first line that a command prints on stdout or stderr, or to nothing.
fact_line() {
    fact=
    ! command -v "$1" >/dev/null || fact=$("$@" 2>&1 | head -n 1)
}

facts_kernel() {
    local command_line value
    kernel_read
    fact_file /proc/cmdline
    command_line=$fact
    [ "$value" = yes ] && value=true || value=false
    json_object release "$(uname -r)" version "$(uname -v)" machine "$(uname -m)" preempt_rt "json:$value" \
        command_line "$command_line"
}

# fact_tree NAME: set $fact to a property of the device tree that is a text, without the zero at its end, or to nothing.
fact_tree() {
    fact=
    [ ! -r "$DEVICE_TREE/$1" ] || fact=$(tr -d '\000' <"$DEVICE_TREE/$1")
}

facts_cpu() {
    local model hardware count online isolated governor
    model=$(sed -n 's/^\(model name\|Model\|Hardware\)[[:blank:]]*: //p' /proc/cpuinfo | head -n 1)
    # What the processor sits on, as firmware says (ARM); a PC has its DMI for that.
    hardware=$(sed -n 's/^Hardware[[:blank:]]*: //p' /proc/cpuinfo)
    fact_tree model
    hardware=${fact:-$hardware}
    count=$(grep -c '^processor[[:blank:]]*:' /proc/cpuinfo)
    fact_file /sys/devices/system/cpu/online
    online=$fact
    fact_file /sys/devices/system/cpu/isolated
    isolated=$fact
    fact_file /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
    governor=$fact
    json_object model "$model" hardware "$hardware" count "json:$count" online "$online" isolated "$isolated" \
        governor "$governor"
}

facts_clock() {
    local current available tai
    fact_file /sys/devices/system/clocksource/clocksource0/current_clocksource
    current=$fact
    fact_file /sys/devices/system/clocksource/clocksource0/available_clocksource
    available=$fact
    # The kernel's own list of clock bases holds what CLOCK_REALTIME and CLOCK_TAI add to CLOCK_MONOTONIC.
    tai=$(awk '/\.get_time:/ { base = $2 }
               /\.offset:/ && base == "ktime_get_real" { real = $2 }
               /\.offset:/ && base == "ktime_get_clocktai" { printf "%d", ($2 - real) / 1e9 + 0.5; exit }' \
        /proc/timer_list 2>/dev/null)
    json_object source "$current" available "$available" tai_utc_s "json:${tai:-null}"
}

facts_hypervisor() {
    local vendor product node flag=false
    ! grep -q '^flags.* hypervisor' /proc/cpuinfo || flag=true
    # A device tree has a node of the hypervisor's, or of QEMU's firmware interface.
    for node in "$DEVICE_TREE/hypervisor" "$DEVICE_TREE"/fw-cfg@*; do
        [ ! -e "$node" ] || flag=true
    done
    fact_file /sys/class/dmi/id/sys_vendor
    vendor=$fact
    fact_file /sys/class/dmi/id/product_name
    product=$fact
    json_object present "json:$flag" vendor "$vendor" product "$product"
}

# What a report knows the machine by: of a PC its DMI, of a board its device tree.
facts_machine() {
    local maker model serial firmware
    fact_file /sys/class/dmi/id/sys_vendor
    maker=$fact
    fact_file /sys/class/dmi/id/product_name
    [ -n "$fact" ] || fact_tree model
    model=$fact
    fact_file /sys/class/dmi/id/product_serial
    [ -n "$fact" ] || fact_tree serial-number
    serial=$fact
    fact_file /sys/class/dmi/id/bios_version
    [ -n "$fact" ] || fact_tree chosen/u-boot,version
    firmware=$fact
    json_object maker "$maker" model "$model" serial "$serial" firmware "$firmware"
}

# Object of all `name: value` lines of stdin, sorted out of ethtool's output.
facts_pairs() {
    awk -F': *' 'NF == 2 && $2 != "" && $2 != "n/a" {
        gsub(/^[ \t]+|[ \t]+$/, "", $1); gsub(/["\\]/, "", $0)
        printf "%s\"%s\":\"%s\"", separator, $1, $2; separator = ","
    }'
}

facts_nic() { # INTERFACE
    local mac mtu speed information offloads coalescing
    fact_file "/sys/class/net/$1/address"
    mac=$fact
    fact_file "/sys/class/net/$1/mtu"
    mtu=$fact
    fact_file "/sys/class/net/$1/speed"
    speed=$fact
    case $speed in '' | -*) speed=null ;; esac
    information=$(ethtool -i "$1" 2>/dev/null | grep -E '^(driver|version|firmware-version|bus-info): ' | facts_pairs)
    offloads=$(ethtool -k "$1" 2>/dev/null | facts_pairs)
    coalescing=$(ethtool -c "$1" 2>/dev/null | sed '/^Adaptive RX/{s/  TX: .*//;}' | facts_pairs)
    json_object name "$1" mac "$mac" mtu "json:${mtu:-null}" speed_mbit_per_s "json:$speed" driver "json:{$information}" \
        offloads "json:{$offloads}" coalescing "json:{$coalescing}"
}

facts_nics() {
    local nic list=
    for nic in /sys/class/net/*; do
        nic=${nic##*/}
        # bonding_masters is a file among the links.
        if [ "$nic" != lo ] && [ -e "/sys/class/net/$nic/address" ]; then
            facts_nic "$nic"
            json_list "$list" "$json"
            list=$json
        fi
    done
    json="[$list]"
}

facts_irqs() {
    local irq action list='' cpus
    for irq in /proc/irq/[0-9]*; do
        for action in "$irq"/*/; do
            [ -d "$action" ] || continue
            action=${action%/}
            fact_file "$irq/smp_affinity_list"
            cpus=$fact
            json_object irq "json:${irq##*/}" name "${action##*/}" cpus "$cpus"
            json_list "$list" "$json"
            list=$json
        done
    done
    json="[$list]"
}

# Every place that the settings name, with what it holds.
facts_of_setting() { # KIND NAME WANTED WHY
    local target targets='' value=''
    case $1 in kernel | tool) return 0 ;; esac
    "$1_targets" "$2"
    for target in $targets; do
        "$1_read" "$target" || continue
        json_text "$1 $target"
        target=$json
        json_text "$value"
        json_list "$facts_settings_list" "$target:$json"
        facts_settings_list=$json
    done
}

facts_versions() {
    local libc ptp4l chrony ssh distribution
    fact_line getconf GNU_LIBC_VERSION
    libc=$fact
    fact_line ptp4l -v
    ptp4l=$fact
    fact_line chronyd -v
    chrony=$fact
    fact_line ssh -V
    ssh=$fact
    distribution=$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release)
    json_object distribution "$distribution" libc "$libc" linuxptp "$ptp4l" chrony "$chrony" openssh "$ssh" \
        ethtool "$(ethtool --version 2>/dev/null)" iproute2 "$(ip -V 2>/dev/null)" \
        stress_ng "$(stress-ng -V 2>/dev/null)"
}

facts_print() {
    local kernel machine cpu clock hypervisor nics irqs versions memory_kb facts_settings_list=
    facts_kernel
    kernel=$json
    facts_machine
    machine=$json
    facts_cpu
    cpu=$json
    facts_clock
    clock=$json
    facts_hypervisor
    hypervisor=$json
    facts_nics
    nics=$json
    # Those of a host go their own ways while a namespace of it is measured.
    json='[]'
    [ "$SCOPE" = namespace ] || facts_irqs
    irqs=$json
    each_setting facts_of_setting
    facts_versions
    versions=$json
    memory_kb=$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
    json_object type facts hostname "$(uname -n)" kernel "json:$kernel" machine "json:$machine" cpu "json:$cpu" \
        memory_bytes "json:$((memory_kb * 1024))" \
        clock "json:$clock" hypervisor "json:$hypervisor" nics "json:$nics" interrupts "json:$irqs" \
        settings "json:{$facts_settings_list}" versions "json:$versions"
    # A member of its own, at the end: facts of a machine are byte for byte as they were.
    [ "$SCOPE" != namespace ] || json="${json%\}},\"shared_with_host\":[$SHARED_FACTS]}"
    printf '%s\n' "$json"
}
