*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     What does a message take from program to program, each way by itself? A producer's node sends stimuli
...               to the target, which answers each, as in the paper on distributed control loops (3.2). Both machines
...               are on one timeline, made from exchanges between their clocks alone.

Resource          timeline.resource

Suite Setup       Open The Bench And Send Stimuli
Suite Teardown    Close The Bench

Test Tags         timeline


*** Test Cases ***
Legs Are Within Their Limits
    [Documentation]    From one program to the other, to the target and back.
    Legs Should Be Within Their Limits

Nothing Comes Before It Was Sent
    [Documentation]    Checks the bench: beyond the bounds of both clocks, no effect may lie before its cause.
    Nothing Should Come Before It Was Sent

A Known Delay Appears In Its Leg Alone
    [Documentation]    What is put into one leg is found there, and not in the other.
    [Tags]    known-error
    Known Delay Should Appear In Its Leg Alone
