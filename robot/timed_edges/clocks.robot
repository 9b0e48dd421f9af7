*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     How far is a clock from its time server, seen from outside? The clock makes an edge at each of its
...               full periods; the reference is the timecard's, or that of the PTP clock which it follows.
...               What the target itself finds meanwhile stands beside in the report.
Metadata          Needs    clock, pins

Resource          timed_edges.resource

Suite Setup       Open The Bench And Its Edges    clocks
Suite Teardown    Close The Bench And Its Edges

Test Tags         timed-edges


*** Test Cases ***
Edges Of Every Clock Stack Keep Its Limit
    [Documentation]    Against the timecard, which shows the time server's time, or the PTP clock that it follows.
    ...    Stands for one test a clock stack of the kind of target, which has the stack's title in its name.
    [Template]    Edges Of The Clock Should Keep Its Limits
    edges of every clock stack
