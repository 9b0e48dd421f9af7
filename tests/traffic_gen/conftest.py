# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the built programs, and a lab of two namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.traffic_gen.lab import Lab


def _program(repository: Path, variant: str, name: str = "traffic-gen/bw-traffic") -> Path:
    program = repository / ".build" / variant / name
    if not program.exists():
        pytest.skip(f"{program.relative_to(repository)} is not built: make setup, or make test")
    return program


@pytest.fixture
def lab(repository: Path, tmp_path: Path) -> Iterator[Lab]:
    """Give a lab with the program as it is used."""
    with Lab(_program(repository, "linux"), tmp_path) as made:
        yield made


@pytest.fixture
def checked_lab(repository: Path, tmp_path: Path) -> Iterator[Lab]:
    """Give a lab with the program under sanitizers: a finding changes its exit code."""
    with Lab(_program(repository, "asan"), tmp_path) as made:
        yield made


def _built(name: str, variant: str = "linux") -> Any:
    """Make a fixture that gives a built program."""

    @pytest.fixture(scope="session")
    def program(repository: Path) -> Path:
        return _program(repository, variant, name)

    return program


bw_traffic = _built("traffic-gen/bw-traffic")
bw_events = _built("traffic-gen/bw-events")
bw_loop = _built("traffic-gen/bw-loop")
bw_phase = _built("traffic-gen/bw-phase")
phase_probe = _built("tests/traffic_gen/phase-probe")
"""A program with the phases count and fail."""
bw_clock = _built("traffic-gen/bw-clock")
checked_bw_clock = _built("traffic-gen/bw-clock", "asan")
static_bw_clock = _built("traffic-gen/bw-clock", "static")
"""As it is put on targets."""
arm_bw_clock = _built("traffic-gen/bw-clock", "armhf")
bw_edge = _built("traffic-gen/bw-edge")
checked_bw_edge = _built("traffic-gen/bw-edge", "asan")
example_clock = _built("traffic-gen/clock/example-clock.so")
"""The worked example of a plug-in."""
edge_pins = _built("tests/traffic_gen/edge-pins")
"""Works the edge device's pins."""
step_at_threads = _built("tests/traffic_gen/step-at-threads.so")
"""Steps the clock of the program that it is preloaded into."""
toml_dump = _built("tests/traffic_gen/toml-dump")
"""Prints what the C reader of TOML sees."""
