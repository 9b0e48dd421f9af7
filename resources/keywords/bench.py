# SPDX-License-Identifier: Apache-2.0
"""Keywords that open, provision and close a bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from hw.bench import TargetSpec
from hw.errors import BenchError, CapabilityError
from hw.faults import Fault
from hw.provisioning import Provisioner
from hw.session import Bench, open_bench
from hw.tools import tool_versions
from reports import current_run
from reports.current import open_run
from resources.keywords.robot_api import keyword, library


def say(line: str) -> None:
    """Show progress on the terminal and in the log."""
    logger.info(line)
    logger.console(f"  {line}")


def bench_library() -> BenchLibrary:
    """Return the one instance of the bench library of this execution."""
    instance: Any = BuiltIn().get_library_instance("resources.keywords.bench.BenchLibrary")
    return instance


@library(scope="GLOBAL", version="1")
class BenchLibrary:
    """Open a bench, provision its targets, give everything back.

    One bench is open at a time. `Open Bench` reserves it; a second run is refused with the name of the
    holder. What is changed is written to an undo journal first, so that the next start mends what a killed
    run has left.
    """

    def __init__(self) -> None:
        """Start with no bench open."""
        self._stack = ExitStack()
        self._bench: Bench | None = None
        self._provisioned: dict[str, Provisioner] = {}
        self._prepared: set[str] = set()

    @property
    def bench(self) -> Bench:
        """The open bench.

        Raises:
            BenchError: None is open.
        """
        if self._bench is None:
            raise BenchError("no bench is open: call `Open Bench` first")
        return self._bench

    def target(self, kind: str) -> TargetSpec:
        """Return the description of a target of the open bench.

        Raises:
            CapabilityError: The bench has no such target.
        """
        spec = self.bench.spec
        if kind not in spec.targets:
            raise CapabilityError(
                f"bench {spec.name}: no target {kind!r}; there are: {', '.join(spec.targets)}"
            )
        return spec.targets[kind]

    @keyword
    def open_bench(self, bench: Path) -> None:
        """Reserve and open a bench by its file; harmless when it is open already.

        A virtual bench is built now: namespaces, switch, links; its guests are powered on when first needed.

        Examples:
        | Open Bench | hw/benches/virtual.yaml |

        Args:
            bench: Bench file.
        """
        if self._bench is None:
            self.open_with_faults(bench, {})

    def open_with_faults(self, bench: Path, faults: Mapping[str, Fault]) -> None:
        """Reserve and open a bench some of whose virtual machines are given faults.

        Args:
            bench: Bench file.
            faults: By node.
        """
        if self._bench is not None:
            raise BenchError(f"bench {self._bench.spec.name} is open: call `Close Bench` first")
        said = "".join(f", {node}: {fault}" for node, fault in faults.items())
        say(f"opening bench {bench}{said}")
        self._bench = self._stack.enter_context(open_bench(bench, faults))
        spec = self._bench.spec
        current_run().update(
            simulated=spec.simulated,
            host={
                "bench_file": str(spec.path),
                "environment": spec.environment,
                "accelerator": self._bench.accelerator(),
                "instruments": self._bench.instruments(),
                "wiring": spec.wiring,
            },
            tools=tool_versions(),
        )

    @keyword
    def provision_target(
        self, target: str, besides: Literal["producers", "time server", "nothing"] = "producers"
    ) -> None:
        """Power a target on, record its facts as found, apply the settings of its folder under `targets/`.

        The facts after that go into manifest and report. `Restore Target` gives back the settings of before.
        Harmless when that is done already.

        Args:
            target: Its name under `benchwright.targets` of the bench file.
            besides: What is powered on at the same time, where it has power of its own; the impairment node
                is one of the producers'.
        """
        spec = self.target(target)
        if spec.kind in self._prepared:
            return
        say(f"powering on {spec.node}")
        server, impairment = self.bench.spec.time_server, self.bench.spec.impairment
        producers = {producer.node for producer in self.bench.spec.producers.values()}
        others = {
            "producers": producers | ({impairment.node} if impairment is not None else set[str]()),
            "time server": {server.node} if server is not None else set[str](),
            "nothing": set[str](),
        }[besides]
        labgrid = [name for name in others if name in self.bench.spec.labgrid_targets]
        self.bench.power_on([spec.node, *labgrid])
        self._provision([(spec, current_run().evidence_folder("provisioning", spec.kind))], spec.kind)

    @keyword
    def provision_target_and_consumer(self, target: str, consumer: str) -> None:
        """Provision a target that produces, and the one that consumes, which is powered on first.

        The consumer is not under test: its facts go into the evidence of the target's provisioning alone.
        Where both are virtual, they share the machine: the target gets what the consumer leaves.
        `Restore Target` gives each its settings back.

        Args:
            target: Its name under `benchwright.targets` of the bench file.
            consumer: That of the other.
        """
        spec, other = self.target(target), self.target(consumer)
        say(f"powering on {spec.node} and {other.node}")
        producers = {producer.node for producer in self.bench.spec.producers.values()}
        labgrid = producers.intersection(self.bench.spec.labgrid_targets)
        self.bench.power_on([other.node, *labgrid])
        self.bench.give_way(spec.node, other.node)  # it would starve beside others that boot
        self.bench.power_on([spec.node])
        run = current_run()
        work = [
            (spec, run.evidence_folder("provisioning", spec.kind)),
            (other, run.evidence_folder("provisioning", spec.kind, "consumer")),
        ]
        self._provision([each for each in work if each[0].kind not in self._prepared], spec.kind)

    def _provision(self, work: Sequence[tuple[TargetSpec, Path]], under_test: str) -> None:
        """Apply the settings of targets that are on, all at once; evidence goes to the folder of each.

        The facts of the one under test go into the manifest.
        """
        say(f"provisioning {' and '.join(spec.node for spec, _ in work)}")
        begun = [Provisioner(self.bench.node(spec.node), spec) for spec, _ in work]
        self._provisioned |= {spec.kind: each for (spec, _), each in zip(work, begun, strict=True)}
        with ThreadPoolExecutor() as pool:
            reports = list(pool.map(Provisioner.prepare, begun, [folder for _, folder in work]))
        for (spec, _), report in zip(work, reports, strict=True):
            self._prepared.add(spec.kind)
            if spec.kind == under_test:
                current_run().update(target={spec.kind: report.facts})
            for remark in report.remarks:
                say(f"{spec.node}: {remark}")

    @keyword
    def restore_target(self, target: str) -> None:
        """Give a target back the settings of before it was provisioned; harmless when it was not.

        Args:
            target: Its name under `benchwright.targets` of the bench file.
        """
        self._prepared.discard(target)
        provisioner = self._provisioned.pop(target, None)
        if provisioner is not None:
            provisioner.restore()

    def _keep_consoles(self) -> None:
        run = open_run()
        if self._bench is None or run is None:
            return
        for name in self._bench.spec.labgrid_targets:
            text = self._bench.console(name)
            if text:
                (run.evidence_folder("consoles") / f"{name}.log").write_text(text, encoding="utf-8")

    @keyword
    def close_bench(self) -> None:
        """Power off, undo every change of this machine, and release the bench; harmless when none is open.

        What machines have said on their serial consoles is kept in the run folder, `evidence/consoles`.
        """
        try:
            self._keep_consoles()
            if self._bench is not None:  # with the identities of those that were opened
                current_run().update(host={"instruments": self._bench.instruments()})
        finally:
            self._bench = None
            self._provisioned.clear()
            self._prepared.clear()
            self._stack.close()
