# SPDX-License-Identifier: Apache-2.0
"""How clocks are disturbed: the project's file holds it for every profile, and a wrong one is refused."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from hw.errors import ConfigError
from resources.clock_sync.disturbance_settings import DISTURBANCES_FILE, load_disturbances
from resources.clock_sync.times import TIMES


@pytest.mark.parametrize("simulated", [True, False])
def test_every_profile_that_measures_clocks_disturbs_them(simulated: bool) -> None:
    for name in tomllib.loads(TIMES.read_text()):
        settings = load_disturbances(name, simulated)
        assert "chrony" in settings.stacks
        assert settings.path.jitter_us <= settings.path.delay_us


def test_a_real_oscillator_changes_less_than_that_of_a_guest() -> None:
    assert load_disturbances("ci", False).oscillator_ppb < load_disturbances("ci", True).oscillator_ppb


def test_acceptance_locks_again_twenty_times() -> None:
    assert load_disturbances("acceptance", True).repeats == 20


def test_conditions_of_a_record_name_the_whole_impairment() -> None:
    assert load_disturbances("ci", True).path.text() == "delay 300 us, jitter 300 us, loss 5 %, one way"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("step_share = 0.25", "step_share = 1.0", "sizes.simulated.step_share: must be a number in 0.1..0.9"),
        ("path_delay_us = 300", "path_delay_us = 299", "must be an integer in 300..1000000, found 299"),
        ("oscillator_ppb = 200000", "oscillator_ppb = 0", "oscillator_ppb: must be an integer in 1..400000"),
        ("path_loss_percent = 5.0", "path_loss = 5.0", "sizes.simulated.path_loss_percent: missing"),
        ('stacks = ["chrony"]', 'stacks = ["ntp-user"]', "profiles.ci.stacks: must be a list of chrony"),
        ("repeats = 1", "repeats = 1\nevery_s = 2", "profiles.ci.every_s: unknown key"),
        ("[profiles.ci]", "[profiles.cd]", "no table for 'ci'; there are: cd, quick"),
        ("[sizes.simulated]", "[sizes.virtual]", "no table for 'simulated'; there are: virtual, hardware"),
        ("[sizes.simulated]", "[extra]\n[sizes.simulated]", "extra: unknown key"),
        ("[sizes.simulated]", "[sizes.simulated", "line"),
    ],
)
def test_damaged_data_file_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "clock_disturbances.toml"
    text = DISTURBANCES_FILE.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=re.escape(said)) as refused:
        load_disturbances("ci", True, file)
    assert str(refused.value).startswith(f"{file}: ")
