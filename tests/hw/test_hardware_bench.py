# SPDX-License-Identifier: Apache-2.0
"""A bench without a `virtual` section: machines behind labgrid's own SSHDriver and a power switch."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hw.bench import load_bench
from hw.errors import BenchError, ConfigError
from hw.provisioning import Provisioner
from hw.session import open_bench
from reports import load_replay
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import Replay
from tests.hw.ssh_lab import HOST, PORT, PRODUCER, TARGET, TEST_PRODUCERS, TEST_TARGET, SshLab, open_lab
from tests.patience import HANG_S

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

PATTERN = """
[pattern]
schema = "benchwright.pattern/1"
name = "two-producers"
source = "this test"

[[stream]]
id = 10
transport = "tcp"
size_bytes = 20000
period_us = 100000
budget_us = 1000000

[[stream]]
id = 12
transport = "udp"
size_bytes = 1000
period_us = 100000
budget_us = 1000000

[[stream]]
id = 23
transport = "tcp"
size_bytes = 100
period_us = 50000
budget_us = 1000000
low_latency = true
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[SshLab]:
    """Return the machines, powered off."""
    with open_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


def bench_text(lab: SshLab, target_driver: str = "keyfile: login_key") -> str:
    """Return a bench file that lies beside the keys; the path of a key is relative to it."""

    def machine(name: str, address: str, driver: str) -> str:
        power = lab.power(name)
        return (
            f"  {name}:\n    resources:\n"
            f"      NetworkService: {{address: {address}, port: {PORT}, username: root}}\n"
            f"    drivers:\n      ExternalPowerDriver: {{cmd_on: {power} on, cmd_off: {power} off}}\n"
            f"      SSHDriver: {{{driver}, connection_timeout: 20.0}}\n"
        )

    producers = "\n".join(
        f"    {number}: {{node: producer, address: {address}}}"
        for number, address in enumerate(TEST_PRODUCERS, start=1)
    )
    return f"""
targets:
{machine("target", TARGET, target_driver)}{machine("producer", PRODUCER, "keyfile: login_key")}
benchwright:
  schema: benchwright.bench/1
  name: {lab.prefix}-bench
  simulated: true
  reference_clock: host
  nodes:
    host: {{kind: local, clock: host, priority: 60}}
    target: {{kind: labgrid, clock: target, priority: 50}}
    producer: {{kind: labgrid, clock: producer, priority: 50}}
  clocks:
    host: {{node: host, address: {HOST}}}
    producer: {{node: producer, address: {PRODUCER}}}
  targets:
    linux-rt: {{node: target, test_address: {TEST_TARGET}, test_interface: test0}}
  producers:
{producers}
  witness: {{node: producer, cpus: [0]}}
"""


@pytest.fixture(scope="module")
def bench_file(lab: SshLab) -> Path:
    """Return the bench file of the lab."""
    path = lab.folder / "bench.yaml"
    path.write_text(bench_text(lab))
    return path


def test_nodes_run_commands_and_exchange_files(lab: SshLab, bench_file: Path, tmp_path: Path) -> None:
    script = tmp_path / "answer"
    script.write_text("#!/bin/sh\nexit 7\n")
    script.chmod(0o755)

    def session() -> None:
        with open_bench(bench_file) as bench:
            with pytest.raises(BenchError, match="node target is off"):
                bench.node("target")
            bench.power_on(["target", "producer"])
            target = bench.node("target")
            assert f"{TARGET}/24" in target.run(["ip", "-4", "address"]).stdout
            assert (
                target.run(["sh", "-c", "echo 'two  words'; echo \"$1\"", "sh", "a 'b"]).stdout
                == "two  words\na 'b\n"
            )
            with pytest.raises(BenchError, match="target: false: exit code 1"):
                target.run(["false"])
            target.put(script, "/run/deep/folder/answer")
            back = tmp_path / "back"
            target.get("/run/deep/folder/answer", back)
            assert back.read_bytes() == script.read_bytes()
            mode = target.run(["stat", "-c", "%a", "/run/deep/folder/answer"]).stdout.strip()
            assert int(mode, 8) == stat.S_IMODE(script.stat().st_mode)
            assert (
                "benchwright" not in bench.node("producer").run(["ls", "/run"]).stdout
            )  # machines share no files
            bench.power_off("target")
            with pytest.raises(BenchError, match="node target is off"):
                bench.node("target")

    lab.inside("host", session)


def test_tools_outlive_the_command_that_started_them(lab: SshLab, bench_file: Path, tmp_path: Path) -> None:
    def session() -> None:
        with open_bench(bench_file) as bench:
            bench.power_on(["target"])
            node = bench.node("target")
            tool = bench.tool("target")
            job = node.start([tool, "witness", "--duration-ms", "300", "--cpu", "0"], tmp_path / "witness")
            job.wait_ready(HANG_S)
            assert job.wait(HANG_S) == 0
            result = json.loads(job.fetch().read_text().splitlines()[-1])
            assert (result["type"], result["complete"]) == ("result", True)
            job = node.start([tool, "witness", "--cpu", "none"], tmp_path / "wrong")
            with pytest.raises(BenchError, match=r"exit code 2 before it was ready: .*--cpu"):
                job.wait_ready(HANG_S)

    lab.inside("host", session)


def test_provisioning_reads_the_facts_of_a_machine(lab: SshLab, bench_file: Path) -> None:
    def session() -> None:
        with open_bench(bench_file) as bench:
            bench.power_on(["target"])
            provisioner = Provisioner(bench.node("target"), bench.spec.targets["linux-rt"])
            facts = provisioner.facts()
            assert [nic["name"] for nic in facts["nics"]] == ["control0", "test0"]
            assert facts["kernel"]["release"] == bench.node("target").run(["uname", "-r"]).stdout.strip()
            wrong = {item["item"] for item in provisioner.check()}
            assert ("kernel preempt-rt" in wrong) is not facts["kernel"]["preempt_rt"]

    lab.inside("host", session)


def packets_of_ssh(duration_s: float) -> list[str]:
    """Return the packets of SSH on the target's link during a time."""
    argv = ["timeout", f"{duration_s:.1f}", "tcpdump", "-l", "-n", "-i", "target", f"tcp port {PORT}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.timed
def test_replay_in_silence(lab: SshLab, bench_file: Path, tmp_path: Path) -> None:
    """Longer than labgrid's own interval of keepalives, and no packet of SSH goes to the target meanwhile."""
    pattern_file = tmp_path / "pattern.toml"
    pattern_file.write_text(PATTERN)
    settings = ReplaySettings(pattern_file, "staggered", warmup_ms=1000, duration_ms=17_000, grace_ms=500)
    seen: dict[str, list[str]] = {}

    def listen(counting_s: float) -> None:
        seen["counting"] = packets_of_ssh(counting_s - 0.5)

    def session() -> dict[int, dict[str, int]]:
        with open_bench(bench_file) as bench:
            target = bench.spec.targets["linux-rt"]
            pattern = load_pattern(pattern_file)
            replay = Replay(bench, target, pattern, settings, tmp_path / "run", lambda _line: None)
            replay.during = listen
            answers = replay.run()
            assert answers.faults == []
            assert answers.recv["valid"], answers.recv["invalid_reasons"]
            assert load_replay(answers.folder).witness is not None
            assert set(answers.lines_before) == {"host", "producer"}
            with ThreadPoolExecutor(1) as pool:
                capture = pool.submit(packets_of_ssh, 2.0)
                bench.node("target").run(["sleep", "1"])
                seen["afterwards"] = capture.result()
            return {stream["id"]: stream for stream in answers.recv["streams"]}

    streams = lab.inside("host", session)
    assert {number: stream["expected"] for number, stream in streams.items()} == {10: 170, 12: 170, 23: 340}
    assert {number: stream["lost"] for number, stream in streams.items()} == {10: 0, 12: 0, 23: 0}
    assert seen["counting"] == []
    assert seen["afterwards"]


def test_the_next_run_ends_the_tools_of_a_killed_one(lab: SshLab, bench_file: Path, tmp_path: Path) -> None:
    """Nobody cuts the power of a real machine when a run is killed: its tools stay, and hold their ports."""

    def session() -> None:
        for name in ("first", "second"):
            with open_bench(bench_file) as bench:
                bench.power_on(["producer"])
                argv = [bench.tool("producer"), "offset", "--serve", f"{PRODUCER}:19998"]
                bench.node("producer").start(argv, tmp_path / name).wait_ready(HANG_S)

    lab.inside("host", session)


def test_a_disturbance_of_a_killed_run_is_taken_away(lab: SshLab, tmp_path: Path) -> None:
    """The kernel of the machine under test may have no netem: another discipline stands for it."""
    file = tmp_path / "bench.yaml"
    keys = bench_text(lab).replace("keyfile: ", f"keyfile: {lab.folder}/")
    file.write_text(f"{keys}  impairment: {{node: producer, interface: test0}}\n")
    tc = ["tc", "-n", lab.namespace("producer"), "qdisc"]
    subprocess.run(
        [*tc, "add", "dev", "test0", "root", "tbf", "rate", "1mbit", "burst", "10k", "limit", "10k"],
        check=True,
    )

    def session() -> str:
        with open_bench(file):
            return subprocess.run(
                [*tc, "show", "dev", "test0"], check=True, capture_output=True, text=True
            ).stdout

    assert "tbf" not in lab.inside("host", session)


def test_a_machine_that_does_not_answer_is_the_fault_of_the_bench(lab: SshLab, tmp_path: Path) -> None:
    text = (
        bench_text(lab, f"keyfile: {lab.folder}/login_key")
        .replace("20.0", "2.0")
        .replace(f"{lab.power('target')} on", "/bin/true")
    )
    subprocess.run([str(lab.power("target")), "off"], check=True)
    file = tmp_path / "bench.yaml"
    file.write_text(text)

    def session() -> None:
        with (
            open_bench(file) as bench,
            pytest.raises(BenchError, match=r"node target does not answer over SSH: .*refused"),
        ):
            bench.power_on(["target"])

    lab.inside("host", session)


def test_a_power_switch_that_fails_is_the_fault_of_the_bench(lab: SshLab, tmp_path: Path) -> None:
    file = tmp_path / "bench.yaml"
    file.write_text(bench_text(lab).replace(f"{lab.power('target')} on", "/bin/false"))

    def session() -> None:
        with (
            open_bench(file) as bench,
            pytest.raises(BenchError, match="node target: its power cannot be switched on"),
        ):
            bench.power_on(["target"])

    lab.inside("host", session)


@pytest.mark.parametrize(
    ("driver", "named"),
    [
        ("keyfil: login_key", "keyfil"),
        ("keyfile: 3", "keyfile"),
        ("keyfile: login_key, namespce: x", "namespce"),
    ],
)
def test_what_labgrid_does_not_know_is_refused(lab: SshLab, tmp_path: Path, driver: str, named: str) -> None:
    file = tmp_path / "bench.yaml"
    file.write_text(bench_text(lab, driver))
    load_bench(file)  # its own section is right
    with pytest.raises(ConfigError, match=f"{file}: targets: .*{named}"), open_bench(file):
        pass
