# SPDX-License-Identifier: Apache-2.0
"""A native Linux machine as a node of a bench: a namespace of this machine that changes nothing of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hw.bench import SWITCH, NodeKind, load_bench
from hw.drivers import scp
from hw.drivers.labgrid_api import register_all
from hw.drivers.ssh import SshNode
from hw.errors import BenchError, CapabilityError, ConfigError, OverdueError
from hw.faults import Fault, with_fault
from hw.provisioning import TARGETS, Provisioner, load_recipe
from hw.session import Bench
from hw.virtual import network
from hw.virtual.bench_network import namespace_of
from reports.rejudge.applied import applied_discrepancies
from reports.rejudge.simulated import signs_of_emulation
from resources.every_target import load_kind_suites
from resources.network_stack import load_network_stack
from tests.patience import HANG_S, STALL_S

BENCH_FILE = Path(__file__).parent / "one_linux.yaml"
TARGET = "linux"
PROVISION = "/run/benchwright/provision/provision.sh"
HOST_SETTINGS = (
    "kernel/sched_rt_runtime_us",
    "kernel/timer_migration",
    "kernel/nmi_watchdog",
    "vm/swappiness",
    "net/core/rmem_max",
    "net/core/rmem_default",
    "net/core/netdev_max_backlog",
    "net/ipv4/tcp_rmem",
)
"""Of this machine: what its settings.conf names, and this process sees in the host's own namespace."""
SHARED_SETTING = "kernel/sched_rt_runtime_us"

register_all()


@pytest.fixture
def node(bench: Bench) -> SshNode:
    """Return the machine, switched on again where a test has cut its power."""
    bench.power_on([TARGET])
    found = bench.node(TARGET)
    assert isinstance(found, SshNode)
    return found


@pytest.fixture
def provisioner(bench: Bench, node: SshNode) -> Provisioner:
    """Return what provisions the machine."""
    return Provisioner(node, bench.spec.targets[TARGET])


def of_host() -> dict[str, str]:
    """Return the host's own settings; without that which benches of tests beside this one switch."""
    files = {name: Path("/proc/sys", name) for name in HOST_SETTINGS if name != SHARED_SETTING}
    return {name: file.read_text() for name, file in files.items() if file.exists()}


def test_its_files_are_those_of_every_linux_target() -> None:
    """All that the scripts source goes along: nothing is kept twice."""
    recipe = load_recipe(TARGETS / TARGET)
    brought = {Path(name).name for name in recipe.files_besides}
    assert brought == {file.name for file in (TARGETS / "linux-rt/provision").glob("*.sh")}
    assert recipe.command[-2:] == ("--scope", "namespace")
    assert load_network_stack(TARGETS / TARGET, "kernel").install is not None


def test_a_file_besides_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "provision").mkdir()
    file = tmp_path / "provision.toml"
    file.write_text('folder = "/x"\ncommand = "/x/go"\nfiles_besides = "../no.sh"\n')
    with pytest.raises(ConfigError, match=rf"{file}: files_besides: '../no.sh': there is no such file"):
        load_recipe(tmp_path)


def test_its_clock_takes_no_suite_of_clocks() -> None:
    """What steers a clock would steer the host's."""
    suites = load_kind_suites(TARGETS / TARGET, profile="ci")
    assert suites.has is not None
    assert "clock" not in suites.has
    assert not suites.profile.only_by_name
    assert load_kind_suites(TARGETS / TARGET, profile="quick").profile.only_by_name


def test_the_bench_for_beginners_needs_no_guest(repository: Path) -> None:
    """All twelve producers are namespaces, and what it says of itself is what it is."""
    spec, virtual = (load_bench(repository / f"hw/benches/{name}.yaml") for name in ("native", "virtual"))
    assert spec.simulated
    assert "VirtualGuest" not in str(spec.labgrid_targets)
    assert sorted(spec.producers) == sorted(virtual.producers)
    assert {spec.nodes[each.node].kind for each in spec.producers.values()} == {NodeKind.NAMESPACE}
    assert spec.targets[TARGET] == virtual.targets[TARGET]
    assert spec.virtual == virtual.virtual
    signs = signs_of_emulation(repository, {"host": {"environment": spec.environment}, "target": {}})
    assert any("network namespace" in sign for sign in signs)


@pytest.mark.parametrize("fault", [Fault.WRONG_IMAGE, Fault.HANGS_AT_PROMPT])
def test_it_has_no_image_that_could_be_wrong(fault: Fault) -> None:
    with pytest.raises(CapabilityError, match=f"{fault} is no fault of a VirtualLinux; it can have: "):
        with_fault(load_bench(BENCH_FILE), TARGET, fault)


def test_provisioning_for_a_namespace_refuses_a_machine_of_its_own(repository: Path) -> None:
    """A bench file may name this kind's provisioning for any machine; here it is this one."""
    script = repository / "targets/linux-rt/provision/provision.sh"
    settings = repository / "targets/linux/provision/settings.conf"
    before = of_host()
    for scope, said, code in (
        ("namespace", "this is no namespace that the bench has made: /proc/sys is not read-only", 3),
        ("galaxy", 'unknown scope "galaxy"; allowed: machine, namespace', 2),
    ):
        done = subprocess.run(
            ["sh", script, "--settings", settings, "--scope", scope, "check"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (code, f"provision.sh: {said}\n")
    assert of_host() == before


@pytest.mark.simulated
def test_what_is_shared_is_said_and_stays_as_it_is(
    provisioner: Provisioner, node: SshNode, tmp_path: Path
) -> None:
    before, host = provisioner.facts(), of_host()
    folder = tmp_path / "evidence" / "provisioning" / TARGET
    folder.mkdir(parents=True)
    done = provisioner.prepare(folder)
    assert applied_discrepancies(tmp_path, []) == ([], 0)
    assert of_host() == host
    assert done.facts["shared_with_host"][:4] == ["kernel", "processors", "memory", "system clock"]
    assert done.facts["settings"]["sysctl net/ipv4/tcp_rmem"] == "4096 2097152 16777216"
    items = {
        item["item"]: item
        for item in map(json.loads, (folder / "apply.ndjson").read_text().splitlines()[:-1])
    }
    changed = {name for name, item in items.items() if item["changed"]}
    assert changed <= {"sysctl net/ipv4/tcp_rmem", *(name for name in items if "test0/" in name)}
    shared = {name for name, item in items.items() if "shared with the bench's host" in item["note"]}
    assert {"kernel preempt-rt", "governor all", "idle latency-max-us", "service irqbalance"} < shared
    assert {f"sysctl {name}" for name in HOST_SETTINGS} - {"sysctl net/ipv4/tcp_rmem"} < shared
    assert {items[name]["status"] for name in shared} == {"not applicable"}
    swappiness = host["vm/swappiness"].strip()
    assert items["sysctl vm/swappiness"]["found"] == swappiness
    assert provisioner.check() == []
    provisioner.restore()
    assert provisioner.facts() == before
    assert of_host() == host


@pytest.mark.simulated
@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [
        "/proc/sys/vm/swappiness",
        "/proc/sys/kernel/timer_migration",
        "/proc/irq/default_smp_affinity",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/etc/hostname",
    ],
)
def test_not_even_by_mistake_is_the_host_changed(node: SshNode, file: str) -> None:
    """What the file holds is written to it, so that no harm is done where it can be."""
    if not Path(file).exists():
        pytest.skip(f"this machine has no {file}")
    done = node.run(["sh", "-c", f"value=$(cat {file}); echo $value >>{file}"], check=False)
    assert done.exit_code != 0
    assert "Read-only file system" in done.stderr


@pytest.mark.simulated
@pytest.mark.slow
@pytest.mark.parametrize(("capability", "bit"), [("sys_time", 25), ("sys_boot", 22), ("sys_module", 16)])
def test_no_program_in_it_can_set_the_clock_or_restart_the_host(
    node: SshNode, capability: str, bit: int
) -> None:
    """Numbers of capabilities: capabilities(7), linux/capability.h."""
    status = node.run(["cat", "/proc/self/status"]).stdout
    sets = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Cap"))
    held = [name for name, mask in sets.items() if int(mask, 16) >> bit & 1]
    assert held == [], capability
    assert int(sets["CapBnd"], 16) >> 12 & 1, "its own network is its own to set: CAP_NET_ADMIN"


@pytest.mark.simulated
def test_it_sees_its_own_processes_and_none_of_the_hosts(node: SshNode) -> None:
    """What looks for a time service, or ends what a killed run has left, finds nobody else's."""
    names = node.run(["sh", "-c", "cat /proc/[0-9]*/comm"]).stdout.split()
    # OpenSSH 9.8 and later has each session in a program of its own.
    assert set(names) <= {"sshd", "sshd-session", "sh", "bash", "cat"}
    assert node.run(["hostname"]).stdout == f"{TARGET}\n"


@pytest.mark.simulated
def test_where_no_guest_is_nothing_emulates(bench: Bench) -> None:
    """No image is built to find out whether guests would run under KVM."""
    assert bench.virtual.accelerator() == "none"


@pytest.mark.simulated
@pytest.mark.slow
def test_it_cannot_restart(bench: Bench, node: SshNode) -> None:
    with pytest.raises(
        CapabilityError, match="cannot be restarted: its kernel is that of the bench's own host"
    ):
        bench.restart(node.name)


@pytest.mark.simulated
def test_a_power_cut_takes_its_settings_and_its_tools(
    bench: Bench, provisioner: Provisioner, node: SshNode, tmp_path: Path
) -> None:
    before = provisioner.facts_text()
    provisioner.prepare(tmp_path)
    node.start([bench.tool(TARGET), "witness", "--priority", "0"], tmp_path / "witness").wait_ready(HANG_S)
    bench.cut_power(TARGET)
    with pytest.raises(BenchError, match="linux: has lost its power"):
        node.run(["true"])
    assert network.processes(namespace_of(bench.spec.name, TARGET)) == []
    bench.power_on([TARGET])
    after = Provisioner(bench.node(TARGET), bench.spec.targets[TARGET])
    assert after.facts_text() == before
    assert after.restore() == 0


@pytest.mark.simulated
def test_its_facts_say_that_it_is_simulated(provisioner: Provisioner, tmp_path: Path) -> None:
    """The rule follows what the machine says of itself, whatever a bench file says."""
    manifest: dict[str, Any] = {"host": {}, "target": {TARGET: provisioner.facts()}}
    assert any("'veth'" in sign for sign in signs_of_emulation(tmp_path, manifest))


@pytest.mark.simulated
@pytest.mark.slow
def test_its_clock_is_measured_and_is_the_hosts(bench: Bench, node: SshNode, tmp_path: Path) -> None:
    """Two-way time transfer has to find 0 within its bound, as of every other target."""
    server = node.start([bench.tool(TARGET), "offset", "--serve", "10.78.0.130:19999"], tmp_path / "serve")
    server.wait_ready(HANG_S)
    peer = ["offset", "--peer", "10.78.0.130:19999", "--duration-ms", "1000"]
    client = bench.node("switch").start([bench.tool("switch"), *peer], tmp_path / "peer")
    assert client.wait(HANG_S) == 0
    found = json.loads(client.fetch().read_text().splitlines()[-1])
    server.stop()
    assert server.wait(HANG_S) == 0
    assert found["valid"] is True
    assert abs(found["offset_ns"]) <= found["bound_ns"]


def test_a_copy_that_moves_nothing_has_a_deadline(
    bench: Bench, node: SshNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine whose plug is pulled, and a pipe on it from which nobody reads."""
    monkeypatch.setattr(scp, "BEGIN_S", STALL_S)
    pipe = f"{node.fresh_folder('pipes')}/pipe"
    node.run(["mkfifo", pipe])
    (tmp_path / "data").write_text("x")
    with pytest.raises(
        OverdueError, match=rf"linux: cannot copy data to {pipe}: 1 bytes not there after 0.3"
    ):
        node.put(tmp_path / "data", pipe)
    with pytest.raises(BenchError, match=r"linux: cannot copy /no/such: .*No such file"):
        node.get("/no/such", tmp_path / "none")
    switch = namespace_of(bench.spec.name, SWITCH)
    network.set_port(switch, f"c-{TARGET}", up=False)
    try:
        with pytest.raises(OverdueError, match=r"/etc/hosts: 0 bytes, and not .* does not answer any more"):
            node.get("/etc/hosts", tmp_path / "hosts")
    finally:
        network.set_port(switch, f"c-{TARGET}", up=True)
    assert node.run(["echo", "on"], timeout_s=HANG_S).stdout == "on\n", "the connection stands"


def test_a_command_that_is_timed_out_leaves_no_connection_behind(node: SshNode) -> None:
    with pytest.raises(OverdueError, match=r"linux: sleep 654321: timed out after 0.3 s\Z"):
        node.run(["sleep", "654321"], timeout_s=STALL_S)
    lines = [each.read_bytes() for each in Path("/proc/self/task").glob("*/children")]
    children = [pid for line in lines for pid in line.decode().split()]
    assert children, "the connection"
    assert not [pid for pid in children if b"654321" in Path("/proc", pid, "cmdline").read_bytes()]
