*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     What does a network stack take for single messages? Half of a round trip by size, the same beside a
...               bulk receiver of no priority on the same CPU, and windows of messages, as in the paper on RTDiP. With
...               several stacks (`STACKS`) the report puts them beside each other.
Metadata          Network Stack    ${STACK}

Resource          realtime_ethernet.resource

Suite Setup       Open The Bench And Send Messages
Suite Teardown    Close The Bench

Test Tags         realtime-ethernet


*** Test Cases ***
Latency Of Messages Is Within Its Limits
    [Documentation]    Half of a round trip from a producer's node to an echo on the target, by size.
    Latency Of Messages Should Be Within Its Limits

A Bulk Receiver Does Not Raise Latency Beyond Its Limits
    [Documentation]    Probes, 100 round trips a second, without and with a bulk receiver of no priority on the echo's
    ...    CPU, which has to reach 80 % of what it reaches alone.
    Bulk Receiver Should Not Raise Latency Beyond Its Limits

Throughput Of Messages Reaches Its Limits
    [Documentation]    Windows of messages, each acknowledged as a whole before the next begins.
    Throughput Of Messages Should Reach Its Limits
