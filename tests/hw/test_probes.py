# SPDX-License-Identifier: Apache-2.0
"""Each probe's judgement must be able to say no; layouts of the kernel agree with its own headers."""

from __future__ import annotations

import ctypes
import socket
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hw.__main__ import main
from hw.bench import load_bench
from hw.capability import Capability, State
from hw.doctor import HARDWARE_MEASUREMENTS, VIRTUAL_BENCH_MEASUREMENTS, examine, probe_machine
from hw.errors import ConfigError
from hw.probes import accelerator, bench, clock, cpu, edges, host, network

GUEST_FLAGS = "processor\t: 0\nflags\t\t: fpu tsc hypervisor\n"
BARE_FLAGS = "processor\t: 0\nflags\t\t: fpu tsc constant_tsc\n"
LISTED = [
    host.ListedPackage("meson", "bench", "main", "1.0"),
    host.ListedPackage("gcc", "bench", "main", "-"),
]
CAPABLE = clock.PhcCapabilities(62_499_999, 2, 2, 4, True)
PLAIN = clock.PhcCapabilities(1000, 0, 0, 0, False)


@pytest.mark.parametrize(
    ("capability", "state"),
    [
        (cpu.judge_cores(2), State.OK),
        (cpu.judge_cores(1), State.LIMITED),
        (cpu.judge_memory("MemTotal: 1 kB\nMemAvailable: 3000000 kB\n"), State.OK),
        (cpu.judge_memory("MemAvailable: 2500000 kB\n"), State.LIMITED),
        (cpu.judge_memory("MemAvailable: 500000 kB\n"), State.MISSING),
        (cpu.judge_clock_source("tsc", ["tsc"]), State.OK),
        (cpu.judge_clock_source("hpet", ["tsc", "hpet"]), State.LIMITED),
        (cpu.judge_quiet_machine(BARE_FLAGS, set()), State.OK),
        (cpu.judge_quiet_machine(BARE_FLAGS, {"performance"}), State.OK),
        (cpu.judge_quiet_machine(BARE_FLAGS, {"powersave"}), State.LIMITED),
        (cpu.judge_quiet_machine(GUEST_FLAGS, set()), State.LIMITED),
        (cpu.judge_real_time_scheduling("", (950_000, 1_000_000)), State.OK),
        (cpu.judge_real_time_scheduling("", (-1, 1_000_000)), State.OK),
        (cpu.judge_real_time_scheduling("", None, fair_ns=50_000_000), State.OK),
        (cpu.judge_real_time_scheduling("Operation not permitted", None), State.MISSING),
        (cpu.judge_performance_counters(""), State.OK),
        (cpu.judge_performance_counters("No such file or directory"), State.LIMITED),
        (network.judge_root(0), State.OK),
        (network.judge_root(1000), State.MISSING),
        (network.judge_namespaces(""), State.OK),
        (network.judge_namespaces("unshare failed"), State.MISSING),
        (network.judge_tap("No such device"), State.MISSING),
        (network.judge_impairment("", ""), State.OK),
        (network.judge_impairment("Specified qdisc kind is unknown.", ""), State.OK),
        (network.judge_impairment("", "Specified qdisc kind is unknown."), State.MISSING),
        (clock.judge_tai_offset(37), State.OK),
        (clock.judge_tai_offset(0), State.LIMITED),
        (host.judge_packages("packages", LISTED, {"meson": "1.0.1-5", "gcc": "4:12.2.0-3"}), State.OK),
        (host.judge_packages("packages", LISTED, {"meson": "0.56.2-1", "gcc": "4:12.2.0-3"}), State.MISSING),
        (host.judge_packages("packages", LISTED, {"meson": "1.0.1-5"}), State.MISSING),
        (host.judge_program("qemu", "qemu", "QEMU emulator version 10.0.2\n", ""), State.OK),
        (host.judge_program("qemu", "qemu", "", "not found"), State.MISSING),
        (host.judge_python_environment("3.11.2", {"python-bench"}), State.OK),
        (host.judge_python_environment("3.11.2", set()), State.MISSING),
        (host.judge_native_tools({"linux": True, "win": True}), State.OK),
        (host.judge_native_tools({"linux": True, "win": False}), State.MISSING),
        (host.judge_disk({"results": 9 * 10**9, "guest images": 6 * 10**9}), State.OK),
        (host.judge_disk({"results": 9 * 10**9, "guest images": 3 * 10**9}), State.LIMITED),
        (host.judge_disk({"results": 10**9, "guest images": 9 * 10**9}), State.MISSING),
        (host.judge_locked_memory(8 << 20, privileged=False), State.LIMITED),
        (host.judge_locked_memory(-1, privileged=False), State.OK),
        (accelerator.judge_accelerator("kvm", "a guest booted"), State.OK),
        (accelerator.judge_accelerator("tcg", "no guest boots"), State.LIMITED),
        (accelerator.judge_untried(), State.LIMITED),
        (accelerator.judge_failed("no QEMU"), State.MISSING),
        (edges.judge_gpio_lines({}), State.MISSING),
        (edges.judge_gpio_lines({"gpiochip0": OSError(13, "Permission denied")}), State.MISSING),
        (edges.judge_gpio_lines({"gpiochip0": "INTC1056, 32 lines"}), State.OK),
        (edges.judge_pps_generators({}), State.MISSING),
        (edges.judge_pps_generators({"pps-gen0": True, "pps-gen1": None}), State.OK),
    ],
)
def test_judgement(capability: Capability, state: State) -> None:
    assert capability.state is state
    assert capability.found
    assert bool(capability.remedy) is (state is not State.OK)


def test_remedy_takes_a_clock_source_that_is_there() -> None:
    assert "echo tsc" in cpu.judge_clock_source("hpet", ["tsc", "hpet"]).remedy
    assert "echo tsc" not in cpu.judge_clock_source("hpet", ["hpet"]).remedy


def test_packages_that_another_system_lacks_say_which_system_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = {"ID": "ubuntu", "PRETTY_NAME": "Ubuntu 24.04.3 LTS"}
    monkeypatch.setattr("platform.freedesktop_os_release", release.copy)
    found = host.judge_packages("packages", LISTED, {"gcc": "4:12.2.0-3"}, host.other_system())
    said = "Ubuntu 24.04.3 LTS, and Benchwright's host is Debian 12 or 13; absent: meson"
    assert found.found.startswith(said)
    assert found.remedy.startswith("take Debian 12 or 13")
    release["ID"] = "debian"
    assert host.other_system() == ""


def test_package_list_is_well_formed() -> None:
    lists = [host.parse_package_list(file.read_text()) for file in host.PACKAGE_LISTS]
    assert all(len({package.name for package in listed}) == len(listed) for listed in lists)
    packages = [package for listed in lists for package in listed]
    assert {package.use for package in packages} == {"bench", "dev"}
    assert {package.source for package in packages} == {"main", "backports"}
    assert all(package.minimum != "-" for package in packages if package.source == "backports")


def test_package_list_refuses_a_short_line() -> None:
    with pytest.raises(ValueError, match=r"packages\.txt:2"):
        host.parse_package_list("# comment\ngcc bench main\n")


def test_hardware_clocks_without_any() -> None:
    assert [item.state for item in clock.judge_hardware_clocks({})] == [State.MISSING, State.MISSING]


def test_hardware_clocks_with_and_without_edges() -> None:
    plain, no_edges = clock.judge_hardware_clocks({"ptp0": ("virtual", PLAIN, [])})
    assert (plain.state, no_edges.state) == (State.OK, State.MISSING)
    good, edges = clock.judge_hardware_clocks(
        {"ptp0": "Permission denied", "ptp1": ("igb", CAPABLE, ["SDP0=none"])}
    )
    assert (good.state, edges.state) == (State.OK, State.OK)
    assert "SDP0=none" in edges.found
    assert "Permission denied" in good.found


def test_hardware_clocks_that_nobody_may_read() -> None:
    unread, _edges = clock.judge_hardware_clocks({"ptp0": "Permission denied"})
    assert unread.state is State.MISSING


def test_reading_something_that_is_no_clock_fails() -> None:
    with pytest.raises(OSError, match="ioctl"):
        clock.read_phc(Path("/dev/null"))


def test_timestamping_cards() -> None:
    stamps = network.TimestampInfo(hardware=True, software_transmit=True, all_frames=True, phc=0)
    plain = network.TimestampInfo(hardware=False, software_transmit=True, all_frames=False, phc=-1)
    assert network.judge_timestamping({"eth0": plain, "eth1": stamps}).state is State.OK
    assert (
        network.judge_timestamping({"eth0": plain, "eth1": "Operation not supported"}).state is State.MISSING
    )
    assert network.judge_timestamping({}).state is State.MISSING


def test_timestamping_agrees_with_ethtool() -> None:
    """The loopback interface answers the same call as a card."""
    output = subprocess.run(["ethtool", "-T", "lo"], check=True, capture_output=True, text=True).stdout
    info = network.read_timestamp_info("lo")
    assert info.software_transmit is ("software-transmit" in output)
    assert info.hardware is ("hardware-raw-clock" in output)
    assert (info.phc == -1) is ("PTP Hardware Clock: none" in output)
    with pytest.raises(OSError, match="No such device"):
        network.read_timestamp_info("bwx-none0")


def test_layouts_agree_with_the_kernel_headers(tmp_path: Path) -> None:
    """Compile a program against linux/ptp_clock.h and linux/ethtool.h, and decode what it writes."""
    source = tmp_path / "layouts.c"
    source.write_text(
        """
        #include <stdio.h>
        #include <string.h>
        #include <linux/ethtool.h>
        #include <linux/net_tstamp.h>
        #include <linux/ptp_clock.h>
        int main(void)
        {
            struct ptp_clock_caps caps = {.max_adj = 11, .n_alarm = 12, .n_ext_ts = 13, .n_per_out = 14,
                                          .pps = 1, .n_pins = 16, .cross_timestamping = 1};
            struct ptp_pin_desc pin = {.index = 3, .func = PTP_PF_PEROUT, .chan = 1};
            struct ethtool_ts_info info = {.cmd = ETHTOOL_GET_TS_INFO, .phc_index = 5,
                .so_timestamping = SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE |
                                   SOF_TIMESTAMPING_RAW_HARDWARE,
                .rx_filters = 1 << HWTSTAMP_FILTER_ALL};
            strcpy(pin.name, "SDP3");
            printf("%lu %lu ", (unsigned long)PTP_CLOCK_GETCAPS, (unsigned long)PTP_PIN_GETFUNC);
            printf("%zu %zu %zu\\n", sizeof caps, sizeof pin, sizeof info);
            fwrite(&caps, sizeof caps, 1, stdout);
            fwrite(&pin, sizeof pin, 1, stdout);
            fwrite(&info, sizeof info, 1, stdout);
            return 0;
        }
        """
    )
    subprocess.run(["gcc", "-Wall", "-Werror", "-o", str(tmp_path / "layouts"), str(source)], check=True)
    head, _, body = subprocess.run(
        [str(tmp_path / "layouts")], check=True, capture_output=True
    ).stdout.partition(b"\n")
    getcaps, getpin, caps_size, pin_size, info_size = (int(word) for word in head.split())
    assert (getcaps, getpin) == (clock.PTP_CLOCK_GETCAPS, clock.PTP_PIN_GETFUNC)
    caps, pin, info = body[:caps_size], body[caps_size : caps_size + pin_size], body[caps_size + pin_size :]
    assert len(info) == info_size
    assert clock.decode_capabilities(caps) == clock.PhcCapabilities(11, 13, 14, 16, True)
    assert clock.decode_pin(pin) == "SDP3=perout1"
    assert network.decode_timestamp_info(info) == network.TimestampInfo(True, False, True, 5)


def test_reach_tells_listening_from_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        answers = bench.reach({"up": server.getsockname(), "down": bound.getsockname()})
    assert list(answers) == ["down"]


def test_reach_tells_a_name_that_cannot_be_looked_up() -> None:
    answers = bench.reach({"short": ("scope..lab", 5025), "long": (64 * "s", 5025)})
    assert list(answers) == ["short", "long"]
    assert answers["short"].startswith("scope..lab port 5025: ")


def test_broken_bench_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("benchwright: {schema: nonsense}\n")
    capabilities, *_ = bench.bench(tmp_path / "b.yaml")
    assert {item.state for item in capabilities} == {State.MISSING}
    assert "b.yaml" in capabilities[0].found


@pytest.mark.parametrize("text", ["benchwright: {schema: nonsense}\n", None], ids=["wrong", "no file"])
def test_doctor_ends_as_by_bad_input_with_a_wrong_bench_file(tmp_path: Path, text: str | None) -> None:
    """What the machine lacks besides is told all the same, and 3 is of that alone."""
    if text is not None:
        (tmp_path / "b.yaml").write_text(text)
    assert main(["doctor", str(tmp_path / "b.yaml")]) == ConfigError.exit_code


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("keyfile:", "keyfil:"),
        ("SSHDriver:", "SHSDriver:"),
        ("connection_timeout: 180.0", "connection_timeout: soon"),
        ("address: 10.20.0.100", "address: target..lab"),
        ("address: 10.20.0.100", f"address: {64 * 't'}"),
    ],
)
def test_typing_errors_in_labgrids_part_are_named(
    repository: Path, tmp_path: Path, right: str, wrong: str
) -> None:
    text = (repository / "hw" / "benches" / "example-hardware.yaml").read_text()
    assert right in text
    file = tmp_path / "bench.yaml"
    file.write_text(text.replace(right, wrong, 1))
    (found, *_), *_ = bench.bench(file)
    assert found.state is State.MISSING
    assert f"{file}: targets: " in found.found


@pytest.mark.simulated
def test_every_need_of_a_measurement_is_probed(repository: Path) -> None:
    capabilities, *_ = bench.bench(repository / "hw" / "benches" / "virtual.yaml")
    keys = [item.key for item in [*probe_machine(), *capabilities]]
    assert len(set(keys)) == len(keys)
    measurements = (*VIRTUAL_BENCH_MEASUREMENTS, *HARDWARE_MEASUREMENTS)
    needed = {key for m in measurements for key in (*m.needs, *m.helps)}
    assert needed <= set(keys)


def test_a_bench_is_asked_for_nothing_that_it_is_meant_to_be_without(repository: Path) -> None:
    capabilities, verdicts = examine(repository / "hw" / "benches" / "native.yaml")
    assert not {"oscilloscopes", "edges", "impairment"} & {item.key for item in capabilities}
    names = [verdict.name for verdict in verdicts]
    assert "12-producer replay into a namespace of this machine" in names
    assert not [name for name in names if "edges" in name or "guest" in name or "impaired" in name]
    _, whole = examine(repository / "hw" / "benches" / "virtual.yaml")
    assert len(whole) == len(VIRTUAL_BENCH_MEASUREMENTS)


def test_gpio_layout_agrees_with_the_kernel_header(tmp_path: Path) -> None:
    source = tmp_path / "chip.c"
    source.write_text(
        """
        #include <stdio.h>
        #include <string.h>
        #include <linux/gpio.h>
        int main(void)
        {
            struct gpiochip_info chip = {.lines = 7};
            strcpy(chip.label, "INTC1056");
            printf("%lu\\n", (unsigned long)GPIO_GET_CHIPINFO_IOCTL);
            fwrite(&chip, sizeof chip, 1, stdout);
            return 0;
        }
        """
    )
    program = tmp_path / "chip"
    subprocess.run(["gcc", "-Wall", "-Werror", "-o", str(program), str(source)], check=True)
    head, _, body = subprocess.run([str(program)], check=True, capture_output=True).stdout.partition(b"\n")
    assert int(head) == edges.GPIO_GET_CHIPINFO
    assert edges.decode_chip(body) == "INTC1056, 7 lines"


def test_reading_something_that_is_no_gpio_chip_fails() -> None:
    with pytest.raises(OSError, match="ioctl"):
        edges.read_chip(Path("/dev/null"))


def test_pps_generators_say_whose_second_it_is(tmp_path: Path) -> None:
    for name, system in (("pps-gen0", "1\n"), ("pps-gen1", "0\n"), ("pps-gen2", None)):
        (tmp_path / name).mkdir()
        if system is not None:
            (tmp_path / name / "system").write_text(system)
    found = edges.pps_generators(tmp_path)
    assert found.state is State.OK
    assert found.found == (
        "pps-gen0: an edge each second of the system clock; pps-gen1: an edge each second of a clock of its"
        " own; pps-gen2: an edge each second of an unknown clock"
    )
    assert edges.pps_generators(tmp_path / "none").state is State.MISSING


def test_edges_and_oscilloscopes_of_a_bench(repository: Path) -> None:
    virtual = load_bench(repository / "hw" / "benches" / "virtual.yaml")
    assert bench.judge_edges(virtual).state is State.OK
    assert "linux-rt: reference bench:sdp-out" in bench.judge_edges(virtual).found
    assert bench.judge_oscilloscopes(virtual, {}).state is State.OK
    none = replace(virtual, targets={"a": replace(virtual.targets["linux-rt"], edges=None)}, oscilloscopes={})
    for capability in (bench.judge_edges(none), bench.judge_oscilloscopes(none, {})):
        assert capability.state is State.MISSING
        assert capability.remedy


def test_oscilloscopes_that_do_not_answer_or_have_no_limits(repository: Path) -> None:
    spec = load_bench(repository / "hw" / "benches" / "example-hardware.yaml")
    scope = spec.oscilloscopes["scope-a"]
    silent = bench.judge_oscilloscopes(spec, {"scope-a": "10.20.0.60 port 5025: timed out"})
    assert silent.state is State.MISSING
    assert "does not answer: 10.20.0.60 port 5025" in silent.found
    other = replace(scope, resource="TCPIP::192.0.2.1::hislip0::INSTR", limits=None)
    assert bench.oscilloscope_addresses({"a": scope, "b": other}) == {
        "a": ("10.20.0.60", 5025),
        "b": ("192.0.2.1", 4880),
    }
    both = replace(spec, oscilloscopes={"scope-a": scope, "scope-b": other})
    found = bench.judge_oscilloscopes(both, {"scope-a": "refused"})
    assert found.state is State.LIMITED
    assert "scope-b has no limits" in found.found


def test_pointer_fits_into_the_request() -> None:
    assert struct.calcsize("16sP") <= 40
    assert ctypes.sizeof(ctypes.c_void_p) == struct.calcsize("P")
