# SPDX-License-Identifier: Apache-2.0
"""How many messages a pass rests on: profile, miss probability and required samples, held against each other.

A pass of n messages, none of them late, excludes with 95 % that more than p of all miss their budget, where
(1 - p)^n <= 0.05 (docs/latency.md, the table of profiles).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.version import OF_LATENCY, WITH_STACK_USED, Version

QUANTITY = "one_way_latency"
RISK = 0.05
EXCLUDED: Mapping[str, float] = {
    "quick": 0.05,
    "ci": 0.03,
    "nightly": 0.01,
    "acceptance": 0.001,
    "soak": 0.0001,
}
"""By profile, since 0.2.0: what its name promises."""


def sample_discrepancies(
    manifest: Mapping[str, Any], records: Sequence[Record], version: Version
) -> Iterator[str]:
    """Say where required samples are not those of the profile's miss probability, nor that the profile's."""
    excluded, profile = manifest.get(OF_LATENCY), manifest["profile"]
    if excluded is None:
        return
    wanted = EXCLUDED.get(profile)
    if wanted is not None and excluded != wanted and version >= WITH_STACK_USED:
        yield f"run.json: {OF_LATENCY} is {excluded}, that of profile {profile} is {wanted}"
    needed = math.ceil(math.log(RISK) / math.log1p(-excluded))
    for number, record in enumerate(records, start=1):
        if record["quantity"] == QUANTITY and record["n_required"] != needed:
            yield (
                f"measurements.jsonl:{number}: {record['requirement']}: n_required is {record['n_required']},"
                f" a miss probability of {excluded} needs {needed}"
            )
