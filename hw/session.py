# SPDX-License-Identifier: Apache-2.0
"""An open bench: reserved, built where it is virtual, its nodes powered and reached; undone when it closes.

Use:
    with open_bench(Path("hw/benches/virtual.yaml")) as bench:
        bench.power_on(["linux-rt"])
        bench.node("linux-rt").run(["uname", "-a"])
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hw.bench import BenchSpec, load_bench
from hw.drivers.router import NetemRouter
from hw.faults import Fault, with_fault
from hw.instruments import BenchInstruments
from hw.journal import Journal
from hw.labgrid_file import open_labgrid
from hw.nodes import BenchNodes
from hw.paths import router_of
from hw.protocols import Router
from hw.reservation import reserve
from hw.virtual import cpu_account, host, network
from hw.virtual.bench_network import build_network
from hw.virtual_bench import LocalVirtualBench

RUN_FOLDER = Path("/run/benchwright")

UNDO_ACTIONS = {
    "folder": host.remove_folder,
    "namespace": network.delete_namespace,
}


class Bench(BenchNodes):
    """An open bench: its nodes, with its instruments and what of it is virtual. Get one from `open_bench`."""

    def __init__(self, spec: BenchSpec, journal: Journal) -> None:
        """Prepare an open bench; use `open_bench`."""
        folder = RUN_FOLDER / spec.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        if spec.virtual is not None:
            build_network(spec, journal)
        environment = open_labgrid(spec, folder)
        super().__init__(spec, folder, journal, environment)
        self.instruments = BenchInstruments(spec, folder, self)
        self.virtual = LocalVirtualBench(spec, environment, folder, self._nodes)

    def described_by(self, spec: BenchSpec) -> Bench:
        """Return this bench as another description has it: the same nodes, on or off for both.

        Args:
            spec: Of the same machines; who plays which part may differ.
        """
        view = copy.copy(self)
        view.spec = spec
        return view

    def router(self) -> Router:
        """Return the router of this bench.

        Raises:
            CapabilityError: It has none.
        """
        return NetemRouter(self, router_of(self.spec))

    def close(self) -> None:
        """Power guests off, leave real machines as they are, and undo every change of the host."""
        self.instruments.close()
        try:
            super().close()
        finally:
            self.journal.undo()
            shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def open_bench(path: Path, faults: Mapping[str, Fault] | None = None) -> Generator[Bench, None, None]:
    """Reserve a bench, undo what a killed run has left, build and open it; close it at the end.

    Args:
        path: The bench file.
        faults: What is wrong with machines of it, by node.

    Raises:
        ConfigError: The file is wrong.
        CapabilityError: A machine cannot have its fault.
        BenchError: Somebody else holds the bench, or it cannot be built.
    """
    spec = load_bench(path)
    for name, fault in (faults or {}).items():
        spec = with_fault(spec, name, fault)
    with reserve(spec.name), _settings(spec):
        journal = Journal(spec.name, UNDO_ACTIONS)
        journal.undo()
        bench: Bench | None = None
        try:
            bench = Bench(spec, journal)
            if spec.virtual is None and spec.router is not None:
                bench.router().clear()  # what a killed run has left on a real machine
            yield bench
        finally:
            if bench is not None:
                bench.close()
            else:
                journal.undo()


@contextmanager
def _settings(spec: BenchSpec) -> Generator[None]:
    """Have this machine as the bench needs it, and count what of it the bench uses."""
    if spec.virtual is None:
        yield
        return
    congestion = network.PRODUCER_SYSCTLS["net.ipv4.tcp_congestion_control"]
    with host.machine_settings(congestion), cpu_account.lab():
        yield


def clean(path: Path) -> int:
    """Undo what a killed run has left on this machine.

    Args:
        path: The bench file.

    Returns:
        How many changes were undone.

    Raises:
        BenchError: Somebody holds the bench, or a change could not be undone.
    """
    spec = load_bench(path)
    with reserve(spec.name):
        undone = Journal(spec.name, UNDO_ACTIONS).undo() + host.undo_machine_settings()
        shutil.rmtree(RUN_FOLDER / spec.name, ignore_errors=True)
        return undone
