# SPDX-License-Identifier: Apache-2.0
"""Keywords that open, provision and close a bench."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Literal

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from hw.bench import TargetSpec
from hw.errors import BenchError, CapabilityError
from hw.faults import Fault
from hw.instrument_facts import wiring_facts, with_known
from hw.open_bench import OpenBench
from hw.provisioning import Provisioner
from hw.session import open_bench
from hw.tools import tool_versions
from reports import current_run
from reports.run.current import at_end_of_run, note_progress, open_run
from resources.keywords.robot_api import keyword, library
from resources.tools.fact_differences import differing_facts


def say(line: str) -> None:
    """Show progress on the terminal and in the log."""
    note_progress(line)
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
    holder. What is changed is written to an undo journal first, so that the next start fixes what a killed
    run has left. The suites of a run share the bench: it is closed when the run ends.
    """

    def __init__(self) -> None:
        """Start with no bench open."""
        self._stack = ExitStack()
        self._bench: OpenBench | None = None
        self._file = Path()
        self._left = False
        self._until_left = ExitStack()
        self._provisioned: dict[str, Provisioner] = {}
        self._prepared: dict[str, dict[str, Any]] = {}

    @property
    def bench(self) -> OpenBench:
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
        """Reserve and open a bench by its file; one that the suite before has left is gone on with.

        A virtual bench is built now: namespaces, switch, links; its guests are powered on when first needed.

        Examples:
        | Open Bench | hw/benches/virtual.yaml |

        Args:
            bench: Bench file.
        """
        if self._bench is not None and bench != self._file:
            self.shut()
        if self._bench is None:
            self.open_with_faults(bench, {})

    def open_with_faults(self, bench: Path, faults: Mapping[str, Fault]) -> None:
        """Reserve and open a bench some of whose virtual machines are given faults.

        Args:
            bench: Bench file.
            faults: By node.
        """
        if self._bench is not None:
            raise BenchError(f"bench {self._bench.spec.name} is open: shut it first")
        said = "".join(f", {node}: {fault}" for node, fault in faults.items())
        say(f"opening bench {bench}{said}")
        self._bench = self._stack.enter_context(open_bench(bench, faults))
        self._file = bench
        spec = self._bench.spec
        current_run().update(
            bench=spec.name,
            simulated=spec.simulated,
            host={
                "bench_file": str(spec.path),
                "environment": spec.environment,
                "accelerator": self._bench.virtual.accelerator(),
                "wiring": wiring_facts(spec),
            },
            tools=tool_versions(),
        )
        self._note_instruments()

    def _note_instruments(self) -> None:
        """Note in the manifest the instruments, and what they have said of themselves so far in the run."""
        run = current_run()
        known = run.manifest.host.get("instruments", {})
        run.update(host={"instruments": with_known(self.bench.instruments.facts(), known)})

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
        if spec.kind in self._prepared and not self._left:
            return
        server, router = self.bench.spec.time_server, self.bench.spec.router
        others = {
            "producers": self._producers() | ({router.node} if router is not None else set[str]()),
            "time server": {server.node} if server is not None else set[str](),
            "nothing": set[str](),
        }[besides]
        self.power_on([spec.node, *others])
        self.bench.virtual.take_back_way(spec.node)
        if spec.kind not in self._prepared:
            self._provision([(spec, current_run().evidence_folder("provisioning", spec.kind))], spec.kind)

    def until_left(self, context: AbstractContextManager[object]) -> None:
        """Enter a context that ends when the suite leaves the bench, before it is seen what it has left."""
        self._until_left.enter_context(context)

    def power_on(self, nodes: Collection[str]) -> None:
        """Power on the nodes that a suite begins with, where they have power of their own.

        Of what the suite before has left, virtual machines that are not among them lose their power, for idle
        ones take time from those that measure, and other targets get their settings back.
        """
        if self._left:
            self._left = False
            for name in self.bench.virtual.powered_guests() - {*nodes}:
                self._forget(name)
                self.bench.power_off(name)
            for kind in [kind for kind in self._prepared if self.target(kind).node not in nodes]:
                self.restore_target(kind)
        named = [name for name in dict.fromkeys(nodes) if name in self.bench.spec.labgrid_targets]
        if off := [name for name in named if self.bench.is_off(name)]:
            say(f"powering on {' and '.join(off)}")
        self.bench.power_on(named)

    def _producers(self) -> set[str]:
        return {producer.node for producer in self.bench.spec.producers.values()}

    def _forget(self, node: str) -> None:
        """Forget that the target of a node, which starts afresh, was provisioned."""
        for kind in [kind for kind in self._provisioned if self.target(kind).node == node]:
            self._prepared.pop(kind, None)
            del self._provisioned[kind]

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
        on_already = self.bench.virtual.powered_guests() & {spec.node}
        self.power_on([other.node, *self._producers(), *on_already])
        self.bench.virtual.give_way(spec.node, other.node)  # it would starve beside others that boot
        self.power_on([spec.node])
        run = current_run()
        work = [
            (spec, run.evidence_folder("provisioning", spec.kind)),
            (other, run.evidence_folder("provisioning", spec.kind, "consumer")),
        ]
        if missing := [each for each in work if each[0].kind not in self._prepared]:
            self._provision(missing, spec.kind)

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
            self._prepared[spec.kind] = report.facts
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
        self._prepared.pop(target, None)
        provisioner = self._provisioned.pop(target, None)
        if provisioner is not None:
            provisioner.restore()

    @keyword
    def close_bench(self) -> None:
        """Leave the bench to the suites that follow; it is closed when the run ends.

        Targets stay provisioned meanwhile. Where the facts of one are not what they were when it was
        provisioned, or the suite could not take off what it had put on, this is said, and it starts afresh
        with the next suite: a virtual one loses its power, a real one gets its settings back.
        """
        if self._bench is None:
            return
        if open_run() is None:
            self.shut()
            return
        at_end_of_run(self.shut)
        self._left = True
        stays = ""
        try:
            self._until_left.close()
        except BaseException as error:
            stays = str(error) or type(error).__name__
            raise
        finally:
            self._note_instruments()
            for kind, facts in list(self._prepared.items()):
                if changed := [stays] if stays else self._changed(kind, facts):
                    self._start_afresh(kind, changed)

    def _start_afresh(self, kind: str, changed: Sequence[str]) -> None:
        """Have a provisioned target begin anew with the next suite, and say what the last has changed."""
        node = self.target(kind).node
        say(f"{node}: the suite has left it changed ({', '.join(changed)}): it starts afresh")
        if node in self.bench.virtual.powered_guests():
            self._forget(node)
            self.bench.power_off(node)
        else:
            self.restore_target(kind)

    def _changed(self, kind: str, facts: Mapping[str, Any]) -> Sequence[str]:
        """Return which facts of a provisioned target are not as they were, or why they cannot be read."""
        try:
            return differing_facts(json.dumps(facts), json.dumps(self._provisioned[kind].facts()))
        except BenchError as error:
            return (str(error),)

    def shut(self) -> None:
        """Give targets their settings back, power off, undo every change of this machine, release the bench.

        What machines have said on their serial consoles is kept in the run folder, a file for each boot:
        `evidence/consoles/NODE/boot-1.log`, ….
        """
        with ExitStack() as last:
            last.callback(self._stack.close)
            last.callback(self._forget_all)
            last.callback(self._keep_consoles)
            virtual = self._bench.virtual.powered_guests() if self._bench is not None else set[str]()
            for kind in [kind for kind in self._provisioned if self.target(kind).node not in virtual]:
                last.callback(self.restore_target, kind)
            last.callback(self._until_left.close)

    def _forget_all(self) -> None:
        self._bench = None
        self._left = False
        self._provisioned.clear()
        self._prepared.clear()

    def _keep_consoles(self) -> None:
        run = open_run()
        if self._bench is None or run is None:
            return
        self._note_instruments()
        for name in self._bench.spec.labgrid_targets:
            said = self._bench.consoles(name)
            folder = run.evidence_folder("consoles", name) if said else run.path
            kept = len(list(folder.glob("boot-*.log")))
            for number, text in enumerate(said, kept + 1):
                (folder / f"boot-{number}.log").write_text(text, encoding="utf-8")
