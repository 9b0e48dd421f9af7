# SPDX-License-Identifier: Apache-2.0
"""Faults of virtual targets: who can have which, what they make of a guest; what a closed bench has left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hw import leftovers as module
from hw.bench import load_bench
from hw.drivers.labgrid_api import register_all
from hw.errors import BenchError, CapabilityError
from hw.faults import Fault, with_fault
from hw.leftovers import leftovers
from hw.virtual.console_log import wait_for_boot
from hw.virtual.guest_faults import with_boot_fault
from tests.hw.test_guest_machine import machine

register_all()
VIRTUAL = "hw/benches/virtual.yaml"


def test_a_fault_goes_to_the_resource_of_its_node_alone(repository: Path) -> None:
    spec = load_bench(repository / VIRTUAL)
    faulty = with_fault(spec, "linux-rt", Fault.NEVER_BOOTS)
    assert faulty.labgrid_targets["linux-rt"]["resources"]["VirtualGuest"]["fault"] == "never-boots"
    assert "never-boots" not in str(spec.labgrid_targets)
    assert faulty.labgrid_targets["producer-12"] == spec.labgrid_targets["producer-12"]


def test_a_kind_that_cannot_have_a_fault_says_which_it_can(repository: Path) -> None:
    spec = load_bench(repository / VIRTUAL)
    with pytest.raises(
        CapabilityError, match="hangs-at-prompt is no fault of a VirtualWindows; it can have: "
    ):
        with_fault(spec, "windows", Fault.HANGS_AT_PROMPT)


def test_a_real_machine_has_no_faults_to_be_given(repository: Path) -> None:
    spec = load_bench(repository / "hw/benches/example-board.yaml")
    [target] = spec.targets.values()
    with pytest.raises(CapabilityError, match="only a virtual machine can be given a fault"):
        with_fault(spec, target.node, Fault.FULL_DISK)


def test_what_faults_make_of_a_guest(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.write_bytes(b"x" * 10_001)
    guest = replace(machine("linux-rt", "tcg"), root=root)
    assert with_boot_fault(guest, "", tmp_path) == guest
    assert with_boot_fault(guest, Fault.LOSES_SSH, tmp_path) == guest
    wrong = with_boot_fault(guest, Fault.WRONG_IMAGE, tmp_path)
    assert not any(wrong.root.read_bytes())
    damaged = with_boot_fault(guest, Fault.DAMAGED_IMAGE, tmp_path).root.read_bytes()
    assert damaged == b"x" * 5_000 + bytes(5_001)
    assert root.read_bytes() == b"x" * 10_001
    assert with_boot_fault(guest, Fault.NEVER_BOOTS, tmp_path).extra_arguments[-1] == "-S"
    assert "rdinit=/bin/sh" in with_boot_fault(guest, Fault.HANGS_AT_PROMPT, tmp_path).kernel_arguments


def test_a_boot_is_judged_by_its_log_and_by_its_end(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    with pytest.raises(BenchError, match="guest x: ended while it booted; console: no message"):
        wait_for_boot("guest x", log, lambda: False)
    log.write_text("Booting\nbenchwright: boot failed: root is no squashfs\n")
    with pytest.raises(BenchError, match="guest x: start-up failed: root is no squashfs; console: Booting"):
        wait_for_boot("guest x", log, lambda: False)
    log.write_text("benchwright: ready\n")
    wait_for_boot("guest x", log, lambda: True)


def test_leftovers_are_named(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = load_bench(repository / VIRTUAL)
    for name in ("NAMESPACES", "RUN_FOLDER", "JOURNAL_FOLDER"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(module, name, tmp_path / name)
    assert leftovers(spec) == []
    (tmp_path / "NAMESPACES" / "bw-virtual-b-switch").touch()  # of the bench `virtual-b`
    (tmp_path / "NAMESPACES" / "bw-virtual-b-p01").touch()
    assert leftovers(spec) == []
    (tmp_path / "NAMESPACES" / "bw-virtual-switch").touch()
    (tmp_path / "RUN_FOLDER" / "virtual").mkdir()
    (tmp_path / "JOURNAL_FOLDER" / "virtual.journal").write_text('{"kind": "sysctl", "name": "x"}\n')
    found = leftovers(spec)
    assert found[0] == "namespace bw-virtual-switch"
    assert found[1].endswith("RUN_FOLDER/virtual")
    assert found[2].startswith("a change not undone: {'kind': 'sysctl'")
