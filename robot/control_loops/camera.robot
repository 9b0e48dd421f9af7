*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     What does a loop of camera and tracker take, and what does the path's delay do to it? The camera is on
...               the target, a tracker on a producer follows what moves in its pictures and says where to look, as in
...               the paper on distributed control loops (3.4, 4.4). The pictures themselves are a second witness.

Resource          control_loops.resource

Suite Setup       Open The Bench And Let The Tracker Follow The Target
Suite Teardown    Close The Bench

Test Tags         control-loops


*** Test Cases ***
The Loop Is Within Its Limits
    [Documentation]    The whole loop, its parts, and how often the target is out of the picture.
    Loops Of The Camera Should Be Within Their Limits

Nothing Comes Before It Was Sent
    [Documentation]    Checks the bench: beyond the bounds of the clocks, no effect may lie before its cause.
    Nothing Of The Loop Should Come Before It Was Sent

Its Parts Add Up To The Whole
    [Documentation]    Checks the bench: by the timeline the parts come to what the camera's own counter says.
    Parts Of The Loop Should Add Up To The Whole

Every Picture Is Accounted For
    [Documentation]    Checks the bench: each picture has one loop delay, or one reason why it has none.
    Every Picture Should Be Accounted For

Pictures Tell The Same Delay
    [Documentation]    Checks the bench: the target was where a command says to look as long ago as events say.
    [Tags]    known-error
    Pictures Should Tell The Same Delay

The Loop Has The Delay Of The Path Twice
    [Documentation]    Checks the bench: pictures and commands each have the path's delay once.
    [Tags]    known-error
    The Loop Should Have The Delay Of The Path Twice
