# SPDX-License-Identifier: Apache-2.0
"""Kernel netem on an interface: the commands of tc that set it, and what tc's answers say that is set.

A kernel that changes a netem queue keeps what the change does not name (correlations, rate, table of the
distribution), and never names the table. So each command names all of them, and the handle of the queue says
which table it has: another handle is another queue, which begins without one.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from hw.errors import BenchError, ConfigError
from hw.path_settings import Distribution, Flow, GilbertElliott, PathSettings, RandomLoss

PRIO_HANDLE = "30:"
NO_HANDLE = "31:"
"""Of an ordinary queue: put in between, it takes what was there away, filters and all."""
TREATED = "30:3"
"""The band of flows that are treated; all others have the first one."""
_ROOT_HANDLES = {table: f"1{number}:" for number, table in enumerate(Distribution, 1)}
_FLOW_HANDLES = {table: f"2{number}:" for number, table in enumerate(Distribution, 1)}
_TABLES = {handle: table for by in (_ROOT_HANDLES, _FLOW_HANDLES) for table, handle in by.items()}

RESOLUTION_US = 1.1
"""Of times: the kernel is handed ticks of 64 ns, and tc cuts its answer to whole microseconds."""
DIGITS = 6e-6
"""tc writes six digits of a number."""
PROTOCOLS = {"udp": 17, "tcp": 6}

Key = tuple[int, int, int]
"""A 32-bit word of a packet, from the IP header on: offset in bytes, value, mask."""


def queue_command(interface: str, settings: PathSettings, *, of_flows: bool = False) -> list[str]:
    """Return the command that sets netem on the way out of an interface, or changes it.

    Args:
        interface: Its name.
        settings: What netem does.
        of_flows: Whether for chosen flows: as a band of the queue that `flow_commands` set.
    """
    handles, place = (_FLOW_HANDLES, ("parent", TREATED)) if of_flows else (_ROOT_HANDLES, ("root",))
    argv = ["tc", "qdisc", "replace", "dev", interface, *place]
    argv += ["handle", handles[settings.jitter_distribution]]
    argv += ["netem", "limit", str(settings.queue_packets)]
    argv += ["delay", _us(settings.delay_us), _us(settings.jitter_us)]
    argv += _percents(settings.jitter_correlation_percent)
    if settings.jitter_distribution is not Distribution.UNIFORM:
        argv += ["distribution", settings.jitter_distribution.value]
    argv += _loss(settings.loss)
    argv += [
        "duplicate",
        *_percents(settings.duplicate_percent, settings.duplicate_correlation_percent),
    ]
    if settings.reorder_percent:
        argv += ["reorder", *_percents(settings.reorder_percent, settings.reorder_correlation_percent)]
    argv += ["rate", f"{round(1000 * (settings.rate_kbps or 0))}bit"]
    if settings.seed is not None:
        argv += ["seed", str(settings.seed)]
    return argv


def flow_commands(interface: str, flows: Sequence[Flow], settings: PathSettings) -> list[list[str]]:
    """Return the commands after which chosen flows alone pass through netem; any earlier queue is gone."""
    bands = ["prio", "bands", "3", "priomap", *["0"] * 16]
    commands = [
        ["tc", "qdisc", "replace", "dev", interface, "root", "handle", NO_HANDLE, "pfifo"],
        ["tc", "qdisc", "replace", "dev", interface, "root", "handle", PRIO_HANDLE, *bands],
        queue_command(interface, settings, of_flows=True),
    ]
    for number, flow in enumerate(flows, 1):
        keys = [
            word
            for offset, value, mask in _keys(flow)
            for word in ("match", "u32", f"{value:#010x}", f"{mask:#010x}", "at", str(offset))
        ]
        where = ["tc", "filter", "add", "dev", interface, "parent", PRIO_HANDLE, "protocol", "ip"]
        commands.append([*where, "pref", str(number), "u32", *keys, "flowid", TREATED])
    return commands


def settings_in(answer: str, interface: str) -> PathSettings | None:
    """Return what netem does on the way out of an interface; None: there is none.

    Args:
        answer: Of `tc -j qdisc show`.
        interface: Its name.

    Raises:
        BenchError: It is no such answer.
    """
    try:
        queues: list[Any] = json.loads(answer)
        options = [
            (str(each["handle"]), dict(each["options"]))
            for each in queues
            if each["kind"] == "netem" and each.get("dev", interface) == interface
        ]
        return _settings(*options[0]) if options else None
    except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        found = f"{error!r} in {answer.strip()[-200:]!r}"
        raise BenchError(f"tc -j qdisc show on {interface}: {found}") from error


def flows_are(answer: str, flows: Sequence[Flow]) -> bool:
    """Tell whether an answer of `tc filter show` has the filters of these flows, and no others."""
    found: list[set[Key]] = []
    for line in answer.splitlines():
        if "flowid" in line:
            found.append(set())
        elif key := re.search(r"match ([0-9a-f]{8})/([0-9a-f]{8}) at (\d+)", line):
            if not found:
                return False
            found[-1].add((int(key[3]), int(key[1], 16), int(key[2], 16)))
    return found == [set(_keys(flow)) for flow in flows]


def differences(asked: PathSettings, found: PathSettings) -> list[str]:
    """Say where settings that were read back are not those that were asked for, beyond netem's resolution."""
    words: list[str] = []
    told = replace(asked, limit_packets=asked.queue_packets)
    for name in (field.name for field in fields(PathSettings)):
        words += _differ(name, getattr(told, name), getattr(found, name))
    return words


def _differ(name: str, wanted: Any, is_set: Any) -> list[str]:
    if name == "seed" and wanted is None:
        return []  # the kernel has drawn one
    if type(wanted) is type(is_set) and isinstance(wanted, RandomLoss | GilbertElliott):
        return [
            word
            for inner, value in vars(wanted).items()
            for word in _differ(f"{name}.{inner}", value, getattr(is_set, inner))
        ]
    if isinstance(wanted, int | float) and isinstance(is_set, int | float):
        step = RESOLUTION_US if name.endswith("_us") else 1e-6 if name.endswith("percent") else 0
        if abs(wanted - is_set) <= step + DIGITS * abs(wanted):
            return []
    return [] if wanted == is_set else [f"{name}: asked for {wanted}, found {is_set}"]


def _settings(handle: str, options: Mapping[str, Any]) -> PathSettings:
    nothing: Mapping[str, Any] = {}
    delay, duplicate = options.get("delay", nothing), options.get("duplicate", nothing)
    reorder = options.get("reorder", nothing) if options.get("gap") else nothing
    rate = options.get("rate", nothing).get("rate", 0)
    return PathSettings(
        delay_us=delay.get("delay", 0) * 1e6,
        jitter_us=delay.get("jitter", 0) * 1e6,
        jitter_distribution=_TABLES.get(handle, Distribution.UNIFORM),
        jitter_correlation_percent=_correlation(delay),
        loss=_loss_in(options),
        duplicate_percent=100 * duplicate.get("duplicate", 0),
        duplicate_correlation_percent=_correlation(duplicate),
        reorder_percent=100 * reorder.get("reorder", 0),
        reorder_correlation_percent=_correlation(reorder),
        rate_kbps=rate * 8 / 1000 if rate else None,
        limit_packets=options["limit"],
        seed=options.get("seed"),
    )


def _loss_in(options: Mapping[str, Any]) -> RandomLoss | GilbertElliott | None:
    if "loss-random" in options:
        loss = options["loss-random"]
        return RandomLoss(100 * loss["loss"], _correlation(loss))
    if "loss-gemodel" in options:
        loss = options["loss-gemodel"]
        return GilbertElliott(*(100 * loss[key] for key in ("p", "r", "1-h", "1-k")))
    return None


def _correlation(part: Mapping[str, Any]) -> float:
    return 100 * part.get("correlation", 0)


def _loss(loss: RandomLoss | GilbertElliott | None) -> list[str]:
    if isinstance(loss, GilbertElliott):
        percents = (loss.p_percent, loss.r_percent, loss.bad_loss_percent, loss.good_loss_percent)
        return ["loss", "gemodel", *_percents(*percents)]
    loss = loss or RandomLoss(0)
    return ["loss", "random", *_percents(loss.percent, loss.correlation_percent)]


def _keys(flow: Flow) -> list[Key]:
    keys: list[Key] = []
    if flow.source_port is not None or flow.destination_port is not None:
        # Ports are where they are looked for only behind a header without options, of a packet that is whole.
        keys += [(0, 0x05000000, 0x0F000000), (4, 0, 0x00003FFF)]
    if flow.protocol:
        keys.append((8, PROTOCOLS[flow.protocol] << 16, 0x00FF0000))
    for offset, address in ((12, flow.source), (16, flow.destination)):
        if address:
            keys.append((offset, int(ipaddress.IPv4Address(address)), 0xFFFFFFFF))
    value, mask = 0, 0
    for shift, port in ((16, flow.source_port), (0, flow.destination_port)):
        if port is not None:
            value, mask = value | port << shift, mask | 0xFFFF << shift
    return [*keys, (20, value, mask)] if mask else keys


def _us(value: float) -> str:
    return _plain(value, 3) + "us"


def _percents(*values: float) -> list[str]:
    return [_plain(value, 6) + "%" for value in values]


def _plain(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")
