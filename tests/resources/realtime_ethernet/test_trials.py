# SPDX-License-Identifier: Apache-2.0
"""How single messages are sent: settings, command lines, what the machine's host took."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.errors import BenchError, CapabilityError, ConfigError
from hw.fields import Fields
from reports.realtime_ethernet.evidence import RTDIP, UDP
from resources.network_stack import NetworkStack
from resources.realtime_ethernet.settings import message_times
from resources.realtime_ethernet.trials import (
    last_cpu,
    local_arguments,
    measure_messages,
    over_of,
    stolen_and_all_ticks,
)

TABLE = {
    "rounds": 6, "sizes_bytes": [4, 64], "trips": 10, "interval_us": 1000, "probes": 10,
    "probe_interval_us": 10_000, "probe_bytes": 64, "throughput_sizes_bytes": [64, 1400],
    "throughput_ms": 100, "bulk_bytes": 1400, "fragment_sizes_bytes": [8192, 65507],
}  # fmt: skip


def times_of(**changes: object) -> object:
    return message_times(Fields(TABLE | changes, "times.toml", "ci"))


def test_settings_are_read_and_held_in_range() -> None:
    assert times_of()
    with pytest.raises(ConfigError, match=r"bulk_bytes: 512; must be of throughput_sizes_bytes: 64, 1400"):
        times_of(bulk_bytes=512)
    with pytest.raises(ConfigError, match=r"sizes_bytes: needs at least one size, none twice"):
        times_of(sizes_bytes=[64, 64])
    with pytest.raises(ConfigError, match=r"sizes_bytes"):
        times_of(sizes_bytes=[1473])
    for wrong in (1472, 65_508):
        with pytest.raises(ConfigError, match=r"fragment_sizes_bytes"):
            times_of(fragment_sizes_bytes=[wrong])


def test_a_profile_need_not_have_messages_of_more_than_one_frame() -> None:
    without = {key: value for key, value in TABLE.items() if key != "fragment_sizes_bytes"}
    found = message_times(Fields(without, "times.toml", "ci"))
    assert found is not None
    assert found.fragment_sizes_bytes == ()
    with pytest.raises(ConfigError, match=r"fragment_sizes_bytes: needs at least one size, none twice"):
        times_of(fragment_sizes_bytes=[8192, 8192])


def test_a_stack_says_by_what_single_messages_go() -> None:
    udp = NetworkStack("kernel", Path())
    own_words = ("--socket", "$folder/s", "--on", "$interface")
    rtdip = NetworkStack("rtdip", Path(), endpoints="both", message_arguments=own_words)
    target: Any = SimpleNamespace(node="t1", test_interface="test0")
    bench: Any = SimpleNamespace(spec=SimpleNamespace(targets={"linux": target}))
    assert (over_of(udp), over_of(rtdip)) == (UDP, RTDIP)
    assert local_arguments(udp, bench, "t1", "10.0.0.1", 7) == ["--local", "10.0.0.1:7"]
    own = ["--local", "7", "--socket", f"{rtdip.folder_on('t1')}/s", "--on", "test0"]
    assert local_arguments(rtdip, bench, "t1", "10.0.0.1", 7) == own


def test_a_stack_that_is_loaded_into_other_programs_sends_no_messages(tmp_path: Path) -> None:
    """They would go by the kernel's, and be recorded as those of the stack."""
    loaded = NetworkStack("user", Path(), endpoints="both", preload=("libuser.so",))
    none: Any = None
    with pytest.raises(CapabilityError, match="network stack user is loaded into bw-traffic alone"):
        measure_messages(none, none, loaded, "test0", none, tmp_path, print)
    assert not list(tmp_path.iterdir())


def test_what_the_host_took_is_the_eighth_number() -> None:
    assert stolen_and_all_ticks("cpu  1 2 3 4 5 6 7 8 90 90\ncpu0 1\n", "node") == (8, 36)
    with pytest.raises(BenchError, match="node: /proc/stat has no line"):
        stolen_and_all_ticks("cpu  1 2 3\n", "node")


def test_the_last_cpu_is_that_of_the_list() -> None:
    assert last_cpu("Name:\tcat\nCpus_allowed_list:\t0,2-5\n", "node") == 5
    assert last_cpu("Cpus_allowed_list:\t1\n", "node") == 1
    with pytest.raises(BenchError, match="node: /proc/self/status has no Cpus_allowed_list"):
        last_cpu("", "node")
