# SPDX-License-Identifier: Apache-2.0
"""A network stack put on its ends, and what it has carried there; its file: `resources.network_stack`."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path

from hw.bench import BenchSpec
from hw.errors import BenchError, CapabilityError
from hw.open_bench import Nodes
from hw.protocols import Job, Node
from hw.tools import local_library, local_tool
from reports.daq_replay.stack_proof import StackEnd
from resources.network_stack import BOTH, NetworkStack, interface_on

FOUND = "stack.ndjson"
"""Evidence: what `apply` said."""
VERB_S = 60.0
END_S = 10.0
EXIT_MISSING = 3


def stack_interfaces(
    spec: BenchSpec, network: NetworkStack, node_name: str, target_node: str, interface: str
) -> dict[str, str]:
    """Return the nodes that get a stack, and the interface there; empty: as `interface_on` finds it.

    Args:
        spec: Of the bench, as the suite sees it.
        network: The stack.
        node_name: Of the target under test.
        target_node: Of the consumer of the replays.
        interface: Of the target under test.
    """
    if network.endpoints != BOTH:
        return {node_name: interface}
    others = {producer.node: "" for producer in spec.producers.values()} | {target_node: ""}
    return others | {node_name: interface}


@contextmanager
def network_stack_on(
    stack: NetworkStack, bench: Nodes, under_test: str, interfaces: Mapping[str, str], folder: Path
) -> Generator[None, None, None]:
    """Put a stack on while the context lasts: its service on all ends, what it changes on the target alone.

    Args:
        stack: Of the kind of the target under test.
        bench: Open; the nodes are on.
        under_test: Node of the target under test.
        interfaces: By node; empty: the one that `interface_on` finds.
        folder: Evidence goes here.

    Raises:
        CapabilityError: A machine cannot have it; the text says why.
        BenchError: It cannot be put on, or taken off again.
    """
    with ExitStack() as on:
        services: list[_Service] = []
        for node_name, named in interfaces.items():
            interface = named or interface_on(bench, node_name)
            if node_name == under_test:
                on.enter_context(_install(stack, bench.node(node_name), interface, folder))
            if stack.service is not None:
                services.append(on.enter_context(_service(stack, bench, node_name, interface, folder)))
        for service in services:  # all begin at the same time
            _wait_ready(stack, service)
        yield


@contextmanager
def _install(stack: NetworkStack, node: Node, interface: str, folder: Path) -> Generator[None, None, None]:
    install = stack.install
    if install is None:
        yield
        return
    there = stack.folder_on(node.name)
    for file in install.files:
        source = (stack.path.parent / file).resolve()
        node.put(source, f"{there}/{source.name}")
    built = [local_tool(tool, install.machine) for tool in install.tools]
    built += [local_library(library, install.machine) for library in install.libraries]
    for source in built:
        node.put(source, f"{there}/{source.name}")
    _call(stack, node, interface, "restore")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FOUND).write_text(_call(stack, node, interface, "apply"))
        yield
    finally:
        if node.powered:
            _call(stack, node, interface, "restore")


def _call(stack: NetworkStack, node: Node, interface: str, verb: str) -> str:
    assert stack.install is not None
    argv = [*stack.words(stack.install.command, node.name, interface), "--interface", interface, verb]
    done = node.run(argv, timeout_s=VERB_S, check=False)
    said = (done.stderr.strip() or done.stdout.strip())[-500:]
    if done.exit_code == EXIT_MISSING:
        raise CapabilityError(f"network stack {stack.name}: {node.name}: {said}")
    if done.exit_code != 0:
        raise BenchError(
            f"network stack {stack.name}: {node.name}: `{verb}`: exit code {done.exit_code}: {said}"
        )
    return done.stdout


@dataclass
class _Service:
    """A service that was started on a node; that it ended before it was ready is no death."""

    node: Node
    job: Job
    is_ready: bool = False


@contextmanager
def _service(
    stack: NetworkStack, bench: Nodes, node_name: str, interface: str, folder: Path
) -> Generator[_Service, None, None]:
    service = stack.service
    assert service is not None
    node = bench.node(node_name)
    there = stack.folder_on(node_name)
    node.run(["mkdir", "-p", there])
    # What a killed run has left on a machine that lives on: it holds the interface.
    node.run(["pkill", "-f", f"^[^ ]*{service.tool} .*{there}/"], check=False)
    argv = [bench.tool(node_name, service.tool), *stack.words(service.arguments, node_name, interface)]
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{node_name}-{service.tool}"
    started = _Service(node, node.start(argv, stem))
    died = None
    try:
        is_abandoned = False
        try:
            yield started
        except (
            GeneratorExit
        ):  # as by a run that was killed: the next one ends what is left, and that is no death
            is_abandoned = True
            raise
        finally:
            may_die = started.is_ready and node.powered and not is_abandoned
            died = _exit_code(started.job) if may_die else None
    finally:
        if node.powered:
            started.job.stop()
            started.job.wait(END_S)
        if died is not None:
            started.job.fetch()
            raise BenchError(
                f"network stack {stack.name}: {node_name}: its service {service.tool} died, exit code {died}:"
                f" what was refused or lost since is its fault; read its log, {stem.name}.err, and run again"
            )


def _exit_code(job: Job) -> int | None:
    """Return the exit code of a job that has ended; None: it runs."""
    try:
        return job.wait(0)
    except BenchError:
        return None


def _wait_ready(stack: NetworkStack, service: _Service) -> None:
    try:
        service.job.wait_ready()
    except BenchError as error:
        service.job.stop()
        if service.job.wait(END_S) == EXIT_MISSING:
            raise CapabilityError(f"network stack {stack.name}: {service.node.name}: {error}") from error
        raise
    service.is_ready = True


def counters(stack: NetworkStack, bench: Nodes, node_name: str) -> StackEnd:
    """Ask an end of a stack what it has carried since it is on, and the kernel what went through its own.

    What was delivered is what has come for programs, by the stack's own word, in frames or in bytes of IP
    packets; of the kernel it is the bytes of the node's IP datagrams (IpExt of /proc/net/netstat).

    Raises:
        BenchError: It does not answer, or says no such number.
    """
    assert stack.proof is not None
    delivered = _number(stack, bench, node_name, stack.proof.delivered)
    in_bytes, out_bytes = _kernel_bytes(
        bench.node(node_name).run(["cat", "/proc/net/netstat"]).stdout, node_name
    )
    if stack.proof.frame_bytes is None:
        return StackEnd(None, in_bytes, out_bytes, delivered)
    return StackEnd(delivered, in_bytes, out_bytes)


def frame_bytes(stack: NetworkStack, bench: Nodes, node_name: str) -> int | None:
    """Return how many bytes of a message a frame carries at most, by the stack's file or by an end of it.

    None: the stack counts bytes.

    Raises:
        BenchError: It does not answer, or says no such number.
    """
    assert stack.proof is not None
    there = stack.proof.frame_bytes
    return _number(stack, bench, node_name, there) if isinstance(there, str) else there


def _number(stack: NetworkStack, bench: Nodes, node_name: str, way: str) -> int:
    proof = stack.proof
    assert proof is not None
    argv = [bench.tool(node_name, proof.tool), *stack.words_on(bench, node_name, proof.arguments)]
    said = bench.node(node_name).run(argv).stdout
    try:
        value = reduce(getitem, way.split("."), json.loads(said))
    except (KeyError, TypeError, ValueError):
        value = None
    if type(value) is not int:
        raise BenchError(f"{node_name}: {proof.tool} says no number {way}: {said:.200}")
    return value


def _kernel_bytes(text: str, node_name: str) -> tuple[int, int]:
    rows = [line.split() for line in text.splitlines() if line.startswith("IpExt:")]
    if len(rows) != 2:
        raise BenchError(f"{node_name}: /proc/net/netstat has no IpExt")
    values = dict(zip(*rows, strict=True))
    return int(values["InOctets"]), int(values["OutOctets"])
