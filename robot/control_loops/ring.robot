*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     What does a message take round a ring of machines? A source on the target sends small messages over
...               three producers to a sink on the same target, as in the paper on distributed control loops (3.3, 4.3):
...               five programs on four machines. All are on one timeline, made from exchanges between their clocks.

Resource          control_loops.resource

Suite Setup       Open The Bench And Send Messages Round The Ring
Suite Teardown    Close The Bench

Test Tags         control-loops


*** Test Cases ***
Stretches Are Within Their Limits
    [Documentation]    The whole loop, and each stretch that the requirements name.
    Stretches Should Be Within Their Limits

No Message Is Read Before It Was Written
    [Documentation]    Checks the bench: beyond the bounds of the clocks, no effect may lie before its cause.
    No Message Should Be Read Before It Was Written

The Whole Is What One Counter Says
    [Documentation]    Checks the bench: by the timeline the whole takes what the target's own counter says.
    The Whole Should Be What One Counter Says

Every Message Is Accounted For
    [Documentation]    Checks the bench: on each hop each message came once, or is missing there.
    Every Message Should Be Accounted For

A Held Message Appears In Its Own Stretch
    [Documentation]    How long one node holds messages is found there and in the whole, and on no other stretch.
    [Tags]    known-error
    Held Messages Should Appear In Their Own Stretch
