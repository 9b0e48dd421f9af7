# SPDX-License-Identifier: Apache-2.0
"""A run that is called real beside a fact of an emulator contradicts itself, whoever has sealed it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.page.render import render
from reports.rejudge.run import rejudge
from reports.run.folder import MANIFEST, MEASUREMENTS, RunFolder
from reports.run.integrity import SUMS, write_sums
from reports.run.seal import bench_key, seal
from tests.reports.dossier.sample import FACTS, TARGET, record, requirements_text, small_run

ONE = requirements_text("DAQ-031")


def made(results: Path, *, simulated: bool = False, **changes: Any) -> RunFolder:
    """Make a run whose target has other facts than a real one's."""
    facts = {**copy.deepcopy(FACTS), **changes}
    return small_run(results, record(simulated=simulated), simulated=simulated, facts=facts, requirements=ONE)


def contradictions(run: RunFolder) -> str:
    return "\n".join(rejudge(run.path).contradicted)


def hash_anew(run: RunFolder) -> None:
    (run.path / SUMS).unlink()
    write_sums(run.path)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("machine.maker", {"machine": {"maker": "QEMU", "model": "Standard PC", "serial": ""}}),
        ("machine.model", {"machine": {"maker": "", "model": "linux,dummy-virt"}}),
        ("hypervisor.vendor", {"hypervisor": {"present": True, "vendor": "QEMU", "product": "Standard PC"}}),
        ("hypervisor.present", {"hypervisor": {"present": True, "vendor": "", "product": ""}}),
        ("cpu.model", {"cpu": {"model": "QEMU TCG CPU version 2.5+"}}),
        ("cpu.model", {"cpu": {"model": "Common KVM processor"}}),
        ("clock.source", {"clock": {"source": "kvm-clock"}}),
        ("versions.wine", {"versions": {"wine": "10.0", "openssh": ""}}),
        ("nics.0.driver.driver", {"nics": [{"name": "eth0", "driver": {"driver": "virtio_net"}}]}),
        ("nics.0.driver.driver", {"nics": [{"name": "eth0", "driver": {"driver": "veth"}}]}),
    ],
)
def test_a_fact_of_an_emulator_in_a_real_run_is_named(
    tmp_path: Path, name: str, facts: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run = made(tmp_path, **facts)
    said = f"run.json: simulated is false, but run.json: target.{TARGET}.{name} is "
    assert said in contradictions(run)
    assert main(["verify", str(run.path)]) == 1
    assert said in capsys.readouterr().out
    assert main(["dossier", str(run.path), "--output", str(tmp_path / "dossier.json")]) == 1
    assert "simulated is false" in capsys.readouterr().err
    assert not (tmp_path / "dossier.json").exists()
    assert "SIMULATED" in render(run.path)
    assert contradictions(made(tmp_path / "said", simulated=True, **facts)) == ""


def test_facts_of_a_real_machine_are_no_sign(tmp_path: Path) -> None:
    """Windows with a hypervisor below it, and a laboratory that has QEMU installed."""
    run = made(
        tmp_path,
        hypervisor={"present": True, "vendor": "Dell Inc.", "product": "Precision 3660"},
        machine={"maker": "Dell Inc.", "model": "Precision 3660", "serial": "7"},
        kernel={"release": "6.12", "command_line": "kvm-intel.nested=0"},
        settings={"module kvm": "absent"},
    )
    assert contradictions(run) == ""
    assert "SIMULATED" not in render(run.path)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("evidence/daq_replay/linux-rt/attempt-1/emulation.ndjson", "{}\n"),
        (f"evidence/provisioning/{TARGET}/facts-before.json", '{"machine": {"maker": "QEMU"}}'),
        (f"evidence/consoles/{TARGET}/boot-1.log", "[0.0] DMI: QEMU Standard PC\n"),
        (f"evidence/consoles/{TARGET}.log", "Booting paravirtualized kernel on KVM\n"),
    ],
)
def test_raw_data_of_an_emulator_in_a_real_run_is_named(tmp_path: Path, place: str, text: str) -> None:
    run = made(tmp_path)
    (run.path / place).parent.mkdir(parents=True, exist_ok=True)
    (run.path / place).write_text(text)
    hash_anew(run)
    assert f"run.json: simulated is false, but {place}" in contradictions(run)


@pytest.mark.parametrize("accelerator", ["tcg", "kvm", "none"])
def test_the_accelerator_of_the_bench_is_a_sign(tmp_path: Path, accelerator: str) -> None:
    run = made(tmp_path)
    manifest = json.loads((run.path / MANIFEST).read_text())
    manifest["host"]["accelerator"] = accelerator
    (run.path / MANIFEST).write_text(json.dumps(manifest))
    said = f"host.accelerator is {accelerator!r}"
    assert (said in contradictions(run)) == (accelerator != "none")


def test_the_flag_turned_over_and_sealed_anew_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The attack: manifest and records called real, every hash made anew, sealed by a fresh key."""
    run = made(tmp_path, simulated=True, machine={"maker": "QEMU"})
    for name in (MANIFEST, MEASUREMENTS):
        text = (run.path / name).read_text()
        (run.path / name).write_text(
            text.replace('"simulated": true', '"simulated": false').replace(
                '"simulated":true', '"simulated":false'
            )
        )
    seal(run.path, bench_key(tmp_path / "fresh.key"))
    hash_anew(run)
    assert main(["verify", str(run.path)]) == 1
    assert "simulated is false, but" in capsys.readouterr().out


def test_only_the_records_called_real_are_found(tmp_path: Path) -> None:
    run = made(tmp_path, simulated=True, machine={"maker": "QEMU"})
    text = (run.path / MEASUREMENTS).read_text()
    (run.path / MEASUREMENTS).write_text(text.replace('"simulated":true', '"simulated":false'))
    assert "1 records are not simulated, but run.json: target." in contradictions(run)


def test_null_beside_records_is_a_contradiction(tmp_path: Path) -> None:
    run = made(tmp_path)
    manifest = json.loads((run.path / MANIFEST).read_text())
    manifest["simulated"] = None
    (run.path / MANIFEST).write_text(json.dumps(manifest))
    assert "run.json: simulated is null beside 1 records; allowed: true, false" in contradictions(run)
