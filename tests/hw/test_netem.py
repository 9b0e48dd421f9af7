# SPDX-License-Identifier: Apache-2.0
"""Commands of tc, and its answers as iproute2 6.1 gave them on Linux 6.12."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from hw.errors import BenchError, ConfigError
from hw.netem import differences, flow_commands, flows_are, queue_command, settings_in
from hw.path_settings import Distribution, Flow, GilbertElliott, PathSettings, RandomLoss

NOTHING = "duplicate 0% 0% rate 0bit"
FLOWS = [Flow("udp", destination_port=5002), Flow("tcp")]
FILTERS = """filter protocol ip pref 1 u32 chain 0
filter protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1
filter protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 *flowid 30:3 not_in_hw
  match 05000000/0f000000 at 0
  match 00000000/00003fff at 4
  match 00110000/00ff0000 at 8
  match 0000138a/0000ffff at 20
filter protocol ip pref 2 u32 chain 0
filter protocol ip pref 2 u32 chain 0 fh 801: ht divisor 1
filter protocol ip pref 2 u32 chain 0 fh 801::800 order 2048 key ht 801 bkt 0 *flowid 30:3 not_in_hw
  match 00060000/00ff0000 at 8
"""


def answer(options: dict[str, Any], handle: str = "11:") -> str:
    """Return an answer of `tc -j qdisc show` with netem on test1, as the router gives it."""
    other = {"limit": 10240, "flows": 1024, "quantum": 9014, "target": 4999, "interval": 99999}
    netem = {"limit": 100000, **options, "ecn": False, "gap": options.get("gap", 0)}
    return json.dumps(
        [
            {"kind": "noqueue", "handle": "0:", "dev": "lo", "root": True, "refcnt": 2, "options": {}},
            {"kind": "fq_codel", "handle": "0:", "dev": "test0", "root": True, "options": other},
            {"kind": "netem", "handle": handle, "dev": "test1", "root": True, "options": netem},
        ]
    )


@pytest.mark.parametrize(
    ("settings", "words", "options", "handle"),
    [
        (PathSettings(), f"delay 0us 0us 0% loss random 0% 0% {NOTHING}", {}, "11:"),
        (
            PathSettings(delay_us=300_000, jitter_us=777, jitter_correlation_percent=12.5),
            f"delay 300000us 777us 12.5% loss random 0% 0% {NOTHING}",
            {"delay": {"delay": 0.3, "jitter": 0.000776, "correlation": 0.125}},
            "11:",
        ),
        (
            PathSettings(9_000, 3_000, Distribution.PARETO_NORMAL),
            f"delay 9000us 3000us 0% distribution paretonormal loss random 0% 0% {NOTHING}",
            {"delay": {"delay": 0.009, "jitter": 0.003, "correlation": 0}},
            "14:",
        ),
        (
            PathSettings(loss=RandomLoss(0.1, 25)),
            f"delay 0us 0us 0% loss random 0.1% 25% {NOTHING}",
            {"loss-random": {"loss": 0.001, "correlation": 0.25}},
            "11:",
        ),
        (
            PathSettings(loss=GilbertElliott(1, 10, 70, 0.1)),
            f"delay 0us 0us 0% loss gemodel 1% 10% 70% 0.1% {NOTHING}",
            {"loss-gemodel": {"p": 0.01, "r": 0.1, "1-h": 0.7, "1-k": 0.001}},
            "11:",
        ),
        (
            PathSettings(duplicate_percent=3, duplicate_correlation_percent=7),
            "delay 0us 0us 0% loss random 0% 0% duplicate 3% 7% rate 0bit",
            {"duplicate": {"duplicate": 0.03, "correlation": 0.07}},
            "11:",
        ),
        (
            PathSettings(delay_us=10_000, reorder_percent=25, reorder_correlation_percent=50),
            "delay 10000us 0us 0% loss random 0% 0% duplicate 0% 0% reorder 25% 50% rate 0bit",
            {
                "delay": {"delay": 0.01, "jitter": 0, "correlation": 0},
                "reorder": {"reorder": 0.25, "correlation": 0.5},
                "gap": 1,
            },
            "11:",
        ),
        (
            PathSettings(delay_us=100_000, rate_kbps=10_000),
            "delay 100000us 0us 0% loss random 0% 0% duplicate 0% 0% rate 10000000bit",
            {
                "delay": {"delay": 0.1, "jitter": 0, "correlation": 0},
                "rate": {"rate": 1250000, "packetoverhead": 0, "cellsize": 0, "celloverhead": 0},
            },
            "11:",
        ),
    ],
)
def test_a_command_says_all_and_its_answer_is_what_was_asked(
    settings: PathSettings, words: str, options: dict[str, Any], handle: str
) -> None:
    """A kernel keeps what a change does not name: each command names it."""
    command = shlex.join(queue_command("test1", settings))
    where = f"tc qdisc replace dev test1 root handle {handle} netem limit 100000"
    assert command == f"{where} {words}"
    found = settings_in(answer(options, handle), "test1")
    assert found is not None
    assert differences(settings, found) == []


@pytest.mark.parametrize(
    ("asked", "options", "told"),
    [
        (
            PathSettings(5_000),
            {"delay": {"delay": 0.006, "jitter": 0}},
            "delay_us: asked for 5000, found 6000",
        ),
        (PathSettings(), {"rate": {"rate": 1250000}}, "rate_kbps: asked for None, found 10000"),
        (PathSettings(loss=RandomLoss(2)), {}, "loss: asked for RandomLoss"),
        (
            PathSettings(loss=RandomLoss(2)),
            {"loss-random": {"loss": 0.01}},
            r"loss\.percent: asked for 2, found 1\.0",
        ),
        (
            PathSettings(9_000, 3_000, Distribution.NORMAL),
            {"delay": {"delay": 0.009, "jitter": 0.003}},
            "jitter_distribution: asked for normal, found uniform",
        ),
        (PathSettings(limit_packets=77), {}, "limit_packets: asked for 77, found 100000"),
        (PathSettings(seed=7), {"seed": 8}, "seed: asked for 7, found 8"),
    ],
)
def test_what_is_not_as_asked_is_named(asked: PathSettings, options: dict[str, Any], told: str) -> None:
    found = settings_in(answer(options), "test1")
    assert found is not None
    (difference,) = differences(asked, found)
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(difference)


def test_other_interfaces_and_no_answers_are_told_apart() -> None:
    assert settings_in(answer({}), "test0") is None
    for text in ("", "[1]", "{}", '[{"kind":"netem","dev":"test1","handle":"1:","options":{}}]'):
        if text == "{}":
            assert settings_in(text, "test1") is None
            continue
        with pytest.raises(BenchError, match="tc -j qdisc show on test1"):
            settings_in(text, "test1")


def test_flows_have_a_band_of_their_own() -> None:
    empty, bands, netem, udp, tcp = map(shlex.join, flow_commands("test1", FLOWS, PathSettings(5_000)))
    assert empty == "tc qdisc replace dev test1 root handle 31: pfifo"
    assert bands.endswith("root handle 30: prio bands 3 priomap" + 16 * " 0")
    assert "dev test1 parent 30:3 handle 21: netem limit 100000 delay 5000us" in netem
    where = "tc filter add dev test1 parent 30: protocol ip pref"
    whole = "match u32 0x05000000 0x0f000000 at 0 match u32 0x00000000 0x00003fff at 4"
    port = "match u32 0x00110000 0x00ff0000 at 8 match u32 0x0000138a 0x0000ffff at 20"
    assert udp == f"{where} 1 u32 {whole} {port} flowid 30:3"
    assert tcp == f"{where} 2 u32 match u32 0x00060000 0x00ff0000 at 8 flowid 30:3"


def test_filters_of_other_flows_are_others() -> None:
    assert flows_are(FILTERS, FLOWS)
    for flows in (
        [],
        FLOWS[:1],
        [*reversed(FLOWS)],
        [*FLOWS, Flow("udp")],
        [Flow("udp", destination_port=5003)],
    ):
        assert not flows_are(FILTERS, flows)
    assert not flows_are("", FLOWS)
    both = Flow("udp", "10.77.0.2", "10.77.0.1", 5001, 5002)
    words = shlex.join(flow_commands("test1", [both], PathSettings())[-1])
    for key in ("0x0a4d0002 0xffffffff at 12", "0x0a4d0001 0xffffffff at 16", "0x1389138a 0xffffffff at 20"):
        assert key in words


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: PathSettings(delay_us=-1), "delay_us: must be in 0..10000000, found -1"),
        (lambda: PathSettings(delay_us=10_000_001), "delay_us: must be in 0..10000000, found 10000001"),
        (lambda: PathSettings(delay_us=5, jitter_us=6), "jitter_us: must be in 0..5, found 6"),
        (
            lambda: PathSettings(delay_us=5, jitter_distribution=Distribution.PARETO),
            "jitter_us: must be in 1..5 of pareto, found 0",
        ),
        (lambda: PathSettings(duplicate_percent=101), "duplicate_percent: must be in 0..100, found 101"),
        (lambda: PathSettings(loss=RandomLoss(100.5)), "loss.percent: must be in 0..100, found 100.5"),
        (lambda: GilbertElliott(-1, 5), "loss.p_percent: must be in 0..100, found -1"),
        (
            lambda: PathSettings(reorder_percent=5),
            "delay_us: must be in 1..10000000 where packets",
        ),
        (lambda: PathSettings(rate_kbps=0), "rate_kbps: must be in 1..100000000, found 0"),
        (lambda: PathSettings(seed=-1), "seed: must be in 0..18446744073709551615, found -1"),
        (
            lambda: PathSettings(delay_us=300_000, rate_kbps=1_000_000, limit_packets=1000),
            "limit_packets: must be in 24769..10000000, found 1000",
        ),
        (lambda: Flow(), "flow: must name a protocol or an address"),
        (lambda: Flow("icmp"), "flow.protocol: must be one of udp, tcp, found 'icmp'"),
        (lambda: Flow(source_port=5), "flow.protocol: must be one of udp, tcp with source_port"),
        (lambda: Flow("udp", source_port=0), "flow.source_port: must be in 1..65535, found 0"),
        (lambda: Flow(source="10.0.0"), "flow.source: must be an IPv4 address, found '10.0.0'"),
        (lambda: PathSettings(delay_us=float("nan")), "delay_us: must be in"),
    ],
)
def test_what_is_out_of_range_is_refused(make: Any, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert told in str(caught.value)


def test_a_queue_grows_with_rate_and_delay() -> None:
    assert PathSettings().queue_packets == 100_000
    assert PathSettings(delay_us=10_000_000, rate_kbps=1_000_000).queue_packets == 825_628
