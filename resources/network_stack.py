# SPDX-License-Identifier: Apache-2.0
"""The network stacks of a kind of target, and how one is put on: `targets/KIND/stack/NAME.toml`.

    schema = "benchwright.network_stack/1"
    endpoints = "both"                         # who has it: the "target" (left out), or all of a replay
    transports = "udp"                         # of the streams that it carries; left out: every one
    message_max_bytes = 1400                   # of the messages that it carries; left out: any
    arguments = "--burst 8"                    # of bw-traffic on the target, behind its own; left out: none
    receive_arguments = "--busy-poll-us 50"    # of `bw-traffic recv` besides; left out: none
    message_arguments = "--socket $folder/s"   # by which bw-rtdip goes over RTDiP; left out: over UDP
    message_receive_arguments = "--busy-poll-us 50"  # of bw-rtdip besides, where it receives; left out: none

    preload = "libuser.so"                     # libraries that are loaded into bw-traffic; left out: none
    needs_root = true                          # an administrator has to put it on; left out: false
    driver = "AF_XDP"                          # what it needs in the kernel; left out: nothing
    launcher = "$folder/start --fast"          # program that starts bw-traffic on the target; left out: none

    [environment]                              # of bw-traffic; left out: as it is there
    USER_SOCKET = "$folder/user.sock"

    [install]                                  # left out: nothing has to be done
    folder = "/run/benchwright/stack"          # on the target
    files = "user.sh ../provision/json.sh"     # what is brought there, by its way from this file
    tools = "bw-user"                          # native tools that are brought there, too; left out: none
    libraries = "libuser.so"                   # and shared libraries of theirs; left out: none
    machine = "x86_64-linux"                   # that they are built for; left out: this machine's
    command = "sh $folder/user.sh"             # `--interface NAME apply`, or `restore`, follows

    [service]                                  # left out: none; runs at each end while the stack is on
    tool = "bw-rtdip"                          # a native tool that says `ready`
    arguments = "serve --interface $interface --socket $folder/rtdip.sock"

    [proof]                                    # left out: nobody asks what it has carried
    tool = "bw-rtdip"                          # prints one JSON object, at the end that receives
    arguments = "show --socket $folder/rtdip.sock"
    delivered = "frames.delivered"             # the number in it of frames that have come for programs
    frame_bytes_field = "data_max_bytes"       # the number in it of bytes of a message that a frame carries;
                                               # or `frame_bytes`, the number itself
    #delivered_bytes = "frames.bytes_in"       # in place of these two, where messages have no frames of their
                                               # own: the number in it of bytes of IP packets that have come

`$folder` is the stack's folder on the node, that of `install` where there is one; of a stack with both ends
each node has its own. `$interface` is the node's on the test network. Both stand for that in `command`, in
all arguments and in the values of `[environment]`.

What is said of bw-traffic on the target holds of a stack with both ends on every node of a replay.

A library of `preload` with a path is the target's own; one without is built with the native tools, and
brought there. Programs on the target are then of the dynamic build, and none is ready before its libraries
are seen in it (`hw.preload`): traffic by the system's own stack is never taken for that of another.

A name that a kind has no file of is a stack that it cannot have. `restore` comes before every `apply`: what a
killed run has left is given back first, so the command keeps a journal of its own on the target, as
provisioning does. Exit code 3 of `apply`, with a line on stderr: the machine cannot have the stack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import BenchError, CapabilityError, ConfigError
from hw.fields import Fields
from hw.open_bench import Nodes
from hw.preload import PRELOAD, start_program
from hw.protocols import Job
from hw.provisioning import TARGETS
from hw.toml_file import read_toml
from resources.daq_replay.pattern import Pattern, Stream
from resources.daq_replay.stack_used import StartedProgram

SCHEMA = "benchwright.network_stack/1"
FOLDER = "stack"
"""Of a kind of target, with a file for each stack that it can have."""
FOLDER_ON_NODE = "/run/benchwright/stack"
FOLDER_WORD, INTERFACE_WORD = "$folder", "$interface"
"""In words of a stack's file; what they stand for: see the module."""
TARGET, BOTH = "target", "both"
RECEIVE = "recv"
BYTES_MAX = 2**31 - 1


@dataclass(frozen=True)
class Install:
    """How a stack is installed on a machine, and taken off: see the module."""

    folder: str
    files: tuple[str, ...]
    command: tuple[str, ...]
    tools: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    machine: str = ""


@dataclass(frozen=True)
class Service:
    """A native tool that runs at each end of a stack while that is on."""

    tool: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Proof:
    """How a stack is asked what it has carried.

    Attributes:
        tool: Native tool that prints one JSON object.
        arguments: Of it.
        delivered: Way, by dots, to the number of frames that have come for programs of the node; without
            `frame_bytes`, of bytes of IP packets.
        frame_bytes: Most bytes of a message that a frame carries; or the way, by dots, to that number. None:
            bytes are counted.
    """

    tool: str
    arguments: tuple[str, ...]
    delivered: str
    frame_bytes: int | str | None


@dataclass(frozen=True)
class NetworkStack:
    """A network stack of a kind of target.

    Attributes:
        path: Its file.
        endpoints: Who has it: TARGET, the target alone, or BOTH, every node that takes part in a replay.
        transports: Of the streams that it carries; None: every one.
        message_max_bytes: Of the messages that it carries; None: any.
        arguments: Of a program that uses it.
        receive_arguments: Of one that receives, besides.
        message_arguments: Of bw-rtdip, by which single messages go over RTDiP; none: they go over UDP.
        message_receive_arguments: Of bw-rtdip that receives single messages on the target, besides.
        environment: Of a program that uses it.
        install: None: nothing has to be done.
        preload: Libraries that are loaded into such a program, by name or by their path on the target.
        launcher: Program on the target, with its arguments, that starts such a program; none: it starts
            by itself.
        service: None: none.
        proof: None: what it has carried cannot be asked.
    """

    name: str
    path: Path
    transports: tuple[str, ...] | None = None
    message_max_bytes: int | None = None
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    install: Install | None = None
    preload: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()
    endpoints: str = TARGET
    service: Service | None = None
    proof: Proof | None = None
    receive_arguments: tuple[str, ...] = ()
    message_arguments: tuple[str, ...] = ()
    message_receive_arguments: tuple[str, ...] = ()
    needs_root: bool = False
    driver: str = ""

    def folder_on(self, node_name: str) -> str:
        """Return the stack's folder on a node: nodes that are namespaces share the machine's file system."""
        folder = FOLDER_ON_NODE if self.install is None else self.install.folder
        return f"{folder}/{node_name}" if self.endpoints == BOTH else folder

    def words(self, words: Sequence[str], node_name: str, interface: str) -> list[str]:
        """Return words of the stack's file with a node's folder and interface in them."""
        folder = self.folder_on(node_name)
        return [word.replace(FOLDER_WORD, folder).replace(INTERFACE_WORD, interface) for word in words]

    def words_on(self, bench: Nodes, node_name: str, words: Sequence[str]) -> list[str]:
        """Return words of the stack's file as they are on a node of a bench, which is asked where need be.

        Raises:
            BenchError: They name the interface, and none of the node has an address of the test network.
        """
        named = any(INTERFACE_WORD in word for word in words)
        return self.words(words, node_name, interface_on(bench, node_name) if named else "")

    def why_not(self, stream: Stream) -> str:
        """Return why it does not carry a stream; empty: it does."""
        if self.transports is not None and stream.transport not in self.transports:
            return f"network stack {self.name} carries {', '.join(self.transports)}, not {stream.transport}"
        if self.message_max_bytes is not None and stream.size_bytes > self.message_max_bytes:
            return (
                f"network stack {self.name} carries messages of {self.message_max_bytes} bytes at most,"
                f" not of {stream.size_bytes}"
            )
        return ""

    def carried(self, pattern: Pattern, producer: int | None = None) -> Pattern:
        """Return a pattern without the streams that it does not carry.

        Args:
            pattern: What is replayed.
            producer: Whose streams go through the stack; None: those of all.

        Raises:
            CapabilityError: It carries none of those that go through it.
        """
        through = [stream for stream in pattern.streams if producer in (None, stream.producer)]
        refused = {stream.id: why for stream in through if (why := self.why_not(stream))}
        if through and len(refused) == len(through):
            raise CapabilityError(f"pattern {pattern.name}: {refused[through[0].id]}")
        return replace(pattern, streams=tuple(s for s in pattern.streams if s.id not in refused))

    def bring(self, bench: Nodes, node_name: str) -> tuple[str, list[str]]:
        """Bring bw-traffic and what is loaded into it to a node; return their paths there.

        Raises:
            CapabilityError: The node runs no program that loads libraries.
            BenchError: They cannot be brought there.
        """
        libraries = [each if "/" in each else bench.library(node_name, each) for each in self.preload]
        return bench.tool(node_name, dynamic=True) if libraries else bench.tool(node_name), libraries

    def start(
        self, bench: Nodes, node_name: str, arguments: Sequence[str], stem: Path
    ) -> tuple[Job, StartedProgram]:
        """Start bw-traffic on a node where it uses the stack.

        Args:
            bench: An open bench; the node is on, the stack put on it.
            node_name: Of the node.
            arguments: Of the program: a verb and its options.
            stem: It writes to `stem`.ndjson and `stem`.err.

        Returns:
            The job, and what was started.

        Raises:
            CapabilityError: The node runs no program that loads libraries.
            BenchError: It did not start, a library cannot be loaded there, or the stack's file names the
                interface and the node has none on the test network.
        """
        tool, libraries = self.bring(bench, node_name)
        own = [*self.arguments, *(self.receive_arguments if arguments[0] == RECEIVE else ())]
        launcher = self.words_on(bench, node_name, self.launcher)
        argv = [*launcher, tool, *arguments, *self.words_on(bench, node_name, own)]
        values = self.words_on(bench, node_name, tuple(self.environment.values()))
        environment = dict(zip(self.environment, values, strict=True))
        job = start_program(bench.node(node_name), argv, stem, environment, libraries)
        return job, StartedProgram(node_name, tuple(argv), tuple(libraries))


def interface_on(bench: Nodes, node_name: str) -> str:
    """Return the interface of a node on the test network: a target's by the bench file, else by its address.

    Raises:
        BenchError: No interface of the node has an address of the test network.
    """
    spec = bench.spec
    named = {target.test_interface for target in spec.targets.values() if target.node == node_name}
    if len(named) == 1:
        return named.pop()
    addresses = {producer.address for producer in spec.producers.values() if producer.node == node_name}
    addresses |= {target.test_address for target in spec.targets.values() if target.node == node_name}
    lines = bench.node(node_name).run(["ip", "-o", "-4", "address"]).stdout.splitlines()
    for words in (line.split() for line in lines):
        if len(words) > 3 and words[3].partition("/")[0] in addresses:
            return words[1].partition("@")[0]
    raise BenchError(f"{node_name}: no interface has {' or '.join(sorted(addresses)) or 'an address'}")


def stack_names(kind_folder: Path) -> tuple[str, ...]:
    """Return the names of the network stacks that a kind of target can have."""
    return tuple(sorted(file.stem for file in (kind_folder / FOLDER).glob("*.toml")))


def load_network_stack(kind_folder: Path, name: str) -> NetworkStack:
    """Read a network stack of a kind of target.

    Args:
        kind_folder: `targets/KIND`.
        name: Of the stack.

    Raises:
        CapabilityError: Another kind has it, this one has not.
        ConfigError: No kind has it, or its file is wrong: names file, key and what is allowed.
    """
    path = kind_folder / FOLDER / f"{name}.toml"
    if name not in stack_names(kind_folder):
        there = ", ".join(stack_names(kind_folder)) or "none"
        elsewhere = {each for kind in kind_folder.parent.iterdir() for each in stack_names(kind)}
        error = CapabilityError if name in elsewhere else ConfigError
        raise error(f"{path}: no network stack {name!r} of this kind of target; there are: {there}")
    table = Fields(read_toml(path), str(path), "")
    table.text("schema", choices=(SCHEMA,))
    table.rename("ends", "endpoints")
    table.rename("put_on", "install")
    stack = NetworkStack(
        name=name,
        path=path,
        transports=table.words("transports") if table.has("transports") else None,
        message_max_bytes=(
            table.integer("message_max_bytes", 1, BYTES_MAX) if table.has("message_max_bytes") else None
        ),
        arguments=table.words("arguments", ""),
        receive_arguments=table.words("receive_arguments", ""),
        message_arguments=table.words("message_arguments", ""),
        message_receive_arguments=table.words("message_receive_arguments", ""),
        environment=table.texts_of("environment"),
        install=_install(table.child("install", optional=True)),
        preload=table.words("preload", ""),
        launcher=table.words("launcher", ""),
        endpoints=table.text("endpoints", TARGET, choices=(TARGET, BOTH)),
        service=_service(table.child("service", optional=True)),
        proof=_proof(table.child("proof", optional=True)),
        needs_root=table.boolean("needs_root", False),
        driver=table.text_that_says("driver") if table.has("driver") else "",
    )
    table.finish()
    if PRELOAD in stack.environment:
        raise ConfigError(f"{path}: environment.{PRELOAD}: name the libraries in `preload`")
    return stack


def _install(table: Fields | None) -> Install | None:
    if table is None:
        return None
    install = Install(
        folder=table.text("folder"),
        files=table.words("files"),
        command=table.words("command"),
        tools=table.words("tools", ""),
        libraries=table.words("libraries", ""),
        machine=table.text("machine", ""),
    )
    table.finish()
    return install


def _service(table: Fields | None) -> Service | None:
    if table is None:
        return None
    service = Service(table.text("tool"), table.words("arguments"))
    table.finish()
    return service


def _proof(table: Fields | None) -> Proof | None:
    if table is None:
        return None
    tool, arguments = table.text("tool"), table.words("arguments")
    if table.has("delivered_bytes"):
        proof = Proof(tool, arguments, table.text("delivered_bytes"), None)
    elif not table.has("delivered"):
        raise ConfigError(f"{table.file}: {table.table}.delivered: missing, and so is delivered_bytes")
    else:
        per_frame = (
            table.text("frame_bytes_field")
            if table.has("frame_bytes_field")
            else table.integer("frame_bytes", 1, BYTES_MAX)
        )
        proof = Proof(tool, arguments, table.text("delivered"), per_frame)
    table.finish()
    return proof


def network_stack_of(target: TargetSpec, name: str) -> NetworkStack:
    """Return a network stack for a target; raises as `load_network_stack`."""
    return load_network_stack(TARGETS / target.provisioning, name)
