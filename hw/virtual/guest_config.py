# SPDX-License-Identifier: Apache-2.0
"""What one guest is told for one run: names, addresses, keys, the error of its clock.

It reaches the guest as a second archive behind the image's initrd (`/run.d`), so that images never change and
hold no key. The receiving end is `targets/linux-rt/image/boot.sh`.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.virtual import cpio

INTERFACE_NAME = re.compile(r"^[a-z][a-z0-9-]{0,14}$")
HOST_NAME = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
MAC = re.compile(r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$")
MTU_RANGE = range(576, 65536)
STEP_MAX_NS = 400 * 86_400 * 1_000_000_000
FREQUENCY_MAX_PPB = 500_000
TAI_UTC_RANGE_S = range(1001)


@dataclass(frozen=True)
class GuestInterface:
    """One network card of a guest.

    Attributes:
        mac: Its address on the wire, lower case with colons, as given to QEMU: how the guest knows which card
            is meant.
        name: Name that the guest gives it; not `lo`, and nothing that begins with `eth` (the kernel's own).
        address: Address with prefix, such as `10.77.0.100/24`, or None for a port of a bridge.
        mtu: Largest packet in bytes, 576..65535.
    """

    mac: str
    name: str
    address: str | None = None
    mtu: int = 1500


@dataclass(frozen=True)
class GuestBridge:
    """A bridge over cards of the guest, without spanning tree, forwarding at once.

    Attributes:
        name: Name of the bridge.
        ports: Names of the interfaces that it joins.
    """

    name: str
    ports: tuple[str, ...]


@dataclass(frozen=True)
class GuestClock:
    """The error that the guest's CLOCK_REALTIME gets at boot.

    Attributes:
        step_ns: Added to the clock, positive: the guest is ahead. The clock starts from QEMU's real-time
            clock, whose resolution is one second: the whole offset to the host is known only by measuring it.
        frequency_ppb: Frequency correction, positive: the guest runs fast; -500,000..500,000. The frequency
            that the guest's kernel found for its time-stamp counter adds its own error of some ppm.
        tai_utc_s: TAI - UTC that the guest's kernel is told.
    """

    step_ns: int = 0
    frequency_ppb: int = 0
    tai_utc_s: int = 37


@dataclass(frozen=True)
class GuestConfig:
    """All that a guest is told for one run.

    Attributes:
        hostname: Its name, one DNS label.
        interfaces: Its network cards; others stay down.
        ssh_address: The one address that sshd listens on.
        authorized_keys: Public keys that may log in as root, one line each.
        host_key: sshd's private ed25519 key in OpenSSH's format, made for the run.
        bridges: Bridges, made after all interfaces are up.
        clock: Error of its clock.
    """

    hostname: str
    interfaces: tuple[GuestInterface, ...]
    ssh_address: str
    authorized_keys: tuple[str, ...]
    host_key: str
    bridges: tuple[GuestBridge, ...] = ()
    clock: GuestClock = GuestClock()

    def __post_init__(self) -> None:
        """Refuse what the guest would refuse only after it has booted.

        Raises:
            ConfigError: A value is out of its range; names guest, field and range.
        """
        self._require(HOST_NAME.match(self.hostname), "hostname", self.hostname, "one DNS label")
        for interface in self.interfaces:
            self._check_interface(interface)
        self._check_names()
        self._check_clock()
        self._check_address("ssh_address", self.ssh_address)
        own = {i.address.split("/")[0] for i in self.interfaces if i.address is not None}
        self._require(
            self.ssh_address in own, "ssh_address", self.ssh_address, "an address of its interfaces"
        )
        one_line_keys = self.authorized_keys and all(key and "\n" not in key for key in self.authorized_keys)
        self._require(one_line_keys, "authorized_keys", "list", "one or more public keys of one line each")
        is_key = self.host_key.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
        self._require(is_key, "host_key", "text", "an OpenSSH private key")  # never quoted in an error

    def _require(self, condition: object, field: str, found: object, wanted: str) -> None:
        if not condition:
            raise ConfigError(f"guest {self.hostname!r}: {field}: must be {wanted}, found {found!r}")

    def _check_interface(self, interface: GuestInterface) -> None:
        reserved = interface.name == "lo" or interface.name.startswith("eth")
        usable = INTERFACE_NAME.match(interface.name) and not reserved
        self._require(usable, "interface name", interface.name, "1..15 of a-z 0-9 -, not lo, not eth…")
        self._require(MAC.match(interface.mac), "interface mac", interface.mac, "like 52:54:00:00:00:01")
        self._require(interface.mtu in MTU_RANGE, "interface mtu", interface.mtu, "576..65535 bytes")
        if interface.address is not None:
            self._require("/" in interface.address, "interface address", interface.address, "ADDRESS/PREFIX")
            self._check_network("interface address", interface.address)

    def _check_names(self) -> None:
        names = [i.name for i in self.interfaces] + [b.name for b in self.bridges]
        self._require(len(set(names)) == len(names), "interface names", names, "different")
        macs = [i.mac for i in self.interfaces]
        self._require(len(set(macs)) == len(macs), "interface macs", macs, "different")
        ports = {i.name for i in self.interfaces if i.address is None}
        for bridge in self.bridges:
            self._require(INTERFACE_NAME.match(bridge.name), "bridge name", bridge.name, "1..15 of a-z 0-9 -")
            known = bridge.ports and set(bridge.ports) <= ports
            self._require(known, f"bridge {bridge.name} ports", bridge.ports, "interfaces without an address")

    def _check_clock(self) -> None:
        clock = self.clock
        self._require(abs(clock.step_ns) <= STEP_MAX_NS, "clock step_ns", clock.step_ns, "within 400 days")
        in_range = abs(clock.frequency_ppb) <= FREQUENCY_MAX_PPB
        self._require(in_range, "clock frequency_ppb", clock.frequency_ppb, "within ±500000")
        self._require(clock.tai_utc_s in TAI_UTC_RANGE_S, "clock tai_utc_s", clock.tai_utc_s, "0..1000")

    def _check_address(self, field: str, text: str) -> None:
        try:
            ipaddress.ip_address(text)
        except ValueError as error:
            raise ConfigError(f"guest {self.hostname!r}: {field}: {error}") from error

    def _check_network(self, field: str, text: str) -> None:
        try:
            ipaddress.ip_interface(text)
        except ValueError as error:
            raise ConfigError(f"guest {self.hostname!r}: {field}: {error}") from error

    def lines(self) -> str:
        """Return the configuration in the words that `boot.sh` reads, in the order in which it is to act."""
        clock = self.clock
        rows = [f"hostname {self.hostname}", f"clock {clock.step_ns} {clock.frequency_ppb} {clock.tai_utc_s}"]
        rows += [f"interface {i.mac} {i.name} {i.mtu} {i.address or '-'}" for i in self.interfaces]
        rows += [f"bridge {bridge.name} {' '.join(bridge.ports)}" for bridge in self.bridges]
        rows.append(f"ssh {self.ssh_address}")
        return "\n".join(rows) + "\n"


def write_run_config(path: Path, initrd: Path, config: GuestConfig) -> Path:
    """Write the initrd of one guest of one run: the image's, followed by the run's configuration.

    Args:
        path: File to write; readable by its owner alone, for it holds the guest's host key.
        initrd: The image's initrd (`ImageSet.initrd`).
        config: What the guest is told.

    Returns:
        `path`, for QEMU's `-initrd`.
    """
    keys = "".join(f"{key}\n" for key in config.authorized_keys)
    host_key = config.host_key if config.host_key.endswith("\n") else config.host_key + "\n"
    archive = cpio.archive(
        [
            cpio.directory("run.d", 0o700),
            cpio.file("run.d/config", config.lines().encode()),
            cpio.file("run.d/authorized_keys", keys.encode(), 0o600),
            cpio.file("run.d/ssh_host_ed25519_key", host_key.encode(), 0o600),
        ]
    )
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(initrd.read_bytes() + archive)
    return path
