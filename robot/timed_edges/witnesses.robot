*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     Do those who watch a clock agree? Its offset to the PTP clock by cross-timestamps, by edges that the
...               network card captures, and by the same edges on the oscilloscope: every two within their U.
Metadata          Needs    clock, pins

Resource          timed_edges.resource

Suite Setup       Open The Bench And Its Edges    witnesses
Suite Teardown    Close The Bench And Its Edges

Test Tags         timed-edges


*** Test Cases ***
Three Witnesses Of A Clock Agree
    [Documentation]    The clock follows the PTP clock by phc2sys. Who does not agree is named in the report.
    Three Witnesses Should Agree    phc2sys
