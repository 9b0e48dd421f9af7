*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     Does the target, as one producer of the data-acquisition pattern, get its messages to the consumer
...               within their latency budgets?
...               It sends the streams of one producer while all others send theirs; another target consumes. Each
...               requirement of the requirements file becomes one test. Limits come from Table 1 of the paper on
...               network acceleration and time synchronisation for data-acquisition systems.
Metadata          Network Stack    ${STACK}
Metadata          Needs    producer

Resource          daq_producer.resource

Suite Setup       Let The Target Produce The Pattern Once
Suite Teardown    Close The Bench

Test Tags         daq-producer    latency


*** Test Cases ***
Produced Stream Arrives Within Its Budget
    [Documentation]    Stands for one test a requirement; the tests are made from the requirements file when the suite
    ...    starts.
    [Template]    Stream Should Arrive Within Its Budget
    every requirement

Consumer Receives The Other Streams Within Their Budgets
    [Documentation]    All streams that the target does not send: they make the load, and must not suffer from it.
    Other Streams Should Arrive Within Their Budgets
