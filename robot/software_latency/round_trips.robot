*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     How long does each device's own software take to send and to receive? Round trips between three
...               devices and a fourth tell it of each alone, without a card and without synchronised clocks, as in the
...               paper on software latency estimation.

Resource          software_latency.resource

Suite Setup       Open The Bench And Make Round Trips
Suite Teardown    Close The Bench

Test Tags         software-latency


*** Test Cases ***
Each Device's Software Latency Is Within Its Budget
    [Documentation]    Send and receive of one trip together, on average. The requirements file names the devices.
    Each Device Should Be Within Its Budget

Sums Of Round Trips Agree
    [Documentation]    Checks the bench: who asks and who sends back may be swapped; two ways to add four devices agree.
    Sums Of Round Trips Should Agree

A Known Delay Appears At Its Device Alone
    [Documentation]    The paper's validation: what is put into one device's software is found there and nowhere else.
    [Tags]    known-error
    Known Delay Should Appear At Its Device Alone
