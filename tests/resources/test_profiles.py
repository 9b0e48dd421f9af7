# SPDX-License-Identifier: Apache-2.0
"""Profiles: those of the project hold what the design asks for, and a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import ConfigError
from hw.toml_file import read_toml
from reports.record.sampling import required_samples
from resources.clock_sync.time_service_times import TIMES as SERVICE_TIMES
from resources.clock_sync.times import TIMES as CLOCK_TIMES
from resources.clock_sync.times import clock_times
from resources.daq_replay.largest_pattern_times import TIMES as PATTERN_TIMES
from resources.profiles import PROFILES_FILE, has_times, load_profile, times_of
from resources.provisioning.settings import TIMES as PROVISIONING_TIMES
from resources.provisioning.settings import provisioning_times

GOOD = """
[site]
warmup_ms = 1000
duration_ms = 2000
excluded_miss_probability = 0.5
known_delay_ms = 3000
replay_attempts = 2
"""


def test_the_projects_profiles_take_the_samples_of_the_design() -> None:
    samples = {
        name: required_samples(load_profile(name).excluded_miss_probability)
        for name in ("quick", "ci", "acceptance")
    }
    assert samples == {"quick": 59, "ci": 99, "acceptance": 2995}
    assert load_profile("ci").duration_ms == 60_000
    clocks = times_of("acceptance", CLOCK_TIMES, clock_times)
    assert clocks.intervals_s == (30, 60, 120, 240, 480, 960)  # the DAQ paper's Table 2
    assert (clocks.synchronised_s, clocks.relocks) == (300, 20)
    assert load_profile("acceptance").duration_ms == 3_600_000
    assert (
        load_profile("ci").duration_ms
        < load_profile("acceptance").duration_ms
        < load_profile("soak").duration_ms
    )


def test_each_stream_of_the_pattern_comes_often_enough_for_a_verdict() -> None:
    """The slowest streams of the paper's Table 1 have a period of 500 ms."""
    for name in ("quick", "ci", "nightly", "acceptance", "soak"):
        profile = load_profile(name)
        assert profile.duration_ms // 500 >= required_samples(profile.excluded_miss_probability)


def test_quick_repeats_as_ci_does_and_has_no_time_for_searches_and_power_cuts() -> None:
    quick, ci = load_profile("quick"), load_profile("ci")
    assert quick.replay_attempts == ci.replay_attempts == 3
    assert not has_times("quick", PATTERN_TIMES)
    assert not has_times("quick", SERVICE_TIMES)
    provisioning = times_of("quick", PROVISIONING_TIMES, provisioning_times)
    assert (provisioning.power_cuts, provisioning.restarts) == (0, 0)


@pytest.mark.parametrize(
    "file", sorted(PROFILES_FILE.parent.glob("*/*times.toml")), ids=lambda file: file.name
)
def test_times_are_of_profiles_that_there_are(file: Path) -> None:
    assert set(read_toml(file)) <= set(read_toml(PROFILES_FILE))


def test_times_of_what_is_no_profile_are_refused(tmp_path: Path) -> None:
    """A word that is wrong by a letter would leave the suites out of the profile that it means."""
    (tmp_path / "times.toml").write_text("[quikc]\n")
    with pytest.raises(ConfigError, match=r"times\.toml: quikc: no such profile; there are: quick, ci"):
        has_times("quick", tmp_path / "times.toml")


def test_a_profile_without_times_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"times\.toml: site: missing; there are: quick, ci, nightly"):
        times_of("site", CLOCK_TIMES, clock_times)


def test_a_site_can_have_its_own(tmp_path: Path) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text(GOOD)
    profile = load_profile("site", path)
    assert (profile.warmup_ms, profile.duration_ms, profile.known_delay_ms) == (1000, 2000, 3000)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[site]", "[sight]", "no profile 'site'; there are: sight"),
        (
            "duration_ms = 2000",
            "duration_ms = 0",
            "site.duration_ms: must be an integer in 1..604800000, found 0",
        ),
        ("duration_ms = 2000", "", "site.duration_ms: missing"),
        ("warmup_ms = 1000", "warmup_ms = 1000\nwarm_up = 1", "site.warm_up: unknown key; known here: "),
        ("= 0.5", "= 0.6", "site.excluded_miss_probability: must be a number in 1e-09..0.5, found 0.6"),
        ("= 0.5", "= nan", "site.excluded_miss_probability: must be a number"),
        (
            "known_delay_ms = 3000",
            "known_delay_ms = 999",
            "site.known_delay_ms: must be an integer in 1000..3600000",
        ),
        (
            "replay_attempts = 2",
            "replay_attempts = 11",
            "site.replay_attempts: must be an integer in 1..10, found 11",
        ),
        ("[site]", "[site", "line 2"),
    ],
)
def test_a_wrong_one_is_refused_by_file_field_and_range(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError) as refused:
        load_profile("site", path)
    assert str(refused.value).startswith(f"{path}: ")
    assert message in str(refused.value)
