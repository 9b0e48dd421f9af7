# SPDX-License-Identifier: Apache-2.0
"""Two namespaces with the service of RTDiP at both ends, and frames that tests write themselves."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.link import End, Link, capture, kernel_counts
from tests.namespace import in_namespace
from tests.patience import HANG_S
from tests.traffic_gen.lab import CONSUMER, Json, Plan, Stream, Tool, pattern_text

ETHERTYPE = 0x88B5
HEADER = struct.Struct("!HBBHHI")
HIGH, MEDIUM, LOW = range(3)
INTERFACE = "r0"


def header(
    port: int, priority: int, length: int, source_port: int = 0, sequence: int = 0, version: int = 1
) -> bytes:
    """Return a header of RTDiP."""
    return HEADER.pack(port, priority, version, length, source_port, sequence)


class RtdipLab:
    """Namespaces `near` and `far`, a veth pair, a service at each end, and the tools that use them."""

    def __init__(self, program: Path, folder: Path, *options: str, mtu_bytes: int = 1500) -> None:
        """Take `bw-rtdip`, a folder for sockets and answers, options of the services, and the link's MTU."""
        self.program = program
        self.folder = folder
        self.near, self.far = (f"bw-r{os.getpid()}{end}" for end in "nf")
        self.options = options
        ends = (
            End(namespace, INTERFACE, (f"10.99.0.{number}/24",))
            for number, namespace in enumerate((self.near, self.far), 1)
        )
        self._link = Link(*ends, mtu_bytes=mtu_bytes)
        self.services: dict[str, Tool] = {}
        self._tools: list[Tool] = []
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> RtdipLab:
        """Make the namespaces and start the services."""
        self._link.make()
        for namespace in (self.near, self.far):
            self.serve(namespace)
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what still runs and remove the namespaces."""
        for sock in self._sockets:
            sock.close()
        for tool in self._tools:
            tool.close()
        self._link.remove()

    def serve(self, namespace: str) -> Tool:
        """Start the service of an end."""
        tool = self._start(
            namespace, "serve", "--interface", INTERFACE, *self.options, *self.socket_of(namespace)
        )
        tool.wait_ready()
        self.services[namespace] = tool
        return tool

    def socket_of(self, namespace: str) -> list[str]:
        """Return the option that names the service of an end."""
        return ["--socket", str(self.folder / namespace)]

    def tool(self, namespace: str, verb: str, *options: str) -> Tool:
        """Start a tool at an end."""
        return self._start(namespace, verb, *options, *self.socket_of(namespace))

    def traffic(self, program: Path, namespace: str, *options: str) -> Tool:
        """Start bw-traffic at an end, carried by RTDiP."""
        return self._start(namespace, *options, "--rtdip", str(self.folder / namespace), program=program)

    def replay(self, repository: Path, *streams: Stream, duration_ms: int = 2000) -> tuple[Json, Json]:
        """Replay streams by RTDiP from the near end to the far one; return what sender and receiver say."""
        recv, (send,) = self.begin_replay(repository, *streams, duration_ms=duration_ms)
        received, sent = recv.result(), send.result()
        assert received["valid"], received["invalid_reasons"]
        assert sent["valid"], sent["invalid_reasons"]
        return sent, received

    def begin_replay(self, repository: Path, *streams: Stream, duration_ms: int) -> tuple[Tool, list[Tool]]:
        """Begin a replay; return its receiver, which is ready, and a sender for each producer."""
        producers = tuple(sorted({stream.id // 10 for stream in streams}))
        plan = Plan(pattern_text(*streams), producers, duration_ms=duration_ms).write(
            self.folder / "plan.toml"
        )
        text = plan.read_text().replace(CONSUMER, "10.99.0.2").replace("10.77.0.1", "10.99.0.1")
        plan.write_text(text)
        program = repository / ".build" / "linux" / "traffic-gen" / "bw-traffic"
        recv = self.traffic(program, self.far, "recv", str(plan), "--check-fill")
        recv.wait_ready()
        own = ["send", str(plan), "--producer"]
        return recv, [self.traffic(program, self.near, *own, str(number)) for number in producers]

    def capture(self, namespace: str) -> AbstractContextManager[Path]:
        """Capture the frames of RTDiP that leave an end; the file is whole at the end of the block."""
        file = self.folder / f"{namespace}.pcap"
        return capture(namespace, INTERFACE, file, f"ether proto {ETHERTYPE}")

    def kernel_datagrams(self) -> int:
        """Return how many UDP datagrams and TCP segments the kernel has sent at the near end."""
        counts = kernel_counts(self.near)
        return counts["Udp:OutDatagrams"] + counts["Tcp:OutSegs"]

    def _start(self, namespace: str, *arguments: str, program: Path | None = None) -> Tool:
        log = self.folder / f"{arguments[0]}-{len(self._tools)}.ndjson"
        tool = Tool(namespace, program or self.program, list(arguments), log, {})
        self._tools.append(tool)
        return tool

    def mac(self, namespace: str) -> str:
        """Return the address of an end's interface."""
        shown = subprocess.run(
            ["ip", "-n", namespace, "-json", "link", "show", INTERFACE], check=True, capture_output=True
        )
        return str(json.loads(shown.stdout)[0]["address"])

    def show(self, namespace: str) -> Json:
        """Return what the service of an end says."""
        done = subprocess.run(
            [str(self.program), "show", *self.socket_of(namespace)], check=True, capture_output=True
        )
        found: Json = json.loads(done.stdout)
        return found

    def raw(self, namespace: str = "") -> socket.socket:
        """Return a socket that writes whole frames at an end (near), and reads those that come there."""
        made = in_namespace(
            namespace or self.near, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        )
        self._sockets.append(made)
        made.settimeout(HANG_S)
        made.bind((INTERFACE, ETHERTYPE))
        return made

    def frame(self, payload: bytes, to: str = "") -> bytes:
        """Return an Ethernet frame from the near end to the far one, or to another address."""
        ends = bytes.fromhex((to or self.mac(self.far)).replace(":", "")), self.mac(self.near)
        return ends[0] + bytes.fromhex(ends[1].replace(":", "")) + struct.pack("!H", ETHERTYPE) + payload


def bw_rtdip(repository: Path) -> Path:
    """Return the built program; skip the test where there is none."""
    program = repository / ".build" / "linux" / "targets" / "embedded" / "rtdip" / "bw-rtdip"
    if not program.exists():
        pytest.skip(f"{program.relative_to(repository)} is not built: make setup")
    return program


def attached(lab: RtdipLab, namespace: str) -> bool:
    """Say whether an XDP program is on an end's interface."""
    shown = subprocess.run(
        ["ip", "-n", namespace, "link", "show", INTERFACE], check=True, capture_output=True, text=True
    )
    return "xdp" in shown.stdout


def ports(shown: Json) -> Sequence[int]:
    """Return the ports that a service has given."""
    return [each["port"] for each in shown["ports"]]
