# SPDX-License-Identifier: Apache-2.0
"""Parts of U by the names that the documents have; runs of version 0.2.1 and before had others."""

from __future__ import annotations

from reports.rejudge.again import Record

PRESENT = {"look": "poll_interval", "partners": "device_dependence", "stretches": "block_variation"}


def with_present_names(record: Record) -> Record:
    """Return a record whose parts of U have the names of today."""
    uncertainty = record["uncertainty"]
    parts = [each | {"name": PRESENT.get(each["name"], each["name"])} for each in uncertainty["parts"]]
    return {**record, "uncertainty": uncertainty | {"parts": parts}}
