# SPDX-License-Identifier: Apache-2.0
"""A target that is played, and its bench, for trials of provisioning: its faults are attributes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.errors import BenchError, CapabilityError
from hw.protocols import READY_S
from resources.provisioning import procedure

Json = dict[str, Any]


class PlayedTarget:
    """A target with three settings, an undo file, and power; its facts are as `facts` writes them."""

    def __init__(self) -> None:
        self.settings = {"governor": "powersave", "irq_31": "other:0", "rmem_max": "212992"}
        self.untouched = dict(self.settings)
        self.undo: dict[str, str] = {}
        self.starts = 0
        self.powered = True
        self.unstable: tuple[str, ...] = ()
        """Settings that a second `apply` sets again."""
        self.forgotten: tuple[str, ...] = ()
        """Settings that `restore` leaves."""
        self.keeps = False
        """Whether settings and undo file outlive a power cut."""
        self.worn: Json = {}
        """Facts that a start changes."""
        self.is_reordered = False
        """Whether it writes its facts in another order after they were given back."""
        self.apply_s = 0.0

    def check_power(self) -> None:
        """Raise what a node without power raises."""
        if not self.powered:
            raise BenchError("target: has lost its power")

    def apply(self, evidence: Path) -> list[Json]:
        """Set what is not set yet, and write what was done as the script does."""
        time.sleep(self.apply_s)
        self.check_power()
        found = dict(self.settings)
        again = {name for name, value in self.settings.items() if value == self.untouched[name]}
        changed = again | {*self.unstable}
        self.undo = {name: self.settings[name] for name in changed} | self.undo
        self.settings = {name: f"{value}, set" for name, value in self.untouched.items()}
        items: list[Json] = [
            {
                "type": "item", "item": name, "status": "ok", "ok": True,
                "wanted": f"{self.untouched[name]}, set", "found": value, "changed": name in changed,
                "why": "a test", "note": "",
            }
            for name, value in found.items()
        ]  # fmt: skip
        counts = {"items": len(items), "ok": len(items), "wrong": 0, "not_applicable": 0}
        counts["changed"] = len(changed)
        lines = [*items, {"type": "summary", "verb": "apply", **counts}]
        evidence.write_text("".join(json.dumps(each) + "\n" for each in lines))
        return items

    def restore(self) -> int:
        """Give back what the undo file has."""
        self.check_power()
        given_back = {name: old for name, old in self.undo.items() if name not in self.forgotten}
        self.settings |= given_back
        self.undo.clear()
        return len(given_back)

    def facts_text(self) -> str:
        """Return its facts; some of them are other ones after each start."""
        self.check_power()
        facts: Json = {
            "type": "facts",
            "memory_bytes": 1_014_566_912 - 4096 * self.starts,
            "nics": [{"name": "eth0", "queues": 1, "flags": []}],
            "interrupts": [{"irq": 31 + self.starts}],
            "settings": self.settings,
        }
        facts |= self.worn if self.starts else {}
        if self.is_reordered and self.settings == self.untouched:
            facts = dict(reversed(facts.items()))
        return json.dumps(facts)

    def start(self) -> None:
        """Boot: what lies in memory is gone, and an interrupt has another number."""
        self.powered = True
        self.starts += 1
        if not self.keeps:
            settings = {name: value for name, value in self.untouched.items() if "irq" not in name}
            self.untouched = settings | {f"irq_{31 + self.starts}": "other:0"}
            self.settings = dict(self.untouched)
            self.undo.clear()


class PlayedBench:
    """The bench of a played target, and the one tool that runs there."""

    name = "bw-traffic witness on target"

    def __init__(self, target: PlayedTarget) -> None:
        self.target = target
        self.notices = True
        self.switchable = True
        self.stopped = 0
        self.spec = SimpleNamespace(node="target", kind="linux-rt")

    def node(self, _name: str) -> Any:
        """Return a node whose one tool is this."""

        def start(_argv: list[str], _stem: Path) -> PlayedBench:
            return self

        return SimpleNamespace(start=start)

    def tool(self, _name: str) -> str:
        """Return the tool."""
        return "bw-traffic"

    def wait_ready(self, _timeout_s: float = READY_S) -> None:
        """Wait for the tool."""
        self.target.check_power()

    def wait(self, _timeout_s: float) -> int:
        """Wait for its end, which a bench that notices sees at once."""
        if self.notices:
            self.target.check_power()
        return 0

    def stop(self) -> None:
        """Count that it was stopped."""
        self.stopped += 1

    def cut_power(self, name: str) -> None:
        """Take its power, where that can be switched."""
        if not self.switchable:
            raise CapabilityError(f"{name}: its power cannot be switched")
        self.target.powered = False

    restart = cut_power

    def power_on(self, _names: list[str]) -> None:
        """Start it."""
        self.target.start()


def played_target(monkeypatch: pytest.MonkeyPatch) -> PlayedTarget:
    """Return a target without faults, that every provisioner works on."""
    played = PlayedTarget()

    def provisioner(_node: Any, _target: Any) -> PlayedTarget:
        return played

    monkeypatch.setattr(procedure, "Provisioner", provisioner)
    return played


def trials_of(target: PlayedTarget, folder: Path) -> tuple[procedure.ProvisioningTrials, PlayedBench]:
    """Return trials of a target, and its bench."""
    bench: Any = PlayedBench(target)
    said: list[str] = []
    return procedure.ProvisioningTrials(bench, bench.spec, folder, said.append), bench
