# SPDX-License-Identifier: Apache-2.0
"""The clock of a target whose stamps are not corrected: docs/latency.md, `Stamps … taken as they are`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reports.rejudge.trial import by_timecard, comparison_discrepancies, comparison_of

NOTED = "clock.json"
COMPARISON = "clock-error.ndjson"
PPB = 1_000_000_000

Json = Mapping[str, Any]


class TargetClock:
    """Its error by the comparison with its timecard; lines of the other clocks as `clock.json` notes them."""

    def __init__(self, folder: Path) -> None:
        """Read it; raises OSError, KeyError, TypeError or ValueError where a file is missing or damaged."""
        self._noted: Json = json.loads((folder / NOTED).read_text("utf-8"))
        self._answer = comparison_of(folder, COMPARISON)
        self._found = by_timecard(self._answer, self._noted)
        self._lines: dict[str, Json] = {line["name"]: line for line in self._noted["lines"]}

    def discrepancies(self) -> Iterator[str]:
        """Say where comparison and note contradict themselves or each other."""
        yield from (f"{COMPARISON}: {each}" for each in comparison_discrepancies(self._answer))
        found, parts = self._found, self._found.parts
        for name, worked_out in (
            ("max_abs_ns", None if found.value is None else abs(found.value)),
            ("reference_bound_ns", parts.get("reference", 0)),
            ("bracket_ns", parts["bracket"]),
            ("readings", found.n),
        ):
            if self._noted[name] != worked_out:
                yield f"{NOTED}: {name} is {self._noted[name]}, the comparison says {worked_out}"
        if bool(self._noted["faults"]) != self._has_faults:
            yield f"{NOTED}: its faults are {self._noted['faults']}, which the comparison does not say"

    @property
    def _has_faults(self) -> bool:
        """Say whether the error is not known: the comparison has to be ended by the end of the replay."""
        answer = self._answer
        return bool(answer["invalid_reasons"] or answer["steps"] or answer["complete"])

    def parts(self, clock: str | None) -> tuple[dict[str, float], bool]:
        """Return the parts of U of a stream, ns, and whether its error is known.

        Args:
            clock: That its producer stamps with.
        """
        parts: dict[str, float] = {"target_clock": abs(self._found.value or 0), "reference": 0}
        parts |= self._found.parts
        line = self._lines.get(clock or "")
        if line is not None:
            parts |= {"clock_offset": line["bound_ns"], "clock_residual": line["residual_ns"]}
        return parts, line is not None and self._found.value is not None and not self._has_faults

    def turned(self, clock: str, local_tai_ns: int) -> float | None:
        """Return what another clock of the bench shows at a time of the target's; None: it is not known."""
        line = self._lines.get(clock)
        if line is None:
            return None
        elapsed_ns = local_tai_ns - line["at_tai_ns"]
        return local_tai_ns + line["offset_ns"] + elapsed_ns * line["rate_ppb"] / PPB
