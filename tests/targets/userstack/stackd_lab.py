# SPDX-License-Identifier: Apache-2.0
"""A service of the user-mode stack between two namespaces, and programs that speak to it."""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import select
import socket
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.link import Link, dual_end, run_in
from tests.namespace import in_namespace
from tests.patience import HANG_S, STALL_S, wait_until
from tests.traffic_gen.lab import Json, Tool

INTERFACE = "u0"
PEER, OWN = {4: "10.98.0.1", 6: "fd98::1"}, {4: "10.98.0.2", 6: "fd98::2"}
MARK = f"bw-u{os.getpid()}"

VERSION = 2
HELLO, BIND, UNBIND, RESOLVE, SHOW, NEIGHBOUR, ADDRESSES, REPORT, REPORTED, STATISTICS = range(1, 11)
_REQUEST = struct.Struct("=IIIBBH16s")
_ANSWER = struct.Struct("=IIi6sB16s16sxIII323sxIIIIII")
_ADDRESS_BYTES = 17
_SOL_XDP, _MMAP_OFFSETS = 283, 1
_RECEIVE, _TRANSMIT, _FILL, _COMPLETION = 0, 0x80000000, 0x100000000, 0x180000000
_CONTINUED = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Answer:
    """An answer or an event; `result` is 0 or the name of an errno."""

    verb: int
    number: int
    result: int | str
    mac: str
    ip: str
    source: str
    interface_index: int
    mtu_bytes: int
    addresses: list[str]
    frames: int
    frame_bytes: int
    rings: list[int]

    @classmethod
    def read(cls, data: bytes) -> Answer:
        """Take it apart."""
        verb, number, result, mac, family, ip, source, index, mtu, count, all_of, *memory = _ANSWER.unpack(
            data[: _ANSWER.size]
        )
        places = range(0, count * _ADDRESS_BYTES, _ADDRESS_BYTES)
        return cls(
            verb,
            number,
            errno.errorcode[-result] if result else 0,
            mac.hex(":"),
            _ip_text(family, ip),
            _ip_text(family, source),
            index,
            mtu,
            [_ip_text(all_of[at], all_of[at + 1 : at + _ADDRESS_BYTES]) for at in places],
            memory[0],
            memory[1],
            memory[2:],
        )


def _ip_text(family: int, ip: bytes) -> str:
    if not family:
        return ""
    return socket.inet_ntop(family, ip[:4] if family == socket.AF_INET else ip)


class _Ring:
    """A ring of a socket of AF_XDP, mapped."""

    def __init__(self, descriptor: int, page: int, offsets: tuple[int, ...], frames: int, entry: int) -> None:
        self.producer_at, self.consumer_at, self._entries_at, _ = offsets
        self._mask, self._entry = frames - 1, entry
        self.memory = mmap.mmap(descriptor, self._entries_at + frames * entry, offset=page)

    def _word(self, at: int) -> int:
        return int(struct.unpack_from("I", self.memory, at)[0])

    def waiting(self) -> int:
        """Return how many entries have been put in and not taken out."""
        return (self._word(self.producer_at) - self._word(self.consumer_at)) % 2**32

    def put(self, entry: bytes) -> None:
        """Add an entry."""
        place = self._word(self.producer_at)
        at = self._entries_at + (place & self._mask) * self._entry
        self.memory[at : at + self._entry] = entry
        struct.pack_into("I", self.memory, self.producer_at, (place + 1) % 2**32)

    def take(self) -> bytes:
        """Take an entry out."""
        place = self._word(self.consumer_at)
        at = self._entries_at + (place & self._mask) * self._entry
        entry = self.memory[at : at + self._entry]
        struct.pack_into("I", self.memory, self.consumer_at, (place + 1) % 2**32)
        return entry


class Program:
    """What a program does: it says hello, and has frames in and out by its rings."""

    def __init__(self, path: Path, *, hello: bool = True, page: int | None = None) -> None:
        """Connect to a service, and say hello, with the descriptor of a page if there is one."""
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(HANG_S)
        self.connection.connect(str(path))
        self._number = 0
        self.events: list[Answer] = []
        self._mapped: list[mmap.mmap] = []
        self.xdp = self._memory_descriptor = -1
        if hello:
            self.hello = self.ask(HELLO, given=[] if page is None else [page])
            assert self.hello.result == 0
            self._map()

    def close(self) -> None:
        """End, and everything that it has."""
        self.connection.close()
        for memory in self._mapped:
            memory.close()
        self._mapped = []
        for descriptor in (self.xdp, self._memory_descriptor):
            if descriptor >= 0:
                os.close(descriptor)
        self.xdp = self._memory_descriptor = -1

    def ask(
        self,
        verb: int,
        *,
        version: int = VERSION,
        given: Sequence[int] = (),
        protocol: int = 0,
        family: int = 0,
        port: int = 0,
        ip: bytes = b"",
    ) -> Answer:
        """Ask, and return the answer; events that come before it are kept."""
        self.tell(verb, version, given, protocol, family, port, ip)
        return self.answer(verb)

    def tell(
        self, verb: int, version: int, given: Sequence[int], protocol: int, family: int, port: int, ip: bytes
    ) -> None:
        """Ask, and wait for nothing."""
        self._number += 1
        fields = protocol, family, port, ip
        request = _REQUEST.pack(version, verb, self._number, *fields)
        if given:
            socket.send_fds(self.connection, [request], list(given))
        else:
            self.connection.send(request)

    def answer(self, verb: int) -> Answer:
        """Return the answer to what was asked last."""
        while True:
            answer = self._read()
            if answer.number:
                assert (answer.verb, answer.number) == (verb, self._number)
                return answer
            self.events.append(answer)

    def _read(self) -> Answer:
        data, descriptors, _, _ = socket.recv_fds(self.connection, 2**19, 4)
        assert data, "the connection has ended"
        if descriptors:
            self.xdp, self._memory_descriptor = descriptors
        return Answer.read(data)

    def has_event(self, wanted: Callable[[Answer], bool]) -> bool:
        """Say whether an event that is wanted has come; it stays."""
        while select.select([self.connection], [], [], 0)[0]:
            self.events.append(self._read())
        return any(wanted(event) for event in self.events)

    def event(self, wanted: Callable[[Answer], bool]) -> Answer:
        """Return the first event that is wanted; those before it are forgotten."""
        while True:
            event = self.events.pop(0) if self.events else self._read()
            if wanted(event):
                return event

    def bind(self, port: int, sock: socket.socket) -> int | str:
        """Ask for a port, by a socket of the kernel; return the result."""
        protocol = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL)
        return self.ask(BIND, given=[sock.fileno()], protocol=protocol, port=port).result

    def resolve(self, ip: str) -> Answer:
        """Ask the way to an address."""
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        return self.ask(RESOLVE, family=family, ip=socket.inet_pton(family, ip))

    # Frames.

    def _map(self) -> None:
        offsets = ctypes.create_string_buffer(128)
        size = ctypes.c_uint32(128)
        asked = self.xdp, _SOL_XDP, _MMAP_OFFSETS, offsets, ctypes.byref(size)
        assert _libc.getsockopt(*asked) == 0, os.strerror(ctypes.get_errno())
        receive, transmit, fill, completion = struct.iter_unpack("4Q", offsets.raw)
        sizes = self.hello.rings
        self.receive_ring = _Ring(self.xdp, _RECEIVE, receive, sizes[0], 16)
        self.transmit_ring = _Ring(self.xdp, _TRANSMIT, transmit, sizes[1], 16)
        self.fill_ring = _Ring(self.xdp, _FILL, fill, sizes[2], 8)
        self.completion_ring = _Ring(self.xdp, _COMPLETION, completion, sizes[3], 8)
        self.memory = mmap.mmap(self._memory_descriptor, self.hello.frames * self.hello.frame_bytes)
        rings = self.receive_ring, self.transmit_ring, self.fill_ring, self.completion_ring
        self._mapped = [self.memory, *(ring.memory for ring in rings)]
        self._next_transmit = sizes[0]
        self.addresses: list[int] = []
        for frame in range(64):
            self.fill_ring.put(struct.pack("Q", frame * self.hello.frame_bytes))

    def take_frame(self, timeout_s: float = HANG_S) -> bytes | None:
        """Return a frame that has come, in however many buffers; None: none has."""
        parts: list[bytes] = []
        while True:
            if not self.receive_ring.waiting():
                poll = select.poll()
                poll.register(self.xdp, select.POLLIN)
                if not poll.poll(timeout_s * 1000):
                    return None
                continue
            address, length, options = struct.unpack("QII", self.receive_ring.take())
            self.addresses.append(address)
            parts.append(self.memory[address : address + length])
            frame = address - address % self.hello.frame_bytes
            self.fill_ring.put(struct.pack("Q", frame))
            if not options & _CONTINUED:
                return b"".join(parts)

    def nothing_comes(self) -> bool:
        """Say whether no frame comes."""
        return self.take_frame(STALL_S) is None

    def send_frame(self, frame: bytes) -> None:
        """Send a frame, in as many buffers as it needs, and wait until the kernel is done with it."""
        parts = [
            frame[at : at + self.hello.frame_bytes] for at in range(0, len(frame), self.hello.frame_bytes)
        ]
        for part in parts:
            address = self._next_transmit * self.hello.frame_bytes
            first = self.hello.rings[0]
            self._next_transmit = first + (self._next_transmit - first + 1) % self.hello.rings[1]
            self.memory[address : address + len(part)] = part
            self.transmit_ring.put(struct.pack("QII", address, len(part), part is not parts[-1]))
        _libc.sendto(self.xdp, None, 0, socket.MSG_DONTWAIT, None, 0)
        wait_until(lambda: self.completion_ring.waiting() >= len(parts), "the kernel to have sent")
        for _ in parts:
            self.completion_ring.take()


class StackdLab:
    """Namespaces `peer`, which the kernel's own stack is in, and `own`, with a service on its interface."""

    def __init__(self, program: Path, folder: Path, *options: str, mtu_bytes: int = 1500) -> None:
        """Take `bw-stackd`, a folder for its socket, options of the service, and the link's MTU."""
        self.program = program
        self.folder = folder
        self.peer, self.own = f"{MARK}p", f"{MARK}o"
        self.options = options
        self.environment: dict[str, str] = {}  # of what is started from now on
        ends = dual_end(self.peer, INTERFACE, PEER), dual_end(self.own, INTERFACE, OWN)
        self._link = Link(*ends, mtu_bytes=mtu_bytes)
        self.socket_path = folder / "stackd.sock"
        self.service: Tool
        self._tools: list[Tool] = []
        self._programs: list[Program] = []
        self._sockets: list[socket.socket] = []
        self.processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> StackdLab:
        """Make the namespaces and start the service."""
        self._link.make()
        for namespace in (self.peer, self.own):
            run_in(namespace, "ethtool", "-K", INTERFACE, "tx", "off")  # a veth fills in no checksums
        self.serve()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what still runs and remove the namespaces."""
        for each in (*self._programs, *self._sockets, *self._tools):
            each.close()
        for process in self.processes:
            process.kill()
            process.communicate()
        self._link.remove()

    def start(self, *arguments: str) -> Tool:
        """Start the tool beside the interface."""
        log = self.folder / f"stackd-{len(self._tools)}.ndjson"
        tool = Tool(self.own, self.program, list(arguments), log, self.environment)
        self._tools.append(tool)
        return tool

    def serve(self) -> Json:
        """Start the service, and return what it says when it is ready."""
        named = ["--interface", INTERFACE, "--socket", str(self.socket_path)]
        self.service = self.start("serve", *named, *self.options)
        return self.service.wait_ready()

    def connect(self, *, hello: bool = True) -> Program:
        """Return a program."""
        made = Program(self.socket_path, hello=hello)
        self._programs.append(made)
        return made

    def show(self) -> Json:
        """Return what the service says."""
        argv = [str(self.program), "show", "--socket", str(self.socket_path)]
        found: Json = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
        return found

    def socket(self, namespace: str, kind: int, ip_address: str = "", port: int = 0) -> socket.socket:
        """Return a socket of the kernel in a namespace, bound if a port is given."""
        family = socket.AF_INET6 if ":" in ip_address else socket.AF_INET
        made = in_namespace(namespace, lambda: socket.socket(family, kind))
        self._sockets.append(made)
        made.settimeout(HANG_S)
        if port:
            made.bind((ip_address, port))
        return made

    def raw(self, namespace: str) -> socket.socket:
        """Return a socket that writes whole frames, and reads all that come."""
        made = in_namespace(
            namespace, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
        )
        self._sockets.append(made)
        made.settimeout(HANG_S)
        made.bind((INTERFACE, 3))
        return made

    def own_port(self, program: Program, kind: int, port: int, ip_address: str = "") -> socket.socket:
        """Let a program have a port; return the kernel's socket of it."""
        sock = self.socket(self.own, kind, ip_address, port)
        assert program.bind(port, sock) == 0
        return sock

    def mac(self, namespace: str) -> str:
        """Return the address of an end's interface."""
        return str(self.links(namespace)[INTERFACE]["address"])

    def links(self, namespace: str) -> dict[str, Json]:
        """Return the interfaces of a namespace by their names."""
        argv = ["ip", "-n", namespace, "-details", "-json", "link", "show"]
        shown = subprocess.run(argv, check=True, capture_output=True)
        return {each["ifname"]: each for each in json.loads(shown.stdout)}

    def veths(self) -> list[str]:
        """Return the ends of programs' veths beside the interface."""
        return sorted(name for name in self.links(self.own) if name.startswith("bwu"))


def bw_stackd(repository: Path) -> Path:
    """Return the built program; skip the test where there is none."""
    program = repository / ".build" / "linux" / "targets/linux/userstack/service/bw-stackd"
    if not program.exists():
        pytest.skip(f"{program.relative_to(repository)} is not built: make setup")
    return program


def ip(*arguments: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *arguments], check=True)
