*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     How far is the target's clock from its time server, with each clock stack?
...               A timecard in the target is the reference; two-way transfer over the control network checks it. Where
...               the target has no timecard, two-way transfer is the reference, with its wider bound.
...               A kind of target is asked for the stacks that it has: a test bears the tag stack:NAME.
...               Limits come from the requirements file, which says where each one is from.
Metadata          Needs    clock

Resource          clock_sync.resource

Suite Setup       Open The Bench And Serve Its Time
Suite Teardown    Close The Bench And Its Time

Test Tags         clock-sync


*** Test Cases ***
Every Clock Stack Keeps The Clock Within Its Limit
    [Documentation]    Steady state after the servo has locked: offset farthest from 0, from filtered readings. Stands
    ...    for one test a clock stack of the kind of target, which has the stack's title in its name.
    [Tags]    steady-state
    [Template]    Clock Should Stay Within Its Limit
    every clock stack

Holdover Is Recorded
    [Documentation]    Table 2, `No sync`: synchronised for a while, then cut off. The report shows the drift.
    [Tags]    stack:chrony    holdover
    Measure Holdover    chrony

Clock Locks Again After A Step
    [Documentation]    Time to lock after the target's clock was put wrong by a second, to either side by turns.
    [Tags]    stack:chrony    relock
    Clock Should Lock Again    chrony    step=1000 ms

Sync Interval Does Not Carry The Clock Over Its Limit
    [Documentation]    Table 2 of the paper on network acceleration and time synchronization: the interval is varied.
    [Tags]    stack:chrony    interval
    Clock Should Stay Within Its Limit At Each Interval    chrony

Clock Stays Within Its Limit Under Load
    [Documentation]    CPU, disk and network load, as the profile says (paper on control loops, 4.3.2.2); idle above.
    [Tags]    stack:chrony    load
    Clock Should Stay Within Its Limit Under Load    chrony

Clock Stays Within Its Limit Beside The Pattern
    [Documentation]    The 12-producer pattern is replayed meanwhile; time shares its network, then has one of its own.
    [Tags]    stack:chrony    beside-pattern
    Clock Should Stay Within Its Limit Beside The Pattern    chrony    ${PATTERN}    ${PHASE}

Reference Sees What The Servo Cannot
    [Documentation]    An asymmetric path shifts the clock by half the asymmetry; the servo is blind to it.
    [Tags]    stack:chrony    asymmetry
    Reference Should See An Asymmetric Path    chrony    asymmetry=500 us

A Clock That Is Wrong Is Found
    [Documentation]    Must fail: a clock that was set 3 s ahead, measured and judged as the target's.
    [Tags]    stack:as-found    must-fail
    Wrong Clock Should Be Found    as-found    node=${WRONG_CLOCK_NODE}    error=3000 ms
