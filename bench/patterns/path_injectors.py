# SPDX-License-Identifier: Apache-2.0
"""What happens to frames between two namespaces of a ring, in the bench's router: delays and losses by turns.

One direction of one pair of nodes goes through a queue of its own there, and everything else as before. What
TCP makes of it is TCP's own doing.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise

from bench.patterns.injected import Injected, Scene
from hw.bench import SWITCH, NodeKind
from hw.errors import CapabilityError
from hw.path_settings import PathSettings
from hw.paths import router_of
from hw.router import PathDirection
from resources.control_loops.ring_trial import NODES, ring_nodes

SHAPED = """
port=$1 source=$2 period_us=$3 busy_us=$4 rounds=$5 usual=$6 then=$7
set -e
trap 'tc qdisc del dev "$port" root; exit 0' TERM INT
tc qdisc replace dev "$port" root handle 1: prio bands 3 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
tc qdisc add dev "$port" parent 1:1 handle 30: netem limit 100000 $usual
tc filter add dev "$port" parent 1: protocol ip pref 1 u32 match ip src "$source" flowid 1:1
echo '{"type": "ready"}'
for ((round = 0; round < rounds; round++)); do
    sleep "$((period_us / 1000000)).$(printf %06d $((period_us % 1000000)))"
    tc qdisc change dev "$port" parent 1:1 handle 30: netem limit 100000 $then
    sleep "$((busy_us / 1000000)).$(printf %06d $((busy_us % 1000000)))"
    tc qdisc change dev "$port" parent 1:1 handle 30: netem limit 100000 $usual
done
while :; do sleep 1; done
"""
ENDING_S = 10.0
RATE = "rate 1gbit"
"""With a rate netem keeps the order of frames when their delay changes."""


def _hop(scene: Scene) -> tuple[int, tuple[str, str], tuple[str, str]]:
    """Return the first hop between two namespaces: its number, node and address of both ends.

    Raises:
        CapabilityError: The ring has none.
    """
    spec = scene.bench.spec
    places = ring_nodes(spec, scene.target, NODES)
    for number, (one, other) in enumerate(pairwise(places), start=1):
        if all(spec.nodes[node].kind is NodeKind.NAMESPACE for node, _ in (one, other)):
            return number, one, other
    raise CapabilityError(f"bench {spec.name}: no hop of the ring between two namespaces")


@contextmanager
def _shaped(
    scene: Scene,
    way: tuple[tuple[str, str], tuple[str, str]],
    turns_us: tuple[int, int],
    what: tuple[str, str],
) -> Generator[None]:
    """Do something to frames of one way again and again.

    Args:
        scene: Where.
        way: From which node to which one.
        turns_us: How long as usual, how long not.
        what: As usual, and then, in netem's words.

    Raises:
        CapabilityError: The bench has no router on that way.
    """
    (_, source), (node, _) = way
    bench = scene.bench
    settings = router_of(bench.spec)
    path = next(
        (
            PathDirection(link, node)
            for link, ends in settings.links.items()
            if node in ends and SWITCH in ends
        ),
        None,
    )
    if path is None:
        raise CapabilityError(f"bench {bench.spec.name}: the router cannot be before {node}")
    rounds = int(scene.lasts_s * 1e6 / sum(turns_us)) if turns_us[1] else 0
    usual, then = (f"{each} {RATE}" for each in what)
    router = bench.router()
    try:
        router.configure([path], PathSettings(delay_us=0))
        words = [settings.interface(path), source, *map(str, turns_us), str(rounds), usual, then]
        argv = ["bash", "-c", SHAPED, "bash", *words]
        job = bench.node(settings.node).start(argv, scene.folder / "injected")
        try:
            job.wait_ready()
            yield
        finally:
            job.stop()
            job.wait(ENDING_S)
    finally:
        router.clear()


@contextmanager
def delay(scene: Scene) -> Generator[Injected]:
    """Have frames take longer for some tens of ms, again and again."""
    _, one, other = _hop(scene)
    turns_us = scene.rng.randrange(400_000, 1_000_000), scene.rng.randrange(20_000, 60_000)
    then = f"delay {scene.rng.uniform(8, 30):.3f}ms"
    with _shaped(scene, (one, other), turns_us, ("delay 0ms", then)):
        yield Injected("delay", (f"the way from {one[0]} to {other[0]}",))


@contextmanager
def loss(scene: Scene) -> Generator[Injected]:
    """Have all frames of some time lost, so that nothing but a timer sends them again."""
    hop, one, other = _hop(scene)
    turns_us = scene.rng.randrange(1_200_000, 2_000_000), scene.rng.randrange(70_000, 100_000)
    with _shaped(scene, (one, other), turns_us, ("delay 0ms", "delay 0ms loss 100%")):
        guilty = f"TCP, hop {hop}: a retransmission timer", f"TCP, hop {hop}: a segment that was sent again"
        yield Injected("loss", guilty)


@contextmanager
def nagle(scene: Scene) -> Generator[Injected]:
    """Have acknowledgements take longer, of a ring whose small writes wait for them."""
    hop, one, other = _hop(scene)
    turns_us = scene.rng.randrange(400_000, 1_000_000), scene.rng.randrange(20_000, 60_000)
    then = f"delay {scene.rng.uniform(10, 40):.3f}ms"
    with _shaped(scene, (other, one), turns_us, ("delay 0ms", then)):
        yield Injected("nagle", (f"TCP, hop {hop}: Nagle",), {"nagle": True})


@contextmanager
def slow_start(scene: Scene) -> Generator[Injected]:
    """Have a way so long that TCP's first window is less than what is on it."""
    hop, one, other = _hop(scene)
    usual = f"delay {scene.rng.uniform(200, 300):.3f}ms"
    with _shaped(scene, (one, other), (1_000_000, 0), (usual, usual)):
        yield Injected("slow_start", (f"TCP, hop {hop}: slow start",))


BBR_S = 65
"""Six times ten seconds, after each of which BBR asks for the shortest round trip."""


@contextmanager
def bbr(scene: Scene) -> Generator[Injected]:
    """Have BBR look for the shortest round trip each ten seconds, on a way longer than four messages."""
    hop, one, other = _hop(scene)
    node = scene.bench.node(one[0])
    place = "net.ipv4.tcp_congestion_control"
    before = node.run(["sysctl", "-n", place]).stdout.strip()
    usual = f"delay {scene.rng.uniform(100, 150):.3f}ms 2ms"
    node.run(["sysctl", "-q", "-w", f"{place}=bbr"])
    try:
        with _shaped(scene, (one, other), (1_000_000, 0), (usual, usual)):
            messages = {"count": BBR_S * 200, "interval_us": 5000}
            yield Injected("bbr", (f"TCP, hop {hop}: congestion window of bbr",), messages)
    finally:
        node.run(["sysctl", "-q", "-w", f"{place}={before}"])
