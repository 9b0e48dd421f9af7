# SPDX-License-Identifier: Apache-2.0
"""Requirements on timed edges: of methods and of clocks; what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.errors import ConfigError
from resources.edges.requirements import load_timed_edge_requirements

METHOD = {
    "id": '"EDGE-LATCH"', "quantity": '"edge_delay"', "method": '"tgpio-latch"',
    "statistic": '"standard_deviation"', "limit_ns": "50", "n_required": "1000", "source": '"a source"',
}  # fmt: skip
CLOCK = {
    "id": '"EDGE-CHRONY"', "quantity": '"sync_offset"', "clock": '"chrony"', "statistic": '"max_abs"',
    "limit_ns": "40000", "n_required": "500", "source": '"a source"',
}  # fmt: skip


def _write(folder: Path, *requirements: dict[str, str]) -> Path:
    head = '[requirements]\nschema = "benchwright.timed_edge_requirements/1"\nname = "some"\n'
    tables = ["".join(f"{key} = {value}\n" for key, value in one.items()) for one in requirements]
    path = folder / "requirements.toml"
    path.write_text(head + "".join(f"[[requirement]]\n{table}" for table in tables))
    return path


def test_requirements_are_found_by_method_and_by_clock(tmp_path: Path) -> None:
    more = METHOD | {"id": '"EDGE-LATCH-PEAK"', "statistic": '"peak_to_peak"', "lost_percent_max": "0.5"}
    found = load_timed_edge_requirements(_write(tmp_path, METHOD, more, CLOCK))
    assert [one.id for one in found.of_method("tgpio-latch")] == ["EDGE-LATCH", "EDGE-LATCH-PEAK"]
    assert [one.id for one in found.of_clock("chrony")] == ["EDGE-CHRONY"]
    assert [one.allowed_lost(1999) for one in found.all] == [0, 9, 0]
    assert found.of_method("rdtsc-software") == ()
    with pytest.raises(ConfigError, match="no requirement on clock 'ptp-software'; there are: chrony"):
        found.of_clock("ptp-software")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (METHOD | {"method": '"sundial"'}, "requirement[1].method: must be one of gettime-software"),
        (METHOD | {"statistic": '"max_abs"'}, "requirement[1].statistic: must be one of mean, standard_dev"),
        (CLOCK | {"statistic": '"peak_to_peak"'}, "requirement[1].statistic: must be one of mean, max_abs"),
        (
            METHOD | {"quantity": '"beauty"'},
            "requirement[1].quantity: must be one of edge_delay, sync_offset",
        ),
        (METHOD | {"clock": '"chrony"'}, "requirement[1].clock: unknown key"),
        (METHOD | {"limit_ns": "0"}, "requirement[1].limit_ns: must be an integer in 1..1000000000"),
        (METHOD | {"n_required": "3"}, "requirement[1].n_required: must be an integer in 4.."),
        (
            METHOD | {"lost_percent_max": "101"},
            "requirement[1].lost_percent_max: must be a number in 0.0..100.0",
        ),
        ({key: value for key, value in METHOD.items() if key != "source"}, "requirement[1].source: missing"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, change: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_timed_edge_requirements(_write(tmp_path, change))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (CLOCK | {"id": '"EDGE-LATCH"'}, "requirement[2].id: 'EDGE-LATCH' stands twice"),
        (METHOD | {"id": '"ANOTHER"'}, "tgpio-latch has a requirement on standard_deviation already"),
    ],
)
def test_nothing_stands_twice(tmp_path: Path, second: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_timed_edge_requirements(_write(tmp_path, METHOD, second))
    assert said in str(refused.value)
