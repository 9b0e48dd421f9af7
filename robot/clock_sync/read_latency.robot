*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     What does reading a clock cost? Every clock that host and target offer, a million readings each, as in
...               Table I of the paper on intra-process clock synchronization, beside which the report puts them.
Metadata          Needs    clock

Resource          clock_read_latency.resource

Suite Setup       Open The Bench And Read Every Clock
Suite Teardown    Close The Bench

Test Tags         clock-sync


*** Test Cases ***
Every Clock That Is Offered Is Read
    [Documentation]    A clock that cannot be read is named; one that host or target do not offer is listed as such.
    Every Clock Should Have Been Read

Reading A Clock Costs No More Than Its Limit
    [Documentation]    Clocks of the target that the requirements file names; it says where each limit is from.
    Reading Should Cost No More Than Its Limits
