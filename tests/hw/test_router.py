# SPDX-License-Identifier: Apache-2.0
"""Paths of a bench that its router can be on, and how the router is set: its node plays its part here."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from hw.bench import BenchSpec, load_bench
from hw.drivers.router import NetemRouter
from hw.errors import BenchError, CapabilityError, ConfigError
from hw.open_bench import PoweredNodes
from hw.path_settings import Flow, PathSettings
from hw.paths import producer_path, producer_paths, router_of, time_server_path
from hw.protocols import CommandResult
from hw.router import PathDirection
from tests.hw.test_netem import FILTERS, FLOWS, answer

BENCHES = Path(__file__).resolve().parents[2] / "hw" / "benches"
VIRTUAL, REAL = (load_bench(BENCHES / f"{name}.yaml") for name in ("virtual", "example-hardware"))
DELAY = {"delay": {"delay": 0.005, "jitter": 0, "correlation": 0}}
THERE, BACK = PathDirection("a", "impair"), PathDirection("a", "producers-a")

SEPARATE = """Features for enp1s0:
tcp-segmentation-offload: off
\ttx-tcp-segmentation: off
generic-segmentation-offload: off
generic-receive-offload: off
large-receive-offload: off [fixed]
rx-gro-hw: off
"""


class Kernel:
    """The router's node: it says what it is told to say, and notes what it is asked."""

    def __init__(self, says: str, filters: str = "", exit_code: int = 0, offloads: str = SEPARATE) -> None:
        self.says, self.filters, self.exit_code, self.offloads = says, filters, exit_code, offloads
        self.asked_offloads: list[str] = []
        self.ran: list[str] = []

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Answer."""
        del timeout_s, check
        if "ethtool" in argv[-1]:
            self.asked_offloads.append(argv[-1])
            known = bool(self.offloads)
            return CommandResult(tuple(argv), 0 if known else 127, self.offloads, "ethtool: not found")
        self.ran.append(argv[2] if argv[0] == "sh" else shlex.join(argv))
        if argv[1] == "filter":
            return CommandResult(tuple(argv), 0, self.filters, "")
        return CommandResult(tuple(argv), self.exit_code, self.says, self.says)


@dataclass(frozen=True)
class OneNode:
    """A bench with the router's node alone."""

    spec: BenchSpec
    kernel: Kernel

    def power_on(self, names: Iterable[str]) -> None:
        """Be on."""
        assert [*names] == ["impair"]

    def node(self, name: str) -> Kernel:
        """Return the node."""
        assert name == "impair"
        return self.kernel


def router_on(kernel: Kernel, spec: BenchSpec = REAL) -> NetemRouter:
    """Return the router of a bench of real machines whose node is this one."""
    return NetemRouter(cast("PoweredNodes", OneNode(spec, kernel)), router_of(spec))


def on_real(text: str) -> str:
    """Return an answer of the virtual router as one of the real one."""
    return text.replace("test0", "enp1s0").replace("test1", "enp2s0")


def older(tmp_path: Path, name: str, section: dict[str, Any], *, topology: bool) -> BenchSpec:
    """Return a bench as a file of 0.2.1 describes it."""
    document = yaml.safe_load((BENCHES / f"{name}.yaml").read_text())
    document["benchwright"]["topology"].pop("router")
    if not topology:
        del document["benchwright"]["topology"]
    document["benchwright"]["impairment"] = section
    file = tmp_path / "bench.yaml"
    file.write_text(yaml.safe_dump(document))
    (tmp_path / "keys").mkdir(exist_ok=True)
    return load_bench(file)


def test_packets_of_a_producer_take_a_path_of_the_router() -> None:
    assert producer_path(VIRTUAL, 3, "linux-rt") == PathDirection("p03", "switch")
    assert time_server_path(VIRTUAL, "linux-rt") == PathDirection("grandmaster", "switch")
    assert producer_paths(REAL, "linux-rt") == dict.fromkeys(range(1, 7), THERE)
    assert time_server_path(REAL, "linux-rt") == THERE
    router = router_of(REAL)
    assert router.path("linux-rt", "producers-a", REAL.topology) == PathDirection("impaired", "impair")
    assert router.interface(THERE) == router.interface(PathDirection("impaired", "lab")) == "enp2s0"
    assert router.interface(BACK) == router.interface(PathDirection("impaired", "impair")) == "enp1s0"


def test_what_no_router_is_on_the_way_of_is_refused() -> None:
    with pytest.raises(CapabilityError, match="no impairment node on the link of producer 7"):
        producer_path(REAL, 7, "linux-rt")
    with pytest.raises(CapabilityError, match="no impairment node on the link of producer 655"):
        producer_path(REAL, 655, "linux-rt")
    with pytest.raises(CapabilityError, match="no impairment node on the link of the time server"):
        time_server_path(replace(VIRTUAL, time_server=None), "linux-rt")
    with pytest.raises(
        CapabilityError, match=r"add benchwright\.topology\.router to .*native\.yaml"
    ) as caught:
        producer_path(load_bench(BENCHES / "native.yaml"), 3, "linux")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("topology", [True, False])
def test_an_older_file_has_the_same_router_towards_the_target(tmp_path: Path, topology: bool) -> None:
    section: dict[str, Any] = {"node": "impair", "interface": "test1"}
    virtual = older(tmp_path, "virtual", section, topology=topology)
    for path in (producer_path(virtual, 3, "linux-rt"), time_server_path(virtual, "linux-rt")):
        assert path.towards == "switch"
        assert router_of(virtual).interface(path) == "test1"
    section = {"node": "impair", "interface": "enp2s0", "producers": [1, 2, 3, 4, 5, 6]}
    real = older(tmp_path, "example-hardware", section, topology=topology)
    assert set(producer_paths(real, "linux-rt")) == set(range(1, 7))
    assert router_of(real).interface(producer_path(real, 1, "linux-rt")) == "enp2s0"
    with pytest.raises(CapabilityError, match=r"put benchwright\.topology\.router in the place of"):
        router_of(real).interface(PathDirection(producer_path(real, 1, "linux-rt").link, "producers-a"))


def test_the_time_server_of_an_older_file_is_not_delayed_unasked(tmp_path: Path) -> None:
    section: dict[str, Any] = {"node": "impair", "interface": "enp2s0", "producers": [7]}
    real = older(tmp_path, "example-hardware", section, topology=False)
    with pytest.raises(CapabilityError, match="on the link of the time server"):
        time_server_path(real, "linux-rt")
    real = older(tmp_path, "example-hardware", {**section, "time_server": True}, topology=False)
    assert router_of(real).interface(time_server_path(real, "linux-rt")) == "enp2s0"


def test_what_was_set_is_read_back() -> None:
    kernel = Kernel(on_real(answer(DELAY)))
    realised = router_on(kernel).configure([THERE], PathSettings(delay_us=5_000))
    assert (realised.node, realised.interface, realised.flows) == ("impair", "enp2s0", ())
    assert realised.settings.delay_us == pytest.approx(5_000)
    assert realised.settings.limit_packets == 100_000
    (script,) = kernel.ran
    assert script.startswith("tc qdisc replace dev enp2s0 root ")
    assert script.endswith(" && tc -j qdisc show")


def test_both_directions_have_their_own_interface() -> None:
    kernel = Kernel(on_real(answer(DELAY)).replace("enp2s0", "enp1s0"))
    assert router_on(kernel).configure([BACK], PathSettings(delay_us=5_000)).interface == "enp1s0"
    with pytest.raises(ConfigError, match="all in one direction"):
        router_on(kernel).configure([THERE, BACK], PathSettings())
    with pytest.raises(ConfigError, match="at least one"):
        router_on(kernel).configure([], PathSettings())
    for path, told in (
        (PathDirection("b", "lab"), r"path\.link: must be one of a, impaired, found 'b'"),
        (PathDirection("a", "lab"), r"path\.towards: must be one of producers-a, impair, found 'lab'"),
    ):
        with pytest.raises(ConfigError, match=told):
            router_on(kernel).configure([path], PathSettings())


@pytest.mark.parametrize(
    ("kernel", "settings", "error", "told"),
    [
        (
            Kernel(on_real(answer(DELAY))),
            PathSettings(6_000),
            BenchError,
            "delay_us: asked for 6000, found 5000",
        ),
        (Kernel("[]"), PathSettings(6_000), BenchError, "no netem on enp2s0 after it was set"),
        (
            Kernel(on_real(answer({}))),
            PathSettings(seed=7),
            CapabilityError,
            "seed: its tools do not read it",
        ),
        (
            Kernel('What is "seed"?', exit_code=1),
            PathSettings(seed=7),
            CapabilityError,
            "seed: needs Linux 6.6",
        ),
        (Kernel("kind is unknown", exit_code=2), PathSettings(), CapabilityError, "no netem, prio or u32"),
        (
            Kernel('Cannot find device "enp2s0"', exit_code=1),
            PathSettings(),
            BenchError,
            "Cannot find device",
        ),
    ],
)
def test_a_router_that_does_not_do_as_asked_is_named(
    kernel: Kernel, settings: PathSettings, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        router_on(kernel).configure([THERE], settings)


def test_flows_are_set_up_once_and_read_back() -> None:
    kernel = Kernel(on_real(answer(DELAY, "21:")), FILTERS)
    assert router_on(kernel).configure([THERE], PathSettings(5_000), FLOWS).flows == tuple(FLOWS)
    scripts = [each for each in kernel.ran if "replace" in each]
    assert len(scripts) == 1
    assert "prio" not in scripts[0], "the filters are there, and stay"
    with pytest.raises(BenchError, match="found other filters"):
        router_on(kernel).configure([THERE], PathSettings(5_000), [Flow("udp", destination_port=9)])
    assert "prio" in kernel.ran[-2]


def test_both_interfaces_are_cleared() -> None:
    kernel = Kernel("")
    router_on(kernel).clear()
    assert kernel.ran == [f"tc qdisc delete dev {name} root" for name in ("enp1s0", "enp2s0")]


def test_frames_are_not_joined() -> None:
    """What is refused by a card is judged by what it shows; once for a router, not at each change."""
    kernel = Kernel(on_real(answer(DELAY)))
    router = router_on(kernel)
    for _ in range(2):
        router.configure([THERE], PathSettings(5_000))
    (script,) = kernel.asked_offloads
    for name in ("enp1s0", "enp2s0"):
        assert f"ethtool -K {name} gro off; " in script
        assert f"ethtool -k {name}" in script


@pytest.mark.parametrize(
    ("offloads", "told"),
    [
        (
            SEPARATE.replace("rx-gro-hw: off", "rx-gro-hw: on [fixed]"),
            r"it joins frames: rx-gro-hw: on \[fixed",
        ),
        (SEPARATE.replace("receive-offload: off\n", "receive-offload: on\n"), "generic-receive-offload: on"),
        ("", "its offloads are not known: ethtool: not found"),
    ],
)
def test_a_router_that_joins_frames_is_refused(offloads: str, told: str) -> None:
    kernel = Kernel(on_real(answer(DELAY)), offloads=offloads)
    with pytest.raises(CapabilityError, match=told):
        router_on(kernel).configure([THERE], PathSettings(5_000))
    assert not kernel.ran
