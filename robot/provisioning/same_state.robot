*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     Is the target in the same state each time? Provisioned twice, given back, cut off from its power
...               or restarted in the middle of a run: what differs is counted in facts and settings. Limits are those
...               of robot/provisioning/requirements/provisioning.toml, and how often all that is done is the profile's.

Resource          provisioning.resource

Suite Setup       Open The Bench And Provision Repeatedly
Suite Teardown    Close The Bench After Provisioning

Test Tags         provisioning


*** Test Cases ***
Provisioning Twice Changes Nothing The Second Time
    [Documentation]    Neither a setting, by its own account, nor a fact.
    Nothing Should Differ After    twice

Restore Gives Back The Facts Of Before
    [Documentation]    Byte for byte, as the target writes them.
    Nothing Should Differ After    restore

After A Power Cut The Next Start Finds What It Expects
    [Documentation]    The bench notices the power cut and switches on again; `restore` judges the undo file of before,
    ...    the facts are those of the untouched target, and provisioning gives the same facts as ever. Skipped where the
    ...    power cannot be switched.
    [Tags]    power-cut
    Cut The Power Repeatedly
    Nothing Should Differ After    power-cut

After A Restart The Next Start Finds What It Expects
    [Documentation]    The same, after the target's system has restarted by itself.
    [Tags]    restart
    Restart Repeatedly
    Nothing Should Differ After    restart
