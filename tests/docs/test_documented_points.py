# SPDX-License-Identifier: Apache-2.0
"""docs/store.md names exactly the measurements, tags, fields and keys that the code writes and reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboards.delivery.deliver import SPOOL
from dashboards.delivery.endpoint import load_endpoint
from dashboards.line_protocol import Field
from dashboards.pattern_points import PATTERN
from dashboards.points import (
    EVENT_KINDS,
    LATENCY,
    MEASUREMENTS,
    RUN,
    SERIES_TAGS,
    VERDICT,
    RunPoints,
    run_points,
)
from hw.errors import ConfigError
from reports.run.folder import RunFolder
from tests.reports import sample_run
from tests.reports.patterns.sample_patterns import ramp_series, write_sample_patterns

STORE = Path(__file__).resolve().parents[2] / "docs" / "store.md"


def section(heading: str) -> str:
    """Return the text below a heading, up to the next one."""
    _, _, behind = STORE.read_text().partition(f"\n{heading}\n")
    return re.split(r"^#+ ", behind, maxsplit=1, flags=re.MULTILINE)[0]


def first_column(heading: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)`", section(heading), re.MULTILINE))


def fields_of(run: RunPoints, measurement: str) -> dict[str, Field]:
    """Return all fields of a run's points of a measurement, with one value each."""
    return {n: v for p in run.points if p.measurement == measurement for n, v in p.fields.items()}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunPoints:
    """Return the points of a realistic run."""
    return run_points(sample_run.make_run(tmp_path_factory.mktemp("results")), "main")


def documented_types(heading: str) -> dict[str, str]:
    return dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", section(heading), re.MULTILINE))


def types_of(fields: dict[str, Field]) -> dict[str, str]:
    words = {bool: "boolean", int: "integer", float: "float", str: "text"}
    return {name: words[type(value)] for name, value in fields.items()}


def test_fields_of_a_value(run: RunPoints) -> None:
    lower = {"limit_lower_ns": "float"}  # no latency has one
    assert documented_types("### Fields of a value") == types_of(fields_of(run, LATENCY)) | lower


def test_fields_of_a_verdict(run: RunPoints) -> None:
    named = set(re.findall(r"`(\w+)`", section("### Fields of a verdict"))) - {"_ns"}
    values = {n for n in documented_types("### Fields of a value") if not n.endswith("_ns")}
    assert set(fields_of(run, VERDICT)) == named | (values - {"misses", "misses_sent"})


def test_fields_of_a_run(run: RunPoints) -> None:
    text = section("### Fields of a run")
    likewise = dict.fromkeys(re.findall(r"`(count_\w+|requirements_\w+|tests_\w+)`", text), "integer")
    assert documented_types("### Fields of a run") | likewise == types_of(fields_of(run, RUN))


def test_fields_of_a_series_that_was_searched(tmp_path: Path) -> None:
    made = RunFolder.create(tmp_path, "virtual", "ci", simulated=True, commit="0" * 40)
    write_sample_patterns(made.path, ramp_series("control_loops/linux-rt", "whole"))
    heading = "### Series that were searched for patterns"
    assert documented_types(heading) == types_of(fields_of(run_points(made, "main"), PATTERN))
    assert f"`{PATTERN}`" in section(heading)


def test_measurements() -> None:
    assert first_column("## Points") == {*MEASUREMENTS, SPOOL}


def test_tags() -> None:
    assert first_column("### Tags") == set(SERIES_TAGS)
    assert all(f"`{kind}`" in section("### Tags") for kind in EVENT_KINDS)


def test_keys_of_an_endpoint(tmp_path: Path) -> None:
    file = tmp_path / "endpoint.toml"
    file.write_text('[influxdb]\napi = 1\nurl = "u"\ndatabase = "d"\nnobody_asks_for_this = 1\n')
    with pytest.raises(ConfigError, match="known here: ") as caught:
        load_endpoint(file, {})
    assert first_column("## Delivery") == set(str(caught.value).partition("known here: ")[2].split(", "))
