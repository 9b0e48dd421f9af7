# SPDX-License-Identifier: Apache-2.0
"""The known-delay check: the bench delays one path by a known amount and must find it within U.

Its result lies beside the replay that it vouches for, as `known_delay.json`. Times are int64 nanoseconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.record.codec import from_json, to_json
from reports.record.json_text import load_json
from reports.record.measurement import Outcome, Uncertainty

KNOWN_DELAY_SCHEMA = "benchwright.known_delay/1"


@dataclass(frozen=True, slots=True)
class KnownDelay:
    """What was applied, what was found, and U of their difference.

    Attributes:
        producers: Numbers of the producers whose path was delayed.
        applied_ns: The delay that was applied.
        measured_ns: The delay that was found; null where there was no sample.
        n: Samples that the found delay rests on.
    """

    schema: str
    producers: tuple[int, ...]
    applied_ns: int
    measured_ns: int | None
    n: int
    uncertainty: Uncertainty
    outcome: Outcome
    reason: str

    def __post_init__(self) -> None:
        """Refuse another schema, and a pass whose error is over U."""
        if self.schema != KNOWN_DELAY_SCHEMA:
            raise RecordError(f"known_delay.json: schema {self.schema!r} is not {KNOWN_DELAY_SCHEMA!r}")
        if self.outcome == "pass" and (
            self.error_ns is None or abs(self.error_ns) > self.uncertainty.expanded
        ):
            raise RecordError(f"known_delay.json: pass with an error of {self.error_ns} ns")

    @property
    def error_ns(self) -> int | None:
        """Return found - applied; positive: found too much."""
        return None if self.measured_ns is None else self.measured_ns - self.applied_ns

    @classmethod
    def read(cls, path: Path) -> KnownDelay:
        """Read `known_delay.json`; raises RecordError, which names the key."""
        try:
            return from_json(cls, load_json(path.read_bytes()), path.name)
        except json.JSONDecodeError as error:
            raise RecordError(f"{path.name}: {error}") from error

    def to_text(self) -> str:
        """Return the text of `known_delay.json`."""
        return json.dumps(to_json(self), indent=1, allow_nan=False) + "\n"


def judge_known_delay(
    producers: tuple[int, ...], applied_ns: int, measured_ns: int | None, n: int, uncertainty: Uncertainty
) -> KnownDelay:
    """Judge the check: pass when the delay found differs from the applied one by U at most.

    With a U as large as the delay it cannot be told from none: inconclusive.
    """
    outcome: Outcome = "pass"
    reason = ""
    if measured_ns is None or n == 0:
        outcome, reason = "unset", "no sample"
    elif abs(measured_ns - applied_ns) > uncertainty.expanded:
        outcome = "fail"
        reason = f"found {measured_ns} ns for {applied_ns} ns applied; U = {uncertainty.expanded} ns"
    elif uncertainty.expanded >= applied_ns:
        outcome = "inconclusive"
        reason = f"{applied_ns} ns applied cannot be told from none: U = {uncertainty.expanded} ns"
    return KnownDelay(KNOWN_DELAY_SCHEMA, producers, applied_ns, measured_ns, n, uncertainty, outcome, reason)
