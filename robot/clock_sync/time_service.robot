*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     How good is the time that programs read of the time service, and is its bound true?
...               It steers no clock: trials read it by its library, as programs do, and hold it against a timecard in
...               the target. Table 2 of the paper on network acceleration and time synchronization, with all its rows.
...               What happens to the service in mid-run may cost its readers the time, never the truth of its bound.
...               Limits come from the requirements file, which says where each one is from.
Metadata          Needs    clock

Resource          time_service.resource

Suite Setup       Open The Bench And Serve Its Time To The Service
Suite Teardown    Close The Bench And The Time Of Its Service

Test Tags         clock-sync    stack:timeservice


*** Test Cases ***
The Time Service Keeps Its Limit And Its Word
    [Documentation]    Steady state after its lock: offset farthest from 0, the bound that readers are told, its width.
    Time Service Should Stay Within Its Limit

The Bound Holds In Holdover
    [Documentation]    Table 2, `No sync`: synchronised for a while, then cut off from the server.
    [Tags]    table-2
    Time Service Should Hold Its Bound In Holdover

Holdover Drifts No Faster Than Its Limit
    [Documentation]    The slope of the same holdover; the paper drifts by 0.1 us a second.
    [Tags]    table-2
    Holdover Should Drift No Faster Than Its Limit

The Bound Holds At Each Sync Interval
    [Documentation]    The other rows of Table 2.
    [Tags]    table-2
    Bound Should Hold At Each Interval

Other Stacks Are Recorded Beside It
    [Documentation]    The same target, the same server: error, what a reading costs, what the daemon takes of the CPU.
    [Tags]    table-2
    Measure Other Stacks Beside It

Readers Keep A True Bound Whatever Happens
    [Documentation]    Service killed and started anew, server lost and back, the system's clock put off by an hour.
    [Tags]    mid-run
    Bound Should Stay True Through What Happens

Readers Are Told That The Server Has Stepped
    [Documentation]    The server's time steps: no time until the service is sure, then the new one, told as a step.
    [Tags]    mid-run
    Readers Should Be Told Of A Step    server-stepped

Readers Are Told That The Target Was Paused
    [Documentation]    The target is stopped for 10 s, and its counter with it.
    [Tags]    mid-run
    Readers Should Be Told Of A Step    paused

The Service Comes Back After A Reboot
    [Documentation]    Power is taken away and given back; nothing of the time before may be left.
    [Tags]    mid-run
    Service Should Come Back After A Reboot
