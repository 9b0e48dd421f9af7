# SPDX-License-Identifier: Apache-2.0
"""Which requirements the keywords of the clocks judge: where one of their tests passes, each has a record."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from robot.api import SkipExecution

from hw.errors import CapabilityError
from reports.run.current import take_judged
from resources.clock_sync.keywords import ClockSyncLibrary
from resources.keywords.converters import Nanoseconds

FILE = (
    Path(__file__).resolve().parents[3] / "robot" / "clock_sync" / "requirements" / "clock_sync_virtual.toml"
)
STEP = Nanoseconds(1_000_000)


class _Lab:
    """A lab whose target can have no stack: a keyword says what it judges, and gets no further."""

    bench = SimpleNamespace(spec=SimpleNamespace(simulated=True))
    holdover_trial = None
    """Read before its argument is."""

    def require_offered(self, clock: str) -> None:
        raise CapabilityError(f"{clock}: not here")


@pytest.mark.parametrize(
    ("keyword", "arguments", "judged"),
    [
        ("clock_should_stay_within_its_limit", ("chrony",), ("CLK-CHRONY",)),
        ("clock_should_stay_within_its_limit_under_load", ("chrony",), ("CLK-CHRONY",)),
        ("clock_should_lock_again", ("chrony", STEP), ("CLK-CHRONY",)),
        ("measure_holdover", ("chrony",), ()),
        ("reference_should_see_an_asymmetric_path", ("chrony", STEP), ()),
        ("wrong_clock_should_be_found", ("chrony", "node", STEP), ()),
    ],
)
def test_a_keyword_names_what_it_will_record(
    keyword: str, arguments: tuple[object, ...], judged: tuple[str, ...]
) -> None:
    clocks: Any = ClockSyncLibrary(FILE)
    clocks._lab = _Lab()
    take_judged()
    with pytest.raises(SkipExecution, match="chrony: not here"):
        getattr(clocks, keyword)(*arguments)
    assert take_judged() == judged
