*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation    Does each valve open in time? A capability that does not exist.

Resource         valves.resource

Suite Setup      Open Valves    ${BENCH}    ${TARGET}    ${PROFILE}

Test Tags        valves


*** Test Cases ***
Each Valve Opens In Time
    [Documentation]    Each valve against its requirement.
    Each Valve Should Open In Time
