# SPDX-License-Identifier: Apache-2.0
"""Load that competes with what is measured on a target: CPU and disk by stress-ng, network by iperf3.

Every load ends by itself after a stated time, also when nobody is left to end it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import CapabilityError, ConfigError
from hw.open_bench import Nodes
from resources.tools.jobs import end_and_fetch

IPERF_PORT = 5201
DISK_FOLDER = "/var/tmp"  # noqa: S108 - stress-ng makes files of random names in it
NETWORK_LOAD_MBPS = 200
"""A fifth of the link: load, not a test of what the target can take."""


@contextmanager
def competing_load(
    bench: Nodes, target: TargetSpec, load: str, duration_s: int, folder: Path
) -> Generator[None, None, None]:
    """Load a target until the context ends, for at most `duration_s`.

    Args:
        bench: An open bench.
        target: What is loaded.
        load: `cpu` (every processor busy), `disk` (writes and syncs; a guest's disk is its memory), `network`
            (TCP from producer 1 at a fifth of the link).
        duration_s: After this time the load ends by itself.
        folder: What the tools say goes here.

    Raises:
        ConfigError: No such load.
        CapabilityError: The bench has no producer that could send.
    """
    folder.mkdir(parents=True, exist_ok=True)
    node = bench.node(target.node)
    seconds = str(duration_s)
    with ExitStack() as stack:
        if load == "cpu":
            job = node.start(["stress-ng", "--cpu", "0", "--timeout", seconds], folder / "stress-cpu")
            stack.callback(end_and_fetch, job)
        elif load == "disk":
            argv = [
                "stress-ng",
                "--hdd",
                "1",
                "--hdd-bytes",
                "64m",
                "--temp-path",
                DISK_FOLDER,
                "--timeout",
                seconds,
            ]
            stack.callback(end_and_fetch, node.start(argv, folder / "stress-disk"))
        elif load == "network":
            if 1 not in bench.spec.producers:
                raise CapabilityError(f"bench {bench.spec.name}: no producer 1 that could load the network")
            server = node.start(["iperf3", "-s", "-p", str(IPERF_PORT)], folder / "iperf3-server")
            stack.callback(end_and_fetch, server)
            sender = bench.node(bench.spec.producers[1].node)
            argv = ["iperf3", "-c", target.test_address, "-p", str(IPERF_PORT), "-t", seconds]
            client = sender.start([*argv, "-b", f"{NETWORK_LOAD_MBPS}M", "-J"], folder / "iperf3-client")
            stack.callback(end_and_fetch, client)
        else:
            raise ConfigError(f"load: must be one of cpu, disk, network; found {load!r}")
        yield
