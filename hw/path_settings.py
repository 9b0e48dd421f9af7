# SPDX-License-Identifier: Apache-2.0
"""What the router of a bench does to the packets of a path: as asked for, and as read back."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from enum import StrEnum

from hw.errors import ConfigError

DELAY_MAX_US = 10_000_000
RATE_MAX_KBPS = 100_000_000
LIMIT_MAX_PACKETS = 10_000_000
SEED_MAX = 2**64 - 1
FRAME_BYTES = 1514
"""Of the largest frame of an MTU of 1500: how many of them a queue must hold follows from rate and delay."""
QUEUE_PACKETS = 100_000
"""Unless asked otherwise: the kernel's default of 1000 loses packets of the larger bursts."""


class Distribution(StrEnum):
    """How a delay scatters: netem's own, and the tables that iproute2 brings."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    PARETO = "pareto"
    PARETO_NORMAL = "paretonormal"


@dataclass(frozen=True)
class RandomLoss:
    """Loss of each packet by chance."""

    percent: float
    correlation_percent: float = 0.0
    """How much the chance of a packet depends on the one before; with it netem loses fewer than asked."""

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        _check_percents("loss.", self)


@dataclass(frozen=True)
class GilbertElliott:
    """Loss in bursts: a path that changes between a good and a bad state (tc-netem(8), `loss gemodel`)."""

    p_percent: float
    """From good to bad, by packet."""
    r_percent: float
    """From bad to good."""
    bad_loss_percent: float = 100.0
    """Lost in the bad state: 1-h."""
    good_loss_percent: float = 0.0
    """Lost in the good state: 1-k."""

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        _check_percents("loss.", self)


@dataclass(frozen=True)
class PathSettings:
    """What happens to packets of a path in one direction; as it is by default: nothing."""

    delay_us: float = 0
    jitter_us: float = 0
    """Spread of the delay: of a uniform one half its width, of the others their table's unit."""
    jitter_distribution: Distribution = Distribution.UNIFORM
    jitter_correlation_percent: float = 0.0
    loss: RandomLoss | GilbertElliott | None = None
    duplicate_percent: float = 0.0
    duplicate_correlation_percent: float = 0.0
    reorder_percent: float = 0.0
    """Packets that are sent at once, before those that wait: needs a delay."""
    reorder_correlation_percent: float = 0.0
    rate_kbps: float | None = None
    """None: that of the link."""
    limit_packets: int | None = None
    """Packets that the queue holds; None: as many as rate and delay need, at least QUEUE_PACKETS."""
    seed: int | None = None
    """With it the same packets are lost again; only newer kernels and tools have it."""

    def __post_init__(self) -> None:
        """Refuse what is out of range, and a queue that rate and delay overflow.

        Raises:
            ConfigError: Names field, range, and what was found.
        """
        _check("delay_us", self.delay_us, 0, DELAY_MAX_US)
        _check("jitter_us", self.jitter_us, 0, self.delay_us)
        _check_percents("", self)
        if self.jitter_distribution is not Distribution.UNIFORM and not self.jitter_us:
            high = f"{self.delay_us:.15g} of {self.jitter_distribution}"
            raise ConfigError(f"jitter_us: must be in 1..{high}, found 0")
        if self.reorder_percent and not self.delay_us:
            raise ConfigError(f"delay_us: must be in 1..{DELAY_MAX_US} where packets are reordered, found 0")
        if self.rate_kbps is not None:
            _check("rate_kbps", self.rate_kbps, 1, RATE_MAX_KBPS)
        if self.seed is not None:
            _check("seed", self.seed, 0, SEED_MAX)
        if self.limit_packets is not None:
            _check("limit_packets", self.limit_packets, self.needed_packets, LIMIT_MAX_PACKETS)

    @property
    def needed_packets(self) -> int:
        """Return how many of the largest frames are under way: rate times delay and jitter."""
        if self.rate_kbps is None:
            return 1
        bits = self.rate_kbps / 1000 * (self.delay_us + self.jitter_us)
        return int(bits / (8 * FRAME_BYTES)) + 1

    @property
    def queue_packets(self) -> int:
        """Return how many packets the queue is given."""
        return self.limit_packets or max(QUEUE_PACKETS, self.needed_packets)


@dataclass(frozen=True)
class Flow:
    """IPv4 packets that alone are treated; what is empty or None may be any.

    Of a datagram in fragments the first alone has its ports: none of them belongs to a flow with ports.
    """

    protocol: str = ""
    """`udp`, `tcp`."""
    source: str = ""
    destination: str = ""
    source_port: int | None = None
    destination_port: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is out of range.

        Raises:
            ConfigError: Names field, range, and what was found.
        """
        if self.protocol not in ("", "udp", "tcp"):
            raise ConfigError(f"flow.protocol: must be one of udp, tcp, found {self.protocol!r}")
        for name, address in (("source", self.source), ("destination", self.destination)):
            if not address:
                continue
            try:
                ipaddress.IPv4Address(address)
            except ValueError as error:
                raise ConfigError(f"flow.{name}: must be an IPv4 address, found {address!r}") from error
        for name, port in (("source_port", self.source_port), ("destination_port", self.destination_port)):
            if port is None:
                continue
            _check(f"flow.{name}", port, 1, 65535)
            if not self.protocol:
                raise ConfigError(f"flow.protocol: must be one of udp, tcp with {name}, found ''")
        if not any((self.protocol, self.source, self.destination)):
            raise ConfigError("flow: must name a protocol or an address, found neither")


@dataclass(frozen=True)
class RealisedPath:
    """What the router says that it does, read back from its kernel."""

    node: str
    interface: str
    """On whose way out packets are treated."""
    settings: PathSettings
    """Rounded as the kernel does it; its limit is that of the queue."""
    flows: tuple[Flow, ...]
    """Empty: all packets."""


def _check(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        low, high, value = (int(each) if each == each // 1 else each for each in (low, high, value))
        raise ConfigError(f"{field}: must be in {low}..{high}, found {value}")


def _check_percents(prefix: str, settings: object) -> None:
    for name, value in vars(settings).items():
        if name.endswith("_percent") or name == "percent":
            _check(prefix + name, value, 0, 100)
