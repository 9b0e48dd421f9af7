*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     How late does a thread wake up that goes before all others? cyclictest, a thread a CPU, as OSADL
...               measures it: whatever budget a program of this target gets, this is taken from it first.

Resource          rt_baseline.resource

Suite Setup       Open The Bench And Measure Wake Ups
Suite Teardown    Close The Bench

Test Tags         rt-baseline


*** Test Cases ***
Idle Wake-Ups Are Within Their Limits
    [Documentation]    The target does nothing else: maximum and p99.99 of the worst CPU.
    Wake Ups Should Be Within Their Limits

Wake-Ups Beside Loads Are Within Their Limits
    [Documentation]    The same beside each load that the profile has.
    Wake Ups Beside Loads Should Be Within Their Limits

Hardware Noise Is Within Its Limits
    [Documentation]    What takes a CPU from the kernel for a while, by its osnoise tracer with interrupts off:
    ...                the longest. Skipped where the kernel has none.
    Hardware Noise Should Be Within Its Limits
