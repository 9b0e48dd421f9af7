# SPDX-License-Identifier: Apache-2.0
"""`bw-netstat`: states, queues and counters of programs that run by the user-mode stack."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.packet import Packet
from scapy.utils import rdpcap

from hw.tools import local_tool
from tests.patience import HANG_S, wait_until
from tests.targets.userstack.accel_lab import FAR, INTERFACE, NEAR, AccelLab, Started

PORT = 5001
NETSTAT = "targets/linux/userstack/netstat/bw-netstat"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def netstat(repository: Path) -> Path:
    return repository / ".build/linux" / NETSTAT


@pytest.fixture(autouse=True)
def nothing_is_left(lab: AccelLab, netstat: Path) -> Iterator[None]:
    """Let every test have the service for itself."""
    yield
    lab.end_programs()
    wait_until(lambda: not everything(netstat, lab)["programs"], "programs to end")


def run(netstat: Path, lab: AccelLab, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [str(netstat), "--socket", str(lab.socket), *options]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=HANG_S)


def rows(netstat: Path, lab: AccelLab, *options: str) -> list[list[str]]:
    """Return the table's rows, as words."""
    return [line.split() for line in run(netstat, lab, *options).stdout.splitlines()[1:]]


def everything(netstat: Path, lab: AccelLab) -> Json:
    found: Json = json.loads(run(netstat, lab, "--json").stdout)
    assert found["version"] == 1
    return found


def program_of(netstat: Path, lab: AccelLab, pid: int) -> Json:
    return next(each for each in everything(netstat, lab)["programs"] if each["pid"] == pid)


def sockets_of(netstat: Path, lab: AccelLab, pid: int) -> list[Json]:
    """Return a program's sockets; that it has answered late, on a busy machine, says nothing of them."""
    while (program := program_of(netstat, lab, pid))["report"] != "fresh":
        assert program["report"] == "late"
    sockets: list[Json] = program["sockets"]
    return sockets


def counts_of(netstat: Path, lab: AccelLab, pid: int) -> dict[str, int]:
    """Return what a program has counted by now."""
    while (program := program_of(netstat, lab, pid))["report"] != "fresh":
        assert program["report"] == "late"
    counts: dict[str, int] = program["counts"]
    return counts


def filled_in(script: str) -> str:
    for name, value in (("NEAR", repr(NEAR[4])), ("FAR", repr(FAR[4])), ("PORT", str(PORT))):
        script = script.replace(name, value)
    return script


# What follows a script: it does what its standard input says, in lines of Python's repr.
COMMANDS = """
for line in sys.stdin:
    exec(eval(line))
    print("done", flush=True)
"""
SERVER = """
print(os.getpid(), flush=True)
server = socket.create_server((NEAR, PORT), backlog=7)
print("ready", flush=True)
"""
CLIENT = """
peer = socket.create_connection((NEAR, PORT))
print("connected", flush=True)
"""
SENDER = """
print(os.getpid(), flush=True)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(10):
    sock.sendto(b"x", (FAR, 5999))
print("sent", flush=True)
"""


def do(script: Started, lines: str) -> None:
    """Let a script that takes commands do some lines."""
    script.tell(repr(filled_in(lines)))
    assert script.line() == "done"


def start(lab: AccelLab, script: str) -> tuple[Started, int]:
    """Start a script by the stack, which says a line when it has begun; return it and its process."""
    started = lab.python(lab.near, filled_in(script) + COMMANDS)
    pid = int(started.line())
    started.line()
    return started, pid


def start_client(lab: AccelLab) -> Started:
    """Start the far end's script, and wait until it is connected."""
    client = lab.python(lab.far, filled_in(CLIENT) + COMMANDS)
    assert client.line() == "connected"
    return client


def connect(lab: AccelLab) -> tuple[Started, int, Started]:
    """Return a server by the stack that has accepted, its process, and the client at the far end."""
    server, pid = start(lab, SERVER)
    client = start_client(lab)
    do(server, "connection, _ = server.accept()")
    return server, pid, client


def connection_of(netstat: Path, lab: AccelLab, pid: int) -> Json | None:
    """Return the one connection that a program has."""
    found = [each for each in sockets_of(netstat, lab, pid) if each["state"] != "LISTEN"]
    assert len(found) < 2
    return found[0] if found else None


def wait_for_state(netstat: Path, lab: AccelLab, pid: int, state: str, *, has_descriptor: bool) -> None:
    """Wait until the one connection has a state."""

    def is_there() -> bool:
        found = connection_of(netstat, lab, pid)
        return bool(found) and (found["state"], "descriptor" in found) == (state, has_descriptor)

    wait_until(is_there, state)


def wait_for_end(netstat: Path, lab: AccelLab, pid: int) -> None:
    """Wait until a program has no connection."""
    wait_until(lambda: connection_of(netstat, lab, pid) is None, "the connection to end")


def test_a_table_of_connections_and_listeners(lab: AccelLab, netstat: Path) -> None:
    server, pid = start(lab, SERVER)
    client = start_client(lab)
    wait_until(lambda: rows(netstat, lab, "--listening")[0][2] == "1", "a connection to be accepted")
    *words, program = rows(netstat, lab, "--listening")[0]
    assert words == ["tcp", "LISTEN", "1", "7", f"{NEAR[4]}:{PORT}", "0.0.0.0:*"]
    assert re.fullmatch(rf"python[.\d]*/{pid}", program)
    do(server, "connection, _ = server.accept()")
    do(client, "peer.sendall(b'x' * 1000)")
    wait_until(lambda: rows(netstat, lab)[0][2] == "1000", "bytes that nobody read")
    row = rows(netstat, lab)[0]
    assert row[:5] == ["tcp", "ESTAB", "1000", "0", f"{NEAR[4]}:{PORT}"]
    assert row[5].startswith(f"{FAR[4]}:")
    assert len(rows(netstat, lab, "--all")) == 2
    assert rows(netstat, lab, "--udp", "--all") == []
    found = connection_of(netstat, lab, pid)
    assert found
    assert f"pid={pid},fd={found['descriptor']}))" in run(netstat, lab, "--program").stdout
    assert str(Path(f"/proc/{pid}/fd/{found['descriptor']}").readlink()).startswith("socket:")


def test_the_peer_closes_first(lab: AccelLab, netstat: Path) -> None:
    server, pid, client = connect(lab)
    wait_for_state(netstat, lab, pid, "ESTABLISHED", has_descriptor=True)
    do(client, "peer.shutdown(socket.SHUT_WR)")
    wait_for_state(netstat, lab, pid, "CLOSE_WAIT", has_descriptor=True)
    do(server, "connection.close()")
    wait_for_end(netstat, lab, pid)


def test_the_program_closes_first(lab: AccelLab, netstat: Path) -> None:
    """Connections whose sockets are closed are shown as long as the stack has them."""
    server, pid, client = connect(lab)
    do(server, "connection.shutdown(socket.SHUT_WR)")
    wait_for_state(netstat, lab, pid, "FIN_WAIT2", has_descriptor=True)
    do(server, "connection.close()")
    wait_for_state(netstat, lab, pid, "FIN_WAIT2", has_descriptor=False)
    do(client, "peer.close()")
    wait_for_state(netstat, lab, pid, "TIME_WAIT", has_descriptor=False)
    kinds = {"tcp_listening": 1, "tcp_open": 0, "tcp_without_socket": 1, "udp_open": 0}
    assert program_of(netstat, lab, pid)["sockets_by_kind"] == kinds
    assert rows(netstat, lab)[0][1] == "TIME-WAIT"


def test_nobody_answers(lab: AccelLab, netstat: Path) -> None:
    """A SYN waits for a neighbour that is not there: it is dropped, and counted."""
    script = """
print(os.getpid(), flush=True)
sock = socket.socket()
sock.setblocking(False)
sock.connect_ex(("10.98.0.77", PORT))
print("begun", flush=True)
"""
    _, pid = start(lab, script)
    wait_for_state(netstat, lab, pid, "SYN_SENT", has_descriptor=True)
    wait_until(lambda: counts_of(netstat, lab, pid)["neighbour_dropped"] > 0, "a drop")


def test_a_queue_that_nobody_takes_from(lab: AccelLab, netstat: Path) -> None:
    """The far end reads nothing: what it has room for is acknowledged, the rest waits here."""
    server, pid, _ = connect(lab)
    send = """
connection.setblocking(False)
total = 0
while total < 1 << 26:
    try:
        total += connection.send(bytes(65536))
    except BlockingIOError:
        if not select.select([], [connection], [], 1)[1]:
            break
"""
    do(server, send)

    def held_bytes() -> int:
        found = connection_of(netstat, lab, pid) or {}
        return int(found["unsent_bytes"] + found["unacknowledged_bytes"])

    wait_until(lambda: rows(netstat, lab)[0][3] == str(held_bytes()) != "0", "the queue to stay as it is")
    # The far end's kernel has acknowledged what it had room for.
    do(server, f"assert total > {held_bytes()}")


def test_datagrams_wait(lab: AccelLab, netstat: Path) -> None:
    script = """
print(os.getpid(), flush=True)
sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
sock.bind(("::", 5003))
print("ready", flush=True)
"""
    _, pid = start(lab, script)
    send = f"""
sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
for _ in range(3):
    sock.sendto(b"x" * 100, ({NEAR[6]!r}, 5003))
"""
    lab.python(lab.far, send).result()
    wait_until(lambda: sockets_of(netstat, lab, pid)[0]["waiting_bytes"] == 300, "three datagrams")
    words = rows(netstat, lab, "--listening", "--udp")[0][:6]
    assert words == ["udp", "UNCONN", "300", "0", "[::]:5003", "[::]:*"]
    counts = counts_of(netstat, lab, pid)
    assert (counts["udp_in"], counts["ip_in"], counts["frames_in"], counts["tcp_in"]) == (3, 3, 3, 0)


def captured(file: Path) -> list[Packet]:
    """Return the packets of TCP."""
    return [each for each in rdpcap(str(file)) if TCP in each]


def test_counters_are_those_of_the_wire(lab: AccelLab, netstat: Path) -> None:
    with lab.capture(lab.far, f"tcp port {PORT}") as file:
        server, pid, client = connect(lab)
        do(client, "peer.sendall(bytes(200000))")
        do(server, "got = 0\nwhile got < 200000: got += len(connection.recv(65536))")
        do(server, "connection.sendall(bytes(100000))")
        do(client, "peer.recv(100000, socket.MSG_WAITALL)")
        do(client, "peer.close()")
        do(server, "assert connection.recv(1) == b''\nconnection.close()")
        wait_for_end(netstat, lab, pid)  # by the peer's last segment: nothing is on its way any more
        counts = counts_of(netstat, lab, pid)
        path = program_of(netstat, lab, pid)["frames"]
        wait_until(lambda: len(captured(file)) >= counts["tcp_in"] + counts["tcp_out"], "the capture")
    came = [each for each in captured(file) if each[IP].dst == NEAR[4]]
    left = [each for each in captured(file) if each[IP].src == NEAR[4]]
    for layer in ("tcp", "ip", "frames"):
        assert (counts[f"{layer}_in"], counts[f"{layer}_out"]) == (len(came), len(left)), layer
    assert (path["in"], path["out"]) == (len(came), len(left))
    assert path["bytes_in"] == sum(each[IP].len for each in came)
    assert path["bytes_out"] == sum(each[IP].len for each in left)
    assert not any(path["drops"].values())


@contextmanager
def losing(lab: AccelLab, every: int) -> Generator[Json]:
    """Lose each so many of the full frames that come to the far end; how many stands in what is given."""
    options = ["--every", str(every), "--least-bytes", "1000"]
    started = Started(lab.start(lab.far, str(local_tool("bw-drop")), INTERFACE, *options))
    assert json.loads(started.line())["type"] == "ready"
    counts: Json = {}
    try:
        yield counts
    finally:
        started.process.terminate()
        said = json.loads(started.process.communicate(timeout=HANG_S)[0])
        counts.update(said["interfaces"][INTERFACE])


def statistics(netstat: Path, lab: AccelLab) -> Mapping[str, int]:
    """Return the counters that are shown, by their words."""
    found: dict[str, int] = {}
    text = run(netstat, lab, "--statistics").stdout
    assert re.findall(r"^\w.*$", text, re.MULTILINE) == ["Ip:", "Tcp:", "Udp:", "Packet path:"]
    for line in text.splitlines():
        if line.startswith(" "):
            count, words = line.split(maxsplit=1)
            assert words not in found
            found[words] = int(count)
    return found


def test_what_is_lost_is_sent_again(lab: AccelLab, netstat: Path) -> None:
    before = everything(netstat, lab)["totals"]["counts"]
    size_bytes, every = 2_000_000, 40
    with losing(lab, every) as lost:
        server, pid, client = connect(lab)
        do(server, f"thread = threading.Thread(target=connection.sendall, args=(bytes({size_bytes}),))")
        do(server, "thread.start()")
        do(client, f"assert len(peer.recv({size_bytes}, socket.MSG_WAITALL)) == {size_bytes}")
        wait_until(
            lambda: (connection_of(netstat, lab, pid) or {}).get("unacknowledged_bytes") == 0, "all to arrive"
        )
        connection = connection_of(netstat, lab, pid)
        assert connection
        counts = counts_of(netstat, lab, pid)
    assert lost["dropped"] >= size_bytes // 1460 // every
    causes = ("_by_rack", "_by_probe", "_by_timeout")
    assert counts["tcp_retransmitted"] >= lost["dropped"]
    assert counts["tcp_retransmitted"] == sum(counts[f"tcp_retransmitted{cause}"] for cause in causes)
    for cause in ("", *causes):
        assert connection[f"retransmitted{cause}"] == counts[f"tcp_retransmitted{cause}"]
    shown = statistics(netstat, lab)
    again = "found lost by later ones that arrived (RACK)", "as a probe of the tail", "by timeout"
    for words, cause in zip(("segments sent again:", *again), ("", *causes), strict=True):
        name = f"tcp_retransmitted{cause}"
        assert shown[words] == before[name] + counts[name]
    assert shown["segments sent"] == before["tcp_out"] + counts["tcp_out"]
    assert f" retrans:{counts['tcp_retransmitted']} " in run(netstat, lab, "--extended").stdout


def test_a_stopped_program_is_said_not_to_answer(lab: AccelLab, netstat: Path) -> None:
    server, pid, client = connect(lab)
    _, other_pid = start(lab, SENDER)
    before = sockets_of(netstat, lab, pid)
    os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(5):  # it owes one report, however often it is asked
            done = run(netstat, lab)
            assert f"/{pid} does not answer" in done.stderr
            assert f"/{pid}" in done.stdout
        stopped = program_of(netstat, lab, pid)
        assert (stopped["report"], stopped["sockets"]) == ("late", before)
        assert len(sockets_of(netstat, lab, other_pid)) == 1
    finally:
        os.kill(pid, signal.SIGCONT)
    do(client, "peer.sendall(b'x')")
    do(server, "assert connection.recv(1) == b'x'")
    assert connection_of(netstat, lab, pid)


@pytest.mark.parametrize("killed", [False, True])
def test_totals_do_not_fall_when_a_program_ends(lab: AccelLab, netstat: Path, killed: bool) -> None:
    before = everything(netstat, lab)
    program, pid = start(lab, SENDER)
    wait_until(lambda: counts_of(netstat, lab, pid)["frames_out"] == 10, "ten frames")
    running = everything(netstat, lab)
    if killed:
        program.process.kill()
    else:
        do(program, "sock.sendto(b'last', (FAR, 5999))")
        program.result()
    wait_until(lambda: not everything(netstat, lab)["programs"], "its end")
    after = everything(netstat, lab)
    for name, count in after["totals"]["counts"].items():
        assert count >= running["totals"]["counts"][name] >= before["totals"]["counts"][name], name
    sent = after["totals"]["counts"]["udp_out"] - before["totals"]["counts"]["udp_out"]
    assert sent == (10 if killed else 11)
    assert after["programs_ended"] == before["programs_ended"] + 1


def test_no_service(netstat: Path, tmp_path: Path) -> None:
    for path, code in ((tmp_path / "none.sock", 3), (tmp_path / ("x" * 200), 2)):
        done = subprocess.run(
            [str(netstat), "--socket", str(path)], check=False, capture_output=True, text=True
        )
        assert done.returncode == code
        assert done.stderr.startswith(f"bw-netstat: {path}: ")
        assert done.stdout == ""
