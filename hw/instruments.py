# SPDX-License-Identifier: Apache-2.0
"""Oscilloscopes and edge pins of an open bench, by their names in the bench file."""

from __future__ import annotations

from pathlib import Path

from hw.bench import BenchSpec
from hw.edges import INPUT_ROLES, EdgeRole
from hw.errors import CapabilityError, ConfigError
from hw.oscilloscopes import OscilloscopeSpec
from hw.protocols import Oscilloscope
from hw.virtual.scope_process import ScopeProcess


class Oscilloscopes:
    """The oscilloscopes of a bench; virtual ones are started when they are first asked for."""

    def __init__(self, spec: BenchSpec, folder: Path) -> None:
        """Describe them; nothing is started.

        Args:
            spec: The bench.
            folder: Where virtual ones say what goes wrong.
        """
        self._bench = spec
        self._folder = folder
        self._processes: dict[str, ScopeProcess] = {}
        self.identities: dict[str, str] = {}
        """Replies to `*IDN?` of those that were opened, by name."""

    def connect(self, name: str) -> Oscilloscope:
        """Return an oscilloscope, connected; an empty name is that of the first one.

        Raises:
            CapabilityError: The bench has none, or none of that name.
            BenchError: Nobody answers there, or another instrument, or it cannot be started.
        """
        spec = self._running(name)
        from hw.drivers.oscilloscope import connect  # PyVISA takes half a second

        opened = connect(spec)
        self.identities[spec.name] = str(opened.identity)
        return opened

    def edge_port(self, name: str) -> tuple[str, int] | None:
        """Return address and port where a virtual one takes edges; None: a real instrument.

        Raises:
            CapabilityError: The bench has none, or none of that name.
            BenchError: It cannot be started.
        """
        virtual = self._running(name).virtual
        return None if virtual is None else (virtual.address, virtual.edge_port)

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
        """End those that were started."""
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
