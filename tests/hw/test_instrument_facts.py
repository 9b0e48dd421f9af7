# SPDX-License-Identifier: Apache-2.0
"""What a manifest says of instruments and wiring: from the bench file, and from those that were opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hw.bench import BenchSpec, load_bench
from hw.errors import ConfigError
from hw.instrument_facts import instrument_facts

EXAMPLE = Path(__file__).resolve().parents[2] / "hw" / "benches" / "example-hardware.yaml"
KEYS = {"kind", "identity", "maker", "model", "serial", "firmware", "calibration", "limits"}
RECORDS = """
schema = "benchwright.scope-calibration/1"
[[record]]
id = "cable-14"
kind = "cable_delay"
delay_ps = 4870
uncertainty_ps = 12
uncertainty_kind = "standard"
date = 2026-03-31
expires = 2027-03-31
source = "certificate 2026-117"
[[record]]
id = "cable-15"
kind = "cable_delay"
delay_ps = 4871
uncertainty_ps = 12
uncertainty_kind = "standard"
date = 2026-02-01
expires = 2027-08-31
source = "certificate 2026-117"
[[record]]
id = "unused"
kind = "cable_delay"
delay_ps = 1
uncertainty_ps = 1
uncertainty_kind = "bound"
date = 2020-01-01
expires = 2021-01-01
source = "certificate of a cable that nobody uses"
"""


def load(tmp_path: Path, **changes: Any) -> BenchSpec:
    """Return the example with its section changed, and calibration records beside it."""
    document = yaml.safe_load(EXAMPLE.read_text())
    document["benchwright"] |= changes
    (tmp_path / "records.toml").write_text(RECORDS)
    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return load_bench(path)


def calibrated() -> dict[str, Any]:
    """Return the example's oscilloscopes with a calibration of both signals."""
    scopes: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())["benchwright"]["oscilloscopes"]
    scopes["scope-a"]["calibration"] = "records.toml"
    for signal, cable in (("reference", "cable-14"), ("edge", "cable-15")):
        scopes["scope-a"]["signals"][signal]["calibrated_by"] = [cable]
    return scopes


def test_what_the_bench_file_says() -> None:
    found = instrument_facts(load_bench(EXAMPLE), {})
    assert list(found) == ["scope-a", "timecard-linux-rt"]
    assert all(set(facts) == KEYS for facts in found.values())
    scope, card = found["scope-a"], found["timecard-linux-rt"]
    assert (scope["kind"], scope["identity"], scope["serial"], scope["calibration"]) == (
        "oscilloscope",
        None,
        None,
        None,
    )
    assert scope["limits"] == {
        "time_base_error_ppm": 1.6,
        "clock_jitter_ps": 5.0,
        "trigger_jitter_ps": 30.0,
        "skew_ps": 150.0,
    }
    assert (card["kind"], card["limits"]) == ("timecard", {"bound_ns": 100})


def test_what_an_instrument_says_of_itself() -> None:
    reply = "KEYSIGHT TECHNOLOGIES,MSO-X 4154A,MY1,07.50.2021102830"
    scope = instrument_facts(load_bench(EXAMPLE), {"scope-a": reply})["scope-a"]
    assert scope["identity"] == reply
    assert [scope[key] for key in ("maker", "model", "serial", "firmware")] == reply.split(",")


def test_calibration_of_what_is_in_the_way_of_signals(tmp_path: Path) -> None:
    scope = instrument_facts(load(tmp_path, oscilloscopes=calibrated()), {})["scope-a"]
    assert scope["calibration"] == {
        "certificate": "certificate 2026-117",
        "date": "2026-02-01",
        "due": "2027-03-31",
    }


def test_wiring_is_text_by_name(tmp_path: Path) -> None:
    assert set(load_bench(EXAMPLE).wiring) == {"reference", "edge"}
    assert load(tmp_path, wiring={"edge": " RG-316, 1.00 m "}).wiring == {"edge": "RG-316, 1.00 m"}


@pytest.mark.parametrize("wrong", [{"edge": 7}, {"edge": "  "}, ["edge"], {"edge": {"length_m": 1}}])
def test_wiring_that_is_refused(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(ConfigError, match=r"benchwright\.wiring"):
        load(tmp_path, wiring=wrong)
