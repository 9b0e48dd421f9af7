*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     Does the kernel count what the user counts? A producer's node sends random data to the target, as
...               ettcp in the paper on distributed control loops (3.1). Both programs record each piece that they
...               write or read; the target's kernel records each segment that comes, the sender's each that is
...               sent again.

Resource          timeline.resource

Suite Setup       Open The Bench And Send Bulk Data
Suite Teardown    Close The Bench

Test Tags         timeline


*** Test Cases ***
The Kernel Counts As Many Bytes As The User
    [Documentation]    Payload bytes of the segments that came, and bytes that the program has read.
    Bulk Payload Should Be Equal

Every Segment Is Read After It Came
    [Documentation]    Each segment has a call that read its last byte, and returned after it came.
    Bulk Segments Should Have Partners
