*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     Which network stack should be deployed? Each carries short replays of the whole pattern, by turns
...               whose order is drawn; judged is by how much the second stack of any pair is worse than the first.
Metadata          Compared Stacks    ${COMPARED_STACKS}

Resource          stacks.resource

Suite Setup       Open The Bench And Compare The Stacks
Suite Teardown    Close The Bench

Test Tags         stacks    latency


*** Test Cases ***
Idle Stacks Differ By No More Than Their Limits
    [Documentation]    The target does nothing but receive the pattern.
    Differences Should Be Within Their Limits    idle

Stacks Beside A Load Differ By No More Than Their Limits
    [Documentation]    The target does besides what a build does to a machine. Skipped where the profile has no time
    ...    for it.
    Differences Should Be Within Their Limits    loaded

Stacks On A Line That Loses One Frame In A Thousand Differ By No More Than Their Limits
    [Documentation]    The bench's switch loses frames of both directions by chance, those of a round alike for all
    ...    stacks. Skipped where the profile has no time for it.
    Differences Should Be Within Their Limits    lossy_1000_ppm

Stacks On A Line That Loses One Frame In A Hundred Differ By No More Than Their Limits
    [Documentation]    As before, with ten times as many.
    Differences Should Be Within Their Limits    lossy_10000_ppm
