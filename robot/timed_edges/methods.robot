*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     How close to its instant does an edge come? Four ways to make one, against a periodic edge of the PTP
...               clock, as in Table II of the paper on intra-process clock synchronization, which the report has too.
...               Limits come from the requirements file, which says where each one is from; a method that has none
...               there is shown, and its place among the methods is judged.
Metadata          Needs    clock, pins

Resource          timed_edges.resource

Suite Setup       Open The Bench And Discipline The Target's Clock    methods
Suite Teardown    Close The Bench And Its Edges

Test Tags         timed-edges


*** Test Cases ***
Software That Asks The System's Clock Sets A Line In Time
    [Documentation]    It looks at the clock until the moment has come, then sets a line; phc2sys holds the clock.
    [Tags]    method:gettime-software
    Edges Should Keep Their Limits    gettime-software

Software That Reads The Processor's Counter Sets A Line In Time
    [Documentation]    As above, with the counter correlated to the PTP clock by filtered reads.
    [Tags]    method:rdtsc-software
    Edges Should Keep Their Limits    rdtsc-software

A Timed Output Programmed By Filtered Reads Keeps Its Limits
    [Documentation]    Listing 2 of the paper: reads of the PTP clock that took too long are thrown away.
    [Tags]    method:tgpio-filtered-read
    Edges Should Keep Their Limits    tgpio-filtered-read

A Timed Output Programmed By Latched Edges Keeps Its Limits
    [Documentation]    The reference's own edges are latched, so that no read by software stands between.
    [Tags]    method:tgpio-latch
    Edges Should Keep Their Limits    tgpio-latch

Now By The System's Clock Is Held Against Latched Time
    [Documentation]    Listing 1 of the paper, without an oscilloscope. The report shows it; nothing is judged.
    [Tags]    method:gettime-software    latched-time
    Latched Time Should Be Measured    gettime-software

Now By The Processor's Counter Is Held Against Latched Time
    [Documentation]    As above, with the processor's counter.
    [Tags]    method:rdtsc-software    latched-time
    Latched Time Should Be Measured    rdtsc-software

The Methods Are In The Paper's Order
    [Documentation]    By standard deviations over equal numbers of edges; peak to peak stands beside in the report.
    [Tags]    order
    Methods Should Be In The Order Of The Paper

A Mistake In The Software Shows
    [Documentation]    A check of the bench: 200 ns of error in the correlation of clocks move the edges by 200 ns.
    [Tags]    method:tgpio-latch    known-error
    Error Of The Correlation Should Show    tgpio-latch    error=200 ns
