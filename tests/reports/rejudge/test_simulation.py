# SPDX-License-Identifier: Apache-2.0
"""A bench that calls itself real beside the traces of an emulator is named, and makes no dossier."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.dossier.errors import DossierError
from reports.dossier.source import read_source
from reports.rejudge.run import rejudge
from reports.rejudge.simulation import simulation_objections
from tests.reports.sample_run import make_run

RECORD = {"requirement": "DAQ-031", "simulated": False}


def said(tmp_path: Path, **manifest: Any) -> list[str]:
    whole: dict[str, Any] = {"simulated": False, "host": {}, "target": {}, **manifest}
    return list(simulation_objections(tmp_path, whole, [RECORD]))


def test_a_real_bench_on_real_facts_is_believed(tmp_path: Path) -> None:
    facts = {"machine": {"maker": "Intel", "model": "NUC"}, "hypervisor": {"present": True, "vendor": ""}}
    assert said(tmp_path, target={"linux-rt": facts}, host={"accelerator": "none"}) == []


@pytest.mark.parametrize(
    "facts",
    [
        {"machine": {"maker": "QEMU", "model": "Standard PC"}},
        {"cpu": {"hardware": "linux,dummy-virt"}},
        {"clock": {"available": "kvm-clock tsc"}},
        {"system": {"wine": "8.0"}},
    ],
)
def test_what_a_target_says_of_its_emulator_belies_it(tmp_path: Path, facts: dict[str, Any]) -> None:
    first, second = said(tmp_path, target={"t": facts})
    assert first.startswith("run.json: simulated is false, but target.t.")
    assert second.startswith("measurements.jsonl: DAQ-031: simulated is false, but target.t.")


def test_an_accelerator_and_what_watched_an_emulator_belie_it(tmp_path: Path) -> None:
    assert "host.accelerator is 'tcg'" in said(tmp_path, host={"accelerator": "tcg"})[0]
    folder = tmp_path / "evidence" / "daq_replay"
    folder.mkdir(parents=True)
    (folder / "emulation.ndjson").write_text("")
    assert "evidence/daq_replay/emulation.ndjson is there" in said(tmp_path)[0]
    assert said(tmp_path, simulated=True) == [
        "measurements.jsonl: DAQ-031: simulated is false, but evidence/daq_replay/emulation.ndjson is there"
    ]


def test_null_beside_records_is_no_answer(tmp_path: Path) -> None:
    assert said(tmp_path, simulated=None) == [
        "run.json: simulated is null beside records: whether the bench is real is not known"
    ]


def test_the_flag_turned_over_in_manifest_and_records_makes_no_dossier(tmp_path: Path) -> None:
    """Hashes made anew, as by whoever has changed it."""
    run = make_run(tmp_path, simulated=False, close=False)
    run.update(target={"linux-rt": {"machine": {"maker": "QEMU"}}})
    run.close()
    run.finalise()
    assert json.loads((run.path / "run.json").read_text())["simulated"] is False
    named = [each for each in rejudge(run.path).contradicted if "simulated is false, but" in each]
    assert "target.linux-rt.machine.maker is 'QEMU'" in named[0]
    with pytest.raises(DossierError, match="simulated is false, but"):
        read_source(run.path)
