*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     How does a clock that has locked take what happens to it?
...               Its oscillator changes, its time steps, its grandmaster vanishes, its path delays and loses packets.
...               Sizes are in resources/clock_sync/clock_disturbances.toml; limits, deadlines in the requirements file.
Metadata          Needs    clock

Resource          clock_disturbance.resource

Suite Setup       Open The Bench And Prepare To Disturb Its Time
Suite Teardown    Close The Bench And Its Disturbed Time

Test Tags         clock-sync


*** Test Cases ***
Chrony Follows A Change Of The Oscillator
    [Documentation]    The target's oscillator becomes faster, and slower again, under the servo, which has to find it.
    [Tags]    stack:chrony
    Clock Should Follow Its Oscillator    chrony

A Step While The Clock Is Measured Is Seen
    [Documentation]    A check of the bench: the step is found with its size, and a trial with a step passes nothing.
    [Tags]    stack:chrony
    Step Of The Clock Should Be Seen    chrony

Chrony Keeps Its Limit Over A Path With Jitter And Loss
    [Documentation]    Kernel netem between time server and target, on the way to the target alone.
    [Tags]    stack:chrony
    Clock Should Stay Within Its Limit Over An Impaired Path    chrony

PTP Follows The Loss And The Return Of Its Grandmaster
    [Documentation]    A standby of worse priority1 serves the same clock; the best-master algorithm has to choose it.
    [Tags]    stack:ptp-software
    Clock Should Follow The Grandmasters    ptp-software

PTP Follows A Change Of The Oscillator
    [Documentation]    As above, with the PI servo of linuxptp.
    [Tags]    stack:ptp-software
    Clock Should Follow Its Oscillator    ptp-software

PTP Keeps Its Limit Over A Path With Jitter And Loss
    [Documentation]    As above, with the PI servo of linuxptp.
    [Tags]    stack:ptp-software
    Clock Should Stay Within Its Limit Over An Impaired Path    ptp-software
