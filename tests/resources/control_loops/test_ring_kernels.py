# SPDX-License-Identifier: Apache-2.0
"""Which kernels of a ring's machines are recorded, and what of each is known: nodes that only say things."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.errors import BenchError, CapabilityError
from hw.open_bench import OpenBench
from reports.control_loops.ring_evidence import Emulator, KernelNode, RecordedKernel
from resources.control_loops import ring_kernels
from resources.control_loops.ring_kernels import BOOT_ID, cpus_of, record_kernels
from resources.tools.kernel_recorder import KernelEvents

HERE = BOOT_ID.read_text().strip()
SAYS = {
    "guest": "a-b-c\n0\ncubic\n",
    "p01": f"{HERE}\n0\ncubic\n",
    "p02": f"{HERE}\n0\nbbr\n",
    "wine": "",
}


def emulating_threads(node: str) -> dict[str, int]:
    return {"vcpu0": 7, "main-loop": 5} if node == "guest" else {}


class Lab:
    """A bench of four nodes; `guest` is emulated by two threads of this machine."""

    virtual = SimpleNamespace(emulating_threads=emulating_threads)
    spec = SimpleNamespace(
        nodes={name: SimpleNamespace(cpus=(1, 0) if name == "p02" else ()) for name in SAYS}
    )

    def __init__(self, *, without: str = "") -> None:
        self.recorded: dict[str, KernelEvents] = {}
        self.without = without

    def node(self, name: str) -> Any:
        """Return a node that says what SAYS has."""

        def run(_argv: list[str], **_more: object) -> Any:
            return SimpleNamespace(exit_code=0 if SAYS[name] else 1, stdout=SAYS[name])

        return SimpleNamespace(name=name, run=run)

    @contextmanager
    def kernel_recorded(self, node: Any, what: KernelEvents) -> Generator[Any]:
        """Record a kernel: its file gets the name of its node."""
        if node.name == self.without:
            raise CapabilityError("no tracefs")
        self.recorded[node.name] = what

        def end(local: Path) -> None:
            local.write_text(node.name)

        yield SimpleNamespace(end=end)


def kernels(
    lab: Lab, folder: Path, monkeypatch: pytest.MonkeyPatch, *nodes: str
) -> tuple[RecordedKernel, ...] | None:
    monkeypatch.setattr(ring_kernels, "kernel_recorded", lab.kernel_recorded)
    with ExitStack() as stack:
        return record_kernels(stack, cast("OpenBench", lab), nodes).end(folder)


def test_each_kernel_is_recorded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    found = kernels(lab, tmp_path, monkeypatch, "guest", "p01", "p02", "wine", "guest")
    assert found == (
        RecordedKernel("kernel-ring.gz", (KernelNode("guest", (0,), "cubic"),)),
        RecordedKernel(
            "kernel-ring-p01.gz",
            (KernelNode("p01", (0,), "cubic"), KernelNode("p02", (1,), "bbr")),
            (Emulator("guest", "vcpu0", 7), Emulator("guest", "main-loop", 5)),
        ),
    )
    assert (tmp_path / "kernel-ring.gz").read_text() == "guest"
    assert (tmp_path / "kernel-ring-p01.gz").read_text() == "p01"
    assert {each.clock for each in lab.recorded.values()} == {"tai"}


def test_who_is_woken_is_recorded_where_it_emulates_a_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab()
    kernels(lab, tmp_path, monkeypatch, "guest", "p01")
    woken = {name: "sched/sched_waking" in what.events for name, what in lab.recorded.items()}
    assert woken == {"guest": False, "p01": True}


def test_a_kernel_that_permits_no_recording_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kernels(Lab(without="guest"), tmp_path, monkeypatch, "wine", "guest") is None


@pytest.mark.parametrize(("said", "cpus"), [("0", (0,)), ("0,2-4", (0, 2, 3, 4)), ("0-1,5", (0, 1, 5))])
def test_lists_of_cpus(said: str, cpus: tuple[int, ...]) -> None:
    assert cpus_of(said) == cpus


def test_what_is_no_list_of_cpus_is_refused() -> None:
    with pytest.raises(BenchError, match="no list of CPUs: 'cubic'"):
        cpus_of("cubic")
