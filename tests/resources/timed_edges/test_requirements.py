# SPDX-License-Identifier: Apache-2.0
"""Requirements on timed edges: of methods and of clocks; what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import ConfigError
from resources.timed_edges.requirements import load_timed_edge_requirements

METHOD = {
    "id": '"EDGE-LATCH"', "quantity": '"edge_delay"', "method": '"tgpio-latch"',
    "statistic": '"standard_deviation"', "upper_ns": "50", "samples": "1000", "source": '"a source"',
}  # fmt: skip
CLOCK = {
    "id": '"EDGE-CHRONY"', "quantity": '"sync_offset"', "clock": '"chrony"', "statistic": '"max_abs"',
    "upper_ns": "40000", "samples": "500", "source": '"a source"',
}  # fmt: skip


def _write(folder: Path, *requirements: dict[str, str]) -> Path:
    head = '[requirements]\nschema = "benchwright.requirements/2"\nname = "some"\n'
    tables = ["".join(f"{key} = {value}\n" for key, value in one.items()) for one in requirements]
    path = folder / "requirements.toml"
    path.write_text(head + "".join(f"[[requirement]]\n{table}" for table in tables))
    return path


def test_requirements_are_found_by_method_and_by_clock(tmp_path: Path) -> None:
    more = METHOD | {"id": '"EDGE-LATCH-PEAK"', "statistic": '"peak_to_peak"', "lost_percent": "0.5"}
    found = load_timed_edge_requirements(_write(tmp_path, METHOD, more, CLOCK))
    assert [one.id for one in found.of_method("tgpio-latch")] == ["EDGE-LATCH", "EDGE-LATCH-PEAK"]
    assert [one.id for one in found.of_clock("chrony")] == ["EDGE-CHRONY"]
    assert found.of_method("rdtsc-software") == ()
    with pytest.raises(ConfigError, match="no requirement on clock 'ptp-software'; there are: chrony"):
        found.of_clock("ptp-software")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            METHOD | {"quantity": '"beauty"'},
            "requirement[1].quantity: must be one of edge_delay, sync_offset, found 'beauty'",
        ),
        (
            CLOCK | {"lock_within_s": "60"},
            "requirement[1].samples: unknown key",
        ),
    ],
)
def test_what_is_not_on_edges_is_refused(tmp_path: Path, change: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_timed_edge_requirements(_write(tmp_path, change))
    assert said in str(refused.value)
