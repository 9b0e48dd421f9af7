*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     Does the bench say what is wrong with a target, and leave nothing behind? A virtual target is given
...               one fault after the other, each on a bench that is opened for it. Which faults, the profile says;
...               where a kind of target cannot have one, and on real machines, the test is skipped and says so.

Resource          provisioning.resource

Suite Teardown    Close Bench
Test Template     Bench Should Tell The Fault

Test Tags         provisioning    fault


*** Test Cases ***
Something Else Is On Its Disk    wrong-image    start-up failed
Part Of Its Disk Is Damaged    damaged-image    start-up failed|kernel panic
It Never Boots    never-boots    never boots
It Hangs At A Prompt    hangs-at-prompt    stands at a wrong prompt
It Is Not Reached Any More    loses-ssh    SSH server does not answer any more
Its Disk Is Full    full-disk    cannot be written to
Its Host Key Has Changed    changed-host-key    host key is not the one that is known
