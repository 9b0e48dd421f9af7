# SPDX-License-Identifier: Apache-2.0
"""The guests of an open bench as work of this machine: where they run, and when they do not run at all."""

from __future__ import annotations

import time
from collections.abc import Container
from typing import Any

from hw.drivers import virtual_guest
from hw.drivers.labgrid_api import power_driver
from hw.errors import CapabilityError
from hw.virtual.qemu import ThreadPlacement


class Guests:
    """Places and pauses what this machine emulates; machines of their own are left alone."""

    def __init__(self, environment: Any, labgrid_targets: Container[str]) -> None:
        """Take labgrid's environment, and the names of its targets: guests and real machines."""
        self._environment = environment
        self._labgrid_targets = labgrid_targets
        self._gave_way: dict[str, tuple[list[int], int]] = {}

    def give_way(self, name: str, other: str) -> None:
        """Let a guest run on any CPU of this machine, but not before another one; until `take_back_way`."""
        if name not in self._labgrid_targets or other not in self._labgrid_targets:
            return
        guest, preferred = (
            virtual_guest.guest_of(self._environment.get_target(each)) for each in (name, other)
        )
        if guest is not None and preferred is not None:
            self._gave_way.setdefault(name, (guest.vcpu_cpus, guest.vcpu_priority))
            self._place(name, [], max(0, preferred.vcpu_priority - 1))

    def take_back_way(self, name: str) -> None:
        """Let a guest run again where its bench file says; harmless where it gave no way."""
        if name in self._gave_way:
            self._place(name, *self._gave_way.pop(name))

    def emulating_threads(self, name: str) -> dict[str, int]:
        """Return the ids of this machine's threads that emulate a guest by name; empty: a real machine."""
        power = self._guest_power(name)
        return {} if power is None else power.qemu.emulating_threads()

    def pause(self, name: str, duration_s: float) -> None:
        """Stop a guest, with all its clocks, for so long; return when it goes on.

        Raises:
            CapabilityError: It is no guest of this machine.
            BenchError: Its emulator refuses.
        """
        power = self._guest_power(name)
        if power is None:
            raise CapabilityError(f"{name}: no guest of this machine, which alone could be paused")
        power.qemu.command("stop")
        try:
            time.sleep(duration_s)
        finally:
            power.qemu.command("cont")

    def _guest_power(self, name: str) -> virtual_guest.VirtualGuestDriver | None:
        """Return the power driver of a guest; None: a real machine, or a part of this one."""
        if name not in self._labgrid_targets:
            return None
        power = power_driver(self._environment.get_target(name))
        return power if isinstance(power, virtual_guest.VirtualGuestDriver) else None

    def _place(self, name: str, vcpu_cpus: list[int], vcpu_priority: int) -> None:
        guest = virtual_guest.guest_of(self._environment.get_target(name))
        guest.vcpu_cpus, guest.vcpu_priority = vcpu_cpus, vcpu_priority
        power = self._guest_power(name)
        if power is not None and power.powered:
            power.qemu.place_vcpus(ThreadPlacement(vcpu_priority, tuple(vcpu_cpus)))
