*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     Do events lie where the timeline says? While a producer's node sends stimuli, the target's timecard is
...               read. The timeline knows nothing of it; afterwards each of the target's events is held against it.
Metadata          Needs    card

Resource          timeline.resource

Suite Setup       Open The Bench And Send Stimuli Beside The Card
Suite Teardown    Close The Bench

Test Tags         timeline


*** Test Cases ***
Events Lie Where The Card Says
    [Documentation]    Checks the bench: none outside its hard interval, at most one in twenty beyond its U.
    Events Should Lie Where The Card Says
