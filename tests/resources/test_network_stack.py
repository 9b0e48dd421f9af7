# SPDX-License-Identifier: Apache-2.0
"""The seam of network stacks: the kernel's goes through it, and a made-up one shows each part of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.bench import load_bench
from hw.errors import BenchError, CapabilityError, ConfigError
from hw.protocols import CommandResult
from reports.latency.evidence import load_replay
from reports.latency.stack_proof import STACK_PROOF, StackEnd, StackProof
from resources import network_stack
from resources.network_stack import NetworkStack, Proof, load_network_stack, stack_names
from resources.network_stack_ends import FOUND, counters, frame_bytes, network_stack_on
from resources.profiles import load_profile
from resources.replay.evidence import LatencyEvidence, ReplayAttempt
from resources.replay.largest_pattern import LargestPatternSearch
from resources.replay.pattern import Pattern, load_pattern
from resources.replay.plan import ReplaySettings
from resources.replay.replay import Replay
from resources.replay.requirements import load_requirements
from tests.reports.sample_run import Disturbance, write_evidence

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ROOT / "targets"
SPEC = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
DAQ12 = ROOT / "traffic-gen" / "patterns" / "daq12.toml"

# A link setting, changed on the machine and given back through a journal that is written before.
SCRIPT = """\
set -eu
here=$(dirname "$0")
case $3 in
restore) [ ! -e "$here/undo" ] || { cp "$here/undo" "$here/../link"; rm "$here/undo"; } ;;
apply)
    [ "$2" = test0 ] || { echo "no queue on $2" >&2; exit 3; }
    [ ! -e "$here/broken" ] || { echo "it broke" >&2; exit 1; }
    cp "$here/../link" "$here/undo"
    echo busy-polling >"$here/../link"
    echo '{"type":"stack","stack":"user"}' ;;
esac
"""


@dataclass
class _Machine:
    """A node whose root is a folder of this machine."""

    root: Path
    name: str = "linux-rt"
    clock: str = "linux-rt"
    priority: int = 50
    powered: bool = True
    started: list[list[str]] = field(default_factory=list[list[str]])

    @property
    def link(self) -> str:
        return (self.root / "link").read_text().strip()

    def put(self, local: Path, remote: str) -> None:
        place = self.root / remote.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(local, place)

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        assert not check
        here = [str(self.root / word.lstrip("/")) if word.startswith("/") else word for word in argv]
        done = subprocess.run(here, capture_output=True, text=True, check=False, timeout=timeout_s)
        return CommandResult(tuple(argv), done.returncode, done.stdout, done.stderr)

    def start(self, argv: Sequence[str], stem: Path) -> Any:
        assert stem.name
        self.started.append([*argv])
        return None

    def get(self, remote: str, local: Path) -> None:
        shutil.copy(self.root / remote.lstrip("/"), local)

    def files(self, folder: str) -> list[str]:
        return sorted(each.name for each in (self.root / folder.lstrip("/")).iterdir())

    def bring(self, file: Path) -> str:
        return f"/brought/{file.name}"

    def fresh_folder(self, name: str) -> str:
        return f"/fresh/{name}"


def _on(stack: NetworkStack, machine: _Machine, interface: str, folder: Path) -> AbstractContextManager[None]:
    bench: Any = SimpleNamespace(node={machine.name: machine}.__getitem__)
    return network_stack_on(stack, bench, machine.name, {machine.name: interface}, folder)


def _silent(_line: str) -> None:
    """Progress that nobody watches."""


@pytest.fixture
def machine(tmp_path: Path) -> _Machine:
    root = tmp_path / "machine"
    (root / "stack").mkdir(parents=True)
    (root / "link").write_text("as found\n")
    return _Machine(root)


@pytest.fixture
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kinds of target: one has the kernel's stack and a made-up one, the other the kernel's alone."""
    folder = tmp_path / "targets"
    for kind in ("linux-rt", "windows"):
        shutil.copytree(TARGETS / kind / "stack", folder / kind / "stack")
    own = folder / "linux-rt" / "stack"
    (own / "user.sh").write_text(SCRIPT)
    (own / "user.toml").write_text(
        'schema = "benchwright.network_stack/1"\n'
        'transports = "tcp"\nmessage_max_bytes = 50000\narguments = "--poll 8"\n'
        '[environment]\nUSER_STACK = "test0"\n'
        '[put_on]\nfolder = "/stack"\nfiles = "user.sh"\ncommand = "sh /stack/user.sh"\n'
    )
    monkeypatch.setattr(network_stack, "TARGETS", folder)
    return folder


@pytest.fixture
def user(targets: Path) -> NetworkStack:
    return load_network_stack(targets / "linux-rt", "user")


# -- its description


def test_every_kind_of_target_that_is_provisioned_has_the_kernels_stack() -> None:
    kinds = {target.provisioning for target in SPEC.targets.values()}
    assert kinds == {"linux", "linux-rt", "windows"}
    for kind in kinds:
        stack = load_network_stack(TARGETS / kind, "kernel")
        assert (stack.arguments, stack.environment, stack.transports) == ((), {}, None)
        assert stack.preload == ()
        pattern = load_pattern(DAQ12)
        assert stack.carried(pattern) == pattern


def test_the_user_mode_stack_is_that_of_both_ends_each_with_a_service_of_its_own() -> None:
    stack = load_network_stack(TARGETS / "linux", "user")
    assert (stack.ends, stack.put_on, stack.preload) == ("both", None, ("libbw-accel.so",))
    assert stack.carried(load_pattern(DAQ12)) == load_pattern(DAQ12)
    assert stack.service is not None
    assert stack.proof is not None
    assert stack.proof.frame_bytes is None, "segments of TCP join and split messages"
    for node in ("linux", "p01"):
        socket = stack.words([stack.environment["BW_ACCEL_SOCKET"]], node, "")
        assert socket == [f"{stack.folder_on(node)}/stackd.sock"]
        serving = stack.words(stack.service.arguments, node, "test0")
        assert serving == ["serve", "--interface", "test0", "--socket", *socket]
        assert stack.words(stack.proof.arguments, node, "") == ["show", "--socket", *socket]


def test_a_stack_of_another_kind_is_skipped_and_one_of_none_is_bad_input(targets: Path) -> None:
    assert stack_names(targets / "linux-rt") == ("kernel", "kernel-tuned", "rtdip", "user")
    with pytest.raises(CapabilityError, match=r"windows/stack/user\.toml: .* there are: kernel$"):
        load_network_stack(targets / "windows", "user")
    there = r"other\.toml: no network stack 'other' .* there are: kernel, kernel-tuned, rtdip, user$"
    with pytest.raises(ConfigError, match=there):
        load_network_stack(targets / "linux-rt", "other")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("message_max_bytes = 50000", "message_max_bytes = 0", "message_max_bytes: must be"),
        ('transports = "tcp"', 'transport = "tcp"', "transport"),
        ('command = "sh /stack/user.sh"\n', "", r"put_on\.command"),
        ("benchwright.network_stack/1", "benchwright.network_stack/2", "schema"),
        ('USER_STACK = "test0"', 'USER_STACK = ""', r"environment\.USER_STACK"),
        ('USER_STACK = "test0"', 'LD_PRELOAD = "/x.so"', r"environment\.LD_PRELOAD: .* `preload`"),
    ],
)
def test_a_wrong_file_is_refused_with_its_field(targets: Path, old: str, new: str, said: str) -> None:
    path = targets / "linux-rt" / "stack" / "user.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=rf"user\.toml.*{said}"):
        load_network_stack(targets / "linux-rt", "user")


PROOF_TOOL = '[proof]\ntool = "asked"\narguments = ""\n'
PROOF = f'{PROOF_TOOL}delivered = "frames.delivered"\n'
IN_BYTES = 'delivered_bytes = "frames.bytes_in"\n'
NETSTAT = "TcpExt: A\nTcpExt: 1\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 50 60\n"


@pytest.mark.parametrize(
    ("proof", "room_bytes", "counted"),
    [
        (f"{PROOF}frame_bytes = 700\n", 700, StackEnd(3, 50, 60)),
        (f'{PROOF}frame_bytes_field = "room.bytes"\n', 4000, StackEnd(3, 50, 60)),
        (f"{PROOF_TOOL}{IN_BYTES}", None, StackEnd(None, 50, 60, 900)),
    ],
)
def test_an_end_counts_frames_of_some_room_or_bytes(
    targets: Path, proof: str, room_bytes: int | None, counted: StackEnd
) -> None:
    """The room is a number of the file, or what the stack says."""
    path = targets / "linux-rt" / "stack" / "user.toml"
    path.write_text(f"{path.read_text()}{proof}")
    said = '{"room": {"bytes": 4000}, "frames": {"delivered": 3, "bytes_in": 900}}'

    def run(argv: Sequence[str]) -> CommandResult:
        return CommandResult(tuple(argv), 0, said if argv == ["asked"] else NETSTAT, "")

    def tool(_name: str, tool: str) -> str:
        return tool

    bench: Any = SimpleNamespace(node={"linux-rt": SimpleNamespace(run=run)}.__getitem__, tool=tool)
    stack = load_network_stack(targets / "linux-rt", "user")
    assert frame_bytes(stack, bench, "linux-rt") == room_bytes
    assert counters(stack, bench, "linux-rt") == counted


def test_a_replay_keeps_what_the_ends_have_gained_in_bytes(user: NetworkStack, tmp_path: Path) -> None:
    """And brings programs and libraries before it counts: that is traffic of the kernel's."""
    said = {"linux-rt": 900, "p01": 70}
    did: list[str] = []

    def node(name: str) -> Any:
        def run(argv: Sequence[str]) -> CommandResult:
            did.append(f"{name} {argv[0]}")
            shown = json.dumps({"frames": {"bytes_in": said[name]}})
            return CommandResult(tuple(argv), 0, shown if argv == ["asked"] else NETSTAT, "")

        return SimpleNamespace(run=run)

    def tool(name: str, tool: str = "bw-traffic", *, dynamic: bool = False) -> str:
        did.extend([f"{name} {tool}"] * dynamic)
        return tool

    def library(name: str, file: str) -> str:
        did.append(f"{name} {file}")
        return file

    bench: Any = SimpleNamespace(spec=SPEC, node=node, tool=tool, library=library)
    settings = ReplaySettings(DAQ12, "aligned-12")
    replay = Replay(bench, SPEC.targets["linux-rt"], cast("Any", None), settings, tmp_path, _silent)
    both = replace(
        user, ends="both", proof=Proof("asked", (), "frames.bytes_in", None), preload=("libuser.so",)
    )
    replay.stack = ("linux-rt", both)
    counted = replay._count(["p01"])  # pyright: ignore[reportPrivateUsage]
    brought = [f"{name} {file}" for name in said for file in ("libuser.so", "bw-traffic")]
    assert did[:4] == brought
    assert "linux-rt asked" in did[4:]
    said = {"linux-rt": 5900, "p01": 71}
    proof = replay._proof(counted, ["p01"])  # pyright: ignore[reportPrivateUsage]
    gained = {"linux-rt": StackEnd(None, 0, 0, 5000), "p01": StackEnd(None, 0, 0, 1)}
    assert proof == StackProof("user", None, "linux-rt", gained)
    assert StackProof.read(tmp_path / STACK_PROOF) == proof
    assert "frame_bytes" not in (tmp_path / STACK_PROOF).read_text()


@pytest.mark.parametrize(
    ("proof", "said"),
    [
        (PROOF, "proof.frame_bytes: missing"),
        (f"{PROOF}frame_bytes = 0", "proof.frame_bytes: must be"),
        (f'{PROOF}frame_bytes = 1\nframe_bytes_field = "a"', "proof.frame_bytes: unknown key"),
        (PROOF_TOOL, "proof.delivered: missing, and so is delivered_bytes"),
        (f"{PROOF_TOOL}frame_bytes = 1", "proof.delivered: missing, and so is delivered_bytes"),
        (f"{PROOF}{IN_BYTES}", "proof.delivered: unknown key"),
        (f"{PROOF_TOOL}{IN_BYTES}frame_bytes = 1", "proof.frame_bytes: unknown key"),
        (f'{PROOF_TOOL}{IN_BYTES}frame_bytes_field = "a"', "proof.frame_bytes_field: unknown key"),
        (f"{PROOF_TOOL}delivered_bytes = 7", "proof.delivered_bytes: must be a string"),
    ],
)
def test_a_proof_says_in_one_way_what_is_counted(targets: Path, proof: str, said: str) -> None:
    path = targets / "linux-rt" / "stack" / "user.toml"
    path.write_text(f"{path.read_text()}{proof}\n")
    with pytest.raises(ConfigError, match=rf"user\.toml: {said}"):
        load_network_stack(targets / "linux-rt", "user")


# -- put on and taken off


def test_a_stack_is_put_on_and_given_back(user: NetworkStack, machine: _Machine, tmp_path: Path) -> None:
    with _on(user, machine, "test0", tmp_path / "evidence"):
        assert machine.link == "busy-polling"
    assert machine.link == "as found"
    assert json.loads((tmp_path / "evidence" / FOUND).read_text())["stack"] == "user"


def test_what_a_killed_run_has_left_is_given_back_first(
    user: NetworkStack, machine: _Machine, tmp_path: Path
) -> None:
    context = _on(user, machine, "test0", tmp_path)
    context.__enter__()  # and nothing ends it
    with _on(user, machine, "test0", tmp_path):
        assert (machine.root / "stack" / "undo").read_text() == "as found\n"
    assert machine.link == "as found"
    context.gen.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [BenchError("it lost its power"), KeyboardInterrupt()])
def test_an_error_meanwhile_leaves_nothing(
    user: NetworkStack, machine: _Machine, tmp_path: Path, error: BaseException
) -> None:
    with pytest.raises(type(error)), _on(user, machine, "test0", tmp_path):
        raise error
    assert machine.link == "as found"


def test_a_machine_that_cannot_have_it_says_why(
    user: NetworkStack, machine: _Machine, tmp_path: Path
) -> None:
    with (
        pytest.raises(CapabilityError, match="network stack user: linux-rt: no queue on test9"),
        _on(user, machine, "test9", tmp_path),
    ):
        pass
    (machine.root / "stack" / "broken").touch()
    with (
        pytest.raises(BenchError, match="`apply`: exit code 1: it broke"),
        _on(user, machine, "test0", tmp_path),
    ):
        pass
    assert machine.link == "as found"


def test_the_kernels_stack_says_what_it_goes_through(machine: _Machine, tmp_path: Path) -> None:
    """On this machine's own loopback interface, for real."""
    stack = load_network_stack(TARGETS / "linux-rt", "kernel")
    with _on(stack, machine, "lo", tmp_path):
        pass
    found = json.loads((tmp_path / FOUND).read_text())
    assert (found["stack"], found["interface"], found["qdisc"]) == ("kernel", "lo", "noqueue")
    with (
        pytest.raises(CapabilityError, match="network stack kernel: linux-rt: there is no interface test77"),
        _on(stack, machine, "test77", tmp_path),
    ):
        pass


# -- what it carries, and what its programs are told


def test_what_it_does_not_carry_is_left_out_of_the_pattern(user: NetworkStack) -> None:
    pattern = load_pattern(DAQ12)
    carried = user.carried(pattern)
    assert {stream.transport for stream in pattern.streams} == {"tcp", "udp"}
    assert {stream.transport for stream in carried.streams} == {"tcp"}
    assert max(stream.size_bytes for stream in carried.streams) <= 50_000
    left_out = {stream.id for stream in pattern.streams} - {stream.id for stream in carried.streams}
    of_eleven = user.carried(pattern, 11)
    assert {s.id for s in pattern.streams} - {s.id for s in of_eleven.streams} == {
        stream for stream in left_out if stream // 10 == 11
    }
    with pytest.raises(CapabilityError, match=f"pattern {pattern.name}: network stack user carries udp, not"):
        replace(user, transports=("udp",), message_max_bytes=1).carried(pattern)


def _evidence(folder: Path) -> LatencyEvidence:
    bench = cast("Any", SimpleNamespace(spec=SPEC))
    requirements = load_requirements(ROOT / "robot" / "requirements" / "daq12.toml")
    target = SPEC.targets["linux-rt"]
    return LatencyEvidence(bench, target, "user", "two-way", load_profile("ci"), requirements, folder)


def test_streams_that_it_does_not_carry_are_not_tested(
    targets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no verdict and a reason; the others are judged; the largest pattern is one without them."""
    evidence = _evidence(tmp_path)
    replayed: list[Pattern] = []

    def attempt(pattern: Pattern, *_: object) -> None:
        replayed.append(pattern)
        write_evidence(tmp_path, Disturbance(), seed=0)
        evidence.attempts.append(ReplayAttempt(tmp_path, load_replay(tmp_path).replay()))

    monkeypatch.setattr(evidence, "_attempt", attempt)
    pattern = load_pattern(DAQ12)
    evidence.replay(pattern, ReplaySettings(DAQ12, "aligned-12"), _silent)
    [sent] = replayed
    left_out = {stream.id for stream in pattern.streams} - {stream.id for stream in sent.streams}
    assert set(evidence.not_carried) == left_out
    assert set(evidence.decided()) == {stream.id for stream in sent.streams}
    with pytest.raises(CapabilityError, match="network stack user carries tcp, not udp"):
        evidence.records(
            next(s.id for s in pattern.streams if s.transport == "udp"), cast("Any", None), "test"
        )
    search = LargestPatternSearch(
        evidence,
        pattern,
        ReplaySettings(DAQ12, "aligned-12"),
        evidence.requirements,
        cast("Any", None),
        _silent,
    )
    judged = set(search._requirements(pattern.producers, True))  # pyright: ignore[reportPrivateUsage]
    assert judged == {stream.id for stream in sent.streams}


def test_programs_on_the_target_alone_use_it(user: NetworkStack, machine: _Machine, tmp_path: Path) -> None:
    """A receiver on the target, or a sender where the target produces; no other command line changes."""
    other = _Machine(machine.root, "p01")
    nodes = {"linux-rt": machine, "p01": other}
    asked: list[str] = []

    def tool(node: str, *, dynamic: bool = False) -> str:
        asked.extend([node] * dynamic)
        return f"{node}/bw-traffic"

    def library(node: str, name: str) -> str:
        return f"/{node}/{name}"

    bench: Any = SimpleNamespace(spec=SPEC, node=nodes.__getitem__, tool=tool, library=library)
    settings = ReplaySettings(DAQ12, "aligned-12")
    replay = Replay(bench, SPEC.targets["linux-rt"], cast("Any", None), settings, tmp_path, _silent)
    recv, send = replay._start_recv, replay._start_send  # pyright: ignore[reportPrivateUsage]
    recv(tmp_path / "plan.toml")
    assert machine.started.pop()[:2] == ["linux-rt/bw-traffic", "recv"]
    replay.stack = ("linux-rt", user)
    recv(tmp_path / "plan.toml")
    send("p01", [1], tmp_path / "plan.toml")
    [received], [sent] = machine.started, other.started
    assert received[:4] == ["env", "USER_STACK=test0", "linux-rt/bw-traffic", "recv"]
    assert received[-2:] == ["--poll", "8"]
    assert not asked
    assert sent[:2] == ["p01/bw-traffic", "send"]
    assert "--poll" not in sent
    replay.stack = ("linux-rt", replace(user, preload=("libuser.so", "/opt/libvendor.so")))
    with pytest.raises(BenchError, match=r"linux-rt: bw-traffic cannot .* /linux-rt/libuser\.so loaded"):
        recv(tmp_path / "plan.toml")
    assert asked == ["linux-rt"], "the dynamic build; and here is neither it nor a library"
    assert machine.started == [received]


ADDRESSES = """\
1: lo    inet 127.0.0.1/8 scope host lo
4: ctl0    inet 10.0.0.11/24 scope global ctl0
7: p01-test@if6    inet {address}/24 brd + scope global p01-test
"""


def test_programs_on_all_ends_use_one_with_the_words_of_their_node(
    user: NetworkStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sender and receiver alike: libraries, environment, arguments, each its own folder and interface."""
    started: dict[str, tuple[Any, ...]] = {}

    def start_program(node: Any, argv: list[str], _stem: Path, *loaded: Any) -> None:
        started[node.name] = (argv, *loaded)

    monkeypatch.setattr(network_stack, "start_program", start_program)
    shown = ADDRESSES.format(address=SPEC.producers[1].address)

    def node(name: str) -> Any:
        def run(argv: Sequence[str]) -> CommandResult:
            assert (name, argv[0]) == ("p01", "ip"), "the bench file says the target's"
            return CommandResult(tuple(argv), 0, shown, "")

        def same(word: Any) -> str:
            return str(word)

        return SimpleNamespace(name=name, run=run, priority=50, bring=same, fresh_folder=same)

    def tool(name: str, *, dynamic: bool) -> str:
        return f"/{name}/dynamic/bw-traffic" if dynamic else ""

    def library(name: str, file: str) -> str:
        return f"/{name}/{file}"

    bench: Any = SimpleNamespace(spec=SPEC, node=node, tool=tool, library=library)
    settings = ReplaySettings(DAQ12, "aligned-12")
    replay = Replay(bench, SPEC.targets["linux-rt"], cast("Any", None), settings, tmp_path, _silent)
    both = replace(
        user,
        ends="both",
        put_on=None,
        arguments=("--at", "$folder/$interface"),
        environment={
            "USER_SOCKET": "$folder/user.sock",
            "USER_INTERFACE": "$interface",
            "USER_SPIN_US": "50",
        },
        preload=("libuser.so",),
    )
    replay.stack = ("linux-rt", both)
    replay._start_recv(tmp_path / "plan.toml")  # pyright: ignore[reportPrivateUsage]
    replay._start_send("p01", [1], tmp_path / "plan.toml")  # pyright: ignore[reportPrivateUsage]
    assert set(started) == {"linux-rt", "p01"}
    for (name, (argv, environment, libraries)), interface in zip(
        started.items(), (SPEC.targets["linux-rt"].test_interface, "p01-test"), strict=True
    ):
        folder = f"/run/benchwright/stack/{name}"
        assert argv[0] == f"/{name}/dynamic/bw-traffic"
        assert argv[-2:] == ["--at", f"{folder}/{interface}"]
        assert environment == {
            "USER_SOCKET": f"{folder}/user.sock", "USER_INTERFACE": interface, "USER_SPIN_US": "50",
        }  # fmt: skip
        assert libraries == [f"/{name}/libuser.so"]
    shown = ADDRESSES.format(address="192.0.2.77")
    with pytest.raises(BenchError, match=rf"p01: no interface has {SPEC.producers[1].address}"):
        replay._start_send("p01", [1], tmp_path / "plan.toml")  # pyright: ignore[reportPrivateUsage]


def test_its_command_is_told_folder_and_interface(
    user: NetworkStack, machine: _Machine, tmp_path: Path
) -> None:
    assert user.put_on is not None
    script = ("sh", "-c", 'echo "$0" "$@"', "$folder", "$interface")
    told = replace(user, put_on=replace(user.put_on, command=script))
    with _on(told, machine, "test0", tmp_path):
        pass
    said = (tmp_path / FOUND).read_text().split()
    assert said == [str(machine.root / "stack"), "test0", "--interface", "test0", "apply"]
