# SPDX-License-Identifier: Apache-2.0
"""Oscilloscopes and edge pins of an open bench, by their names in the bench file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hw.bench import BenchSpec
from hw.drivers.edges import EdgePin, ToolEdgeCapture, ToolTimedOutput
from hw.edges import INPUT_ROLES, EdgeRole, pin_clock
from hw.errors import CapabilityError, ConfigError
from hw.instrument_facts import instrument_facts
from hw.open_bench import Nodes
from hw.oscilloscopes import OscilloscopeSpec
from hw.protocols import EdgeCapture, Oscilloscope, TimedOutput
from hw.virtual.scope_process import ScopeProcess


class BenchInstruments:
    """The instruments of a bench; virtual oscilloscopes are started when they are first asked for."""

    def __init__(self, spec: BenchSpec, folder: Path, nodes: Nodes) -> None:
        """Describe them; nothing is started.

        Args:
            spec: The bench.
            folder: Where virtual oscilloscopes say what goes wrong.
            nodes: Those that have the pins.
        """
        self._bench = spec
        self._folder = folder
        self._nodes = nodes
        self._processes: dict[str, ScopeProcess] = {}
        self._identities: dict[str, str] = {}

    def oscilloscope(self, name: str = "") -> Oscilloscope:
        """Return an oscilloscope, connected; whoever asks closes it.

        Args:
            name: Its name in the bench file; empty: the first one.

        Raises:
            CapabilityError: The bench has none, or none of that name.
            BenchError: Nobody answers there, or another instrument, or it cannot be started.
        """
        spec = self._running(name)
        from hw.drivers.oscilloscope import connect  # PyVISA takes half a second

        opened = connect(spec)
        self._identities[spec.name] = str(opened.identity)
        return opened

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return the facts of each instrument by name; identities of those opened so far."""
        return instrument_facts(self._bench, self._identities)

    def edge_port(self, scope_name: str = "") -> tuple[str, int] | None:
        """Return address and port where a virtual oscilloscope takes edges; None: a real instrument.

        Args:
            scope_name: Its name in the bench file; empty: the first one.

        Raises:
            CapabilityError: The bench has none, or none of that name.
            BenchError: It cannot be started.
        """
        virtual = self._running(scope_name).virtual
        return None if virtual is None else (virtual.address, virtual.edge_port)

    def timed_output(self, target: str, role: EdgeRole | str, folder: Path | None = None) -> TimedOutput:
        """Return an output pin of a target; its node must be on.

        Args:
            target: Kind of the target in the bench file.
            role: `reference`, `timecard_reference`, `timed` or `software`.
            folder: Where the tool's answers go; None: the bench's own, which goes when it closes.

        Raises:
            CapabilityError: The target has no such pin.
            BenchError: Its node is off.
        """
        return ToolTimedOutput(self._edge_pin(target, role, folder, is_input=False))

    def edge_capture(self, target: str, role: EdgeRole | str, folder: Path | None = None) -> EdgeCapture:
        """Return an input pin of a target; its node must be on.

        Args:
            target: Kind of the target in the bench file.
            role: `latch` or `capture`.
            folder: Where the tool's answers go; None: the bench's own, which goes when it closes.

        Raises:
            CapabilityError: The target has no such pin.
            BenchError: Its node is off.
        """
        return ToolEdgeCapture(self._edge_pin(target, role, folder, is_input=True))

    def _edge_pin(
        self, target_kind: str, role: EdgeRole | str, folder: Path | None, is_input: bool
    ) -> EdgePin:
        pin = find_pin(self._bench, target_kind, role, is_input)
        target = self._bench.targets[target_kind]
        return EdgePin(
            node=self._nodes.node(target.node),
            tool=self._nodes.tool(target.node, "bw-edge"),
            pin=pin,
            clock=pin_clock(pin, target.ptp_clock, is_input=is_input),
            stem=(folder or self._folder / "edges") / f"edge-{role.replace('_', '-')}",
        )

    def _running(self, name: str) -> OscilloscopeSpec:
        specs = self._bench.oscilloscopes
        spec = specs.get(name) if name else next(iter(specs.values()), None)
        if spec is None:
            raise CapabilityError(
                f"bench {self._bench.name}: no oscilloscope {name or 'at all'}; add it to"
                f" benchwright.oscilloscopes of {self._bench.path}"
            )
        if spec.virtual is not None and spec.name not in self._processes:
            stem = self._folder / f"oscilloscope-{spec.name}"
            self._processes[spec.name] = ScopeProcess(spec.name, spec.virtual, stem)
        return spec

    def close(self) -> None:
        """End the virtual oscilloscopes that were started."""
        while self._processes:
            self._processes.popitem()[1].end()


def find_pin(bench: BenchSpec, target_kind: str, role_name: EdgeRole | str, is_input: bool) -> str:
    """Return the pin that a target has for a role, as `bw-edge` names it.

    Raises:
        ConfigError: No such target, or no such role of an input or output.
        CapabilityError: The target has no such pin.
    """
    target = bench.targets.get(target_kind)
    if target is None:
        raise ConfigError(f"{bench.path}: no target {target_kind!r}; there are: {', '.join(bench.targets)}")
    allowed = [role for role in EdgeRole if (role in INPUT_ROLES) is is_input]
    if role_name not in allowed:
        kind = "an input" if is_input else "an output"
        raise ConfigError(f"edge role of {kind}: must be one of {', '.join(allowed)}, found {role_name!r}")
    role = EdgeRole(role_name)
    pin = target.edges.pin(role) if target.edges is not None else None
    if pin is None:
        raise CapabilityError(
            f"bench {bench.name}: target {target_kind} has no pin {role.value}; add it to"
            f" benchwright.targets.{target_kind}.edges of {bench.path}"
        )
    return pin
