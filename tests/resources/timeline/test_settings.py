# SPDX-License-Identifier: Apache-2.0
"""How many stimuli a profile asks for: what cannot be is refused, with what may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import ConfigError
from resources.profiles import times_of
from resources.timeline.settings import TIMES, timeline_times

TABLE = {
    "count": 100,
    "interval_us": 2000,
    "size_bytes": 48,
    "delay_us": 500,
    "delay_count": 100,
    "delay_turn": 50,
    "bulk_bytes": 1_000_000,
    "bulk_block_bytes": 8192,
    "bulk_rate_mbit": 0,
}


def test_each_profile_with_a_table_can_be_read() -> None:
    for profile in ("ci", "nightly", "acceptance", "soak"):
        times = times_of(profile, TIMES, timeline_times)
        assert times.size_bytes == 48  # as in the paper
        assert times.delayed_by(0) == times
        assert times.delayed_by(400).delay_us == 400
        with pytest.raises(ConfigError, match=r"delay_us: 501; allowed: 1\.\.500"):
            times_of("ci", TIMES, timeline_times).delayed_by(501)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"delay_us": 501}, r"ci\.delay_us: 501; allowed: 1\.\.500, a quarter of interval_us"),
        ({"delay_turn": 51}, r"ci\.delay_turn: 51; allowed: 10\.\.50, half of delay_count"),
        ({"size_bytes": 47}, "size_bytes"),
        ({"count": 99}, "count"),
        ({"interval_us": 99}, "interval_us"),
        ({"many": 1}, "many"),
    ],
)
def test_table_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, int], said: str) -> None:
    file = tmp_path / "times.toml"
    rows = [f"{key} = {value}" for key, value in (TABLE | change).items()]
    file.write_text("[ci]\n" + "\n".join(rows) + "\n")
    with pytest.raises(ConfigError, match=said):
        times_of("ci", file, timeline_times)
