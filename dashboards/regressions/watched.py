# SPDX-License-Identifier: Apache-2.0
"""Which series of a run are followed over time, which way each is worse, and what a run is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.branch import ADHOC, MAIN, RELEASE, REQUEST
from dashboards.points import PHYSICAL, VERDICT
from reports.capability import VERDICT as WITH_VERDICTS
from reports.capability import Worse
from reports.quantities import QUANTITIES, SERIES

VALUE = "value_ns"

WATCHED: dict[str, tuple[str, ...]] = {
    **{PHYSICAL[name]: (VALUE, *row.followed) for name, row in SERIES.items()},
    VERDICT: ("value",),
}
"""Fields by measurement.

Of verdicts the quantities that are no times: of the others the values would be followed twice.
"""

COMPARED_WITH = {MAIN: MAIN, RELEASE: RELEASE, REQUEST: MAIN, ADHOC: ADHOC}
"""Class of the branch of a run → class whose history it is compared with.

What a request changes is not yet part of main, and other requests have changed something else: only main
says what the values were without it. Changes that last cannot be told from the one run that a request has; it
is held against main's baseline instead.
"""


@dataclass(frozen=True, slots=True)
class SeriesField:
    """One field of a series of a run.

    Attributes:
        tags: Those of the events of this series: the statistic is that of the field.
        unit: Of the field.
    """

    measurement: str
    field: str
    tags: dict[str, str]
    worse: Worse
    unit: str


def watched(measurement: str, tags: Mapping[str, str]) -> list[SeriesField]:
    """Return the fields of a series that are followed."""
    row = QUANTITIES.get(tags.get("quantity", ""))
    if measurement == VERDICT and (row is None or row.series != WITH_VERDICTS):
        return []
    worse: Worse = "higher" if row is None else row.worse
    found: list[SeriesField] = []
    for field in WATCHED.get(measurement, ()):
        own = dict(tags)
        if field.endswith("_ns") and field != VALUE:
            own["statistic"] = field.removesuffix("_ns")
        unit = row.unit if row is not None and measurement == VERDICT else "ns"
        found.append(SeriesField(measurement, field, own, worse, unit))
    return found
