*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     How far is a clock from its time server, seen from outside? The clock makes an edge at each of its
...               full periods; the reference is the timecard's, or that of the PTP clock which it follows.
...               What the target itself finds meanwhile stands beside in the report.
Metadata          Needs    clock, pins

Resource          ../../resources/timed_edges.resource

Suite Setup       Open The Bench And Its Edges    clocks
Suite Teardown    Close The Bench And Its Edges

Test Tags         timed-edges


*** Test Cases ***
Edges Of The Time Service Keep Its Limit
    [Documentation]    Of its own clock; against the timecard, which shows the time server's time.
    Edges Of The Clock Should Keep Its Limits    timeservice

Edges Of A Clock That Chrony Holds Keep Its Limit
    [Documentation]    Against the timecard, which shows the time server's time.
    Edges Of The Clock Should Keep Its Limits    chrony

Edges Of A Clock That An NTP Client Holds Keep Its Limit
    [Documentation]    Against the timecard, which shows the time server's time.
    Edges Of The Clock Should Keep Its Limits    ntp-user

Edges Of A Clock That PTP Holds Keep Its Limit
    [Documentation]    With software stamps, against the timecard, which shows the time server's time.
    Edges Of The Clock Should Keep Its Limits    ptp-software

Edges Of A Clock That Phc2sys Holds Keep Its Limit
    [Documentation]    Against the PTP clock that it follows.
    Edges Of The Clock Should Keep Its Limits    phc2sys
