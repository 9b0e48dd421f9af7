*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     Does the target receive the data-acquisition pattern within its latency budgets?
...               The pattern is replayed once; then each requirement of the requirements file becomes one test. After
...               them the largest part of the pattern that the target takes within its budgets is looked for.
...               Limits come from Table 1 of the paper on network acceleration and time synchronisation for
...               data-acquisition systems.
Metadata          Network Stack    ${STACK}

Resource          daq_replay.resource

Suite Setup       Replay The Pattern Into The Target Once
Suite Teardown    Close The Bench
Test Template     Stream Should Arrive Within Its Budget

Test Tags         daq-replay    latency


*** Test Cases ***
Stream Arrives Within Its Budget
    [Documentation]    Stands for one test a requirement; the tests are made from the requirements file when the suite
    ...    starts.
    every requirement
Largest Pattern Within The Budgets
    [Documentation]    How many producers does the target take within their budgets? Found by replays of the first n
    ...    producers, where the replay of this suite is not all that the bench has, or is over its budgets.
    [Tags]    largest-pattern
    [Template]    NONE
    Target Should Take The Largest Pattern
