# SPDX-License-Identifier: Apache-2.0
"""Requirements on provisioning and a profile's table are read, and what is wrong in them is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import ConfigError
from hw.faults import Fault
from hw.fields import Fields
from reports.provisioning.capability import QUANTITY, Event
from resources.profiles import times_of
from resources.provisioning.settings import TIMES as PROVISIONING_TIMES
from resources.provisioning.settings import provisioning_times
from resources.requirements_file import load_requirements_file

FILE = "robot/provisioning/requirements/provisioning.toml"


def test_every_event_has_a_requirement_that_allows_nothing(repository: Path) -> None:
    found = load_requirements_file(repository / FILE, QUANTITY).requirements
    assert {each.of for each in found} == set(Event)
    assert {each.limit.upper for each in found} == {0}


def test_ci_cuts_the_power_once_and_the_longer_profiles_give_every_fault() -> None:
    short = times_of("ci", PROVISIONING_TIMES, provisioning_times)
    assert short is not None
    assert (short.repeats, short.power_cuts, short.restarts, short.faults) == (1, 1, 0, ())
    for name in ("nightly", "acceptance", "soak"):
        times = times_of(name, PROVISIONING_TIMES, provisioning_times)
        assert times is not None
        assert set(times.faults) == set(Fault)
        assert min(times.repeats, times.power_cuts, times.restarts) >= 1


def test_an_unknown_fault_of_a_profile_is_refused() -> None:
    table = {"repeats": 1, "power_cuts": 0, "restarts": 0, "faults": ["on-fire"], "seed": 1}
    with pytest.raises(ConfigError, match=r"faults.*wrong-image"):
        provisioning_times(Fields(table, "times.toml", "x"))
