# SPDX-License-Identifier: Apache-2.0
"""The virtual part of a bench: what of it is guests, and that real machines are left alone."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hw.bench import BenchSpec, load_bench
from hw.drivers.virtual_guest import PAGE_FILE, VirtualGuestDriver
from hw.errors import CapabilityError
from hw.labgrid_file import open_labgrid
from hw.virtual import cpu_account
from hw.virtual_bench import LocalVirtualBench

BENCHES = Path(__file__).resolve().parents[2] / "hw" / "benches"
SPEC = load_bench(BENCHES / "virtual.yaml")
REAL = replace(SPEC, virtual=None, simulated=False)
TARGET = "linux-rt"


def bench_of(spec: BenchSpec, folder: Path = Path(), on: Container[str] = ()) -> LocalVirtualBench:
    """Return the virtual part of a bench whose machines are all real for labgrid."""

    def real(name: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, resources=[], get_driver=str)

    return LocalVirtualBench(spec, SimpleNamespace(get_target=real), folder, on)


def test_powered_guests_are_those_that_are_on_at_the_time() -> None:
    on = {"switch", "p01"}
    virtual = bench_of(SPEC, on=on)
    assert virtual.powered_guests() == set()
    on.add(TARGET)
    assert virtual.powered_guests() == {TARGET}
    assert bench_of(REAL, on=on).powered_guests() == set()


def test_guests_have_the_mtu_of_the_bench(tmp_path: Path) -> None:
    assert SPEC.virtual is not None
    environment = open_labgrid(SPEC, tmp_path)
    for name, resource in (
        (TARGET, "VirtualGuest"),
        ("impair", "VirtualGuest"),
        ("embedded", "VirtualBoard"),
    ):
        guest = environment.get_target(name).get_resource(resource, wait_avail=False)
        assert guest.test_mtu_bytes == SPEC.virtual.mtu_bytes


def test_both_ends_of_the_impairment_node_are_seen_on_a_virtual_bench_only() -> None:
    target = SPEC.targets[TARGET]
    assert SPEC.capture is not None
    assert bench_of(SPEC).capture_ends("p11", target) == ("p11", f"t-{TARGET}")
    assert bench_of(SPEC).capture_ends("embedded", target) == ("t-embedded", f"t-{TARGET}")
    named = replace(SPEC, capture=replace(SPEC.capture, interface="eth7"))
    assert bench_of(named).capture_ends("p11", target) == ("p11", "eth7")
    for spec in (REAL, replace(SPEC, capture=None)):
        assert bench_of(spec).capture_ends("p11", target) == ()


def test_a_guest_shares_the_page_that_lies_in_its_folder(tmp_path: Path) -> None:
    virtual = bench_of(SPEC, tmp_path)
    assert virtual.timecard_page(TARGET) is None
    page = tmp_path / TARGET / PAGE_FILE
    page.parent.mkdir()
    page.touch()
    assert virtual.timecard_page(TARGET) == page
    assert virtual.timecard_page("embedded") is None


@pytest.mark.parametrize("name", [TARGET, "p01"])
def test_what_is_no_guest_is_left_alone(name: str) -> None:
    virtual = bench_of(REAL)
    assert virtual.accelerator() == "none"
    assert virtual.emulating_threads(name) == {}
    assert virtual.target_account() is None
    with cpu_account.lab():
        assert virtual.machine_use() is None
        assert bench_of(SPEC).machine_use() is not None
    virtual.give_way(name, "embedded")
    virtual.take_back_way(name)
    with pytest.raises(CapabilityError, match=f"{name}: no guest of this machine"):
        virtual.pause(name, 0.0)


def test_the_guest_of_a_board_is_found_below_its_strategy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its power is the strategy's: the emulator was looked for there alone, and nobody watched a board's."""
    emulator = SimpleNamespace(emulating_threads=lambda: {"vcpu0": 4711, "main-loop": 4710})
    monkeypatch.setattr(VirtualGuestDriver, "qemu", emulator)
    virtual = LocalVirtualBench(SPEC, open_labgrid(SPEC, tmp_path), tmp_path, ())
    for name in (TARGET, "embedded"):
        assert virtual.emulating_threads(name) == {"vcpu0": 4711, "main-loop": 4710}
    assert virtual.emulating_threads("linux") == {}
