# SPDX-License-Identifier: Apache-2.0
"""Fill in the configuration templates of clock stacks: of its folder first, else of `config/` beside it.

A template holds words with a dollar sign; what has no value is an error, never left empty by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Template

from hw.errors import ConfigError
from reports.clock_sync.tai_utc import TAI_UTC_S
from resources.clock_sync.settings import ClockSettings, StackSpec, Wander, log2_interval

SHARED = "config"
"""Folder of the templates that several stacks have."""
REMOTE_RUN = "/run/benchwright/clock"
TX_TIMESTAMP_TIMEOUT_MS = 100
"""An emulated machine may take long to hand a transmit stamp back; ptp4l gives a port up that has none."""
ASYMMETRY_PERCENT, EMULATED_ASYMMETRY_PERCENT = "10", "50"
"""Of a round trip, by which its ways may differ: bw-timed's own default; and of emulated network cards, where
that is some 100 us of 500, for minutes."""

LEADER = {"daemon": "ptp4l", "priority1": "100", "clock_identity": "000000.0000.000000"}
"""The grandmaster; this identity lets ptp4l make one of its card's address (ptp4l(8), clockIdentity)."""
STANDBY = {"daemon": "ptp4l-standby", "priority1": "110", "clock_identity": "020000.fffe.000002"}
"""A second grandmaster on the same machine: locally administered identity, and the worse priority."""

PHC_STEPS_MS = 10
"""QEMU's igb jumps when its frequency is set: its PHC wanders by steps, of half a microsecond at most."""


@dataclass(frozen=True)
class Place:
    """Where a role runs, and whom it deals with.

    Attributes:
        server: Address of the time server on the test network.
        interface: The role's own test interface.
        phc: The target's PTP hardware clock; empty: none.
        simulated: Whether the bench is a virtual one.
        tai_utc_s: TAI - UTC that its nodes use.
    """

    server: str
    interface: str
    phc: str
    simulated: bool
    tai_utc_s: int = TAI_UTC_S


def client_files(folder: Path, stack: StackSpec, settings: ClockSettings, place: Place) -> dict[str, str]:
    """Return the configuration of a target: file name → text.

    Args:
        folder: `targets/KIND/clock`.
        stack: What is known of the stack.
        settings: What was chosen; its sync interval is one that the stack can do.
        place: Where it runs.

    Raises:
        ConfigError: A template is missing or asks for what is not known.
    """
    values = _values(stack, settings, place)
    files = {name: _filled(_template(folder, stack, name), values) for name in stack.files}
    if settings.fifo_priority and not any(values["scheduling"] in text for text in files.values()):
        raise ConfigError(f"clock stack {stack.name}: fifo_priority: its files have no place for it")
    if stack.needs_phc:
        files["phc"] = place.phc + "\n"
    if stack.follows_phc and place.simulated:
        files["phc-preset"] = f"{place.tai_utc_s}\n"
        if settings.phc_wander is not None:
            files |= _wander(folder, settings.phc_wander, f"--phc {place.phc} --steps-ms {PHC_STEPS_MS}")
    return files


def server_files(folder: Path, stack: StackSpec, settings: ClockSettings, place: Place) -> dict[str, str]:
    """Return the configuration of a time server; arguments and errors are those of `client_files`.

    The stack is that whose server's side it plays (`StackSpec.served`).
    """
    values = _values(stack, settings, place)
    files = {name: _filled(_template(folder, stack, name), values | LEADER) for name in stack.server_files}
    if settings.standby and stack.standby_file:
        files[stack.standby_file] = _filled(_template(folder, stack, stack.server_files[0]), values | STANDBY)
    if settings.server_wander is not None:
        files |= _wander(folder, settings.server_wander, "")
    return files


def _template(folder: Path, stack: StackSpec, name: str) -> Path:
    own = folder / stack.name / name
    return own if own.exists() else folder / SHARED / name


def _values(stack: StackSpec, settings: ClockSettings, place: Place) -> dict[str, str]:
    interval_s = settings.sync_interval_s or 0.0
    values = {
        "run": REMOTE_RUN,
        "server": place.server,
        "interface": place.interface,
        "hardware_stamps": f"hwtimestamp {place.interface}" if settings.hardware_stamps else "",
        "scheduling": f"sched_priority {settings.fifo_priority}" if settings.fifo_priority else "",
        "max_change_s": str(settings.max_change_s),
        "panic_ms": str(settings.max_change_s * 1000),
        "any_counter": "--any-counter" if place.simulated else "",
        "asymmetry_percent": EMULATED_ASYMMETRY_PERCENT if place.simulated else ASYMMETRY_PERCENT,
        "interval_ms": str(round(interval_s * 1000)),
        "interval_s": str(round(interval_s)),
        "time_stamping": "hardware" if stack.needs_phc else "software",
        "domain": str(settings.ptp_domain),
        "tx_timestamp_timeout_ms": str(TX_TIMESTAMP_TIMEOUT_MS),
        "phc_clock": place.phc,
        "tai_utc_s": str(place.tai_utc_s),
        "phc_offset_s": str(-place.tai_utc_s if settings.phc_offset_s is None else settings.phc_offset_s),
    }
    if interval_s > 0:
        values["poll"] = values["log_sync_interval"] = str(log2_interval(interval_s))
        values["phc_rate_hz"] = f"{1 / interval_s:.6g}"
    if stack.kp is not None and stack.ki is not None:
        values |= {"kp": f"{stack.kp:g}", "ki": f"{stack.ki:g}"}
    return values


def _wander(folder: Path, wander: Wander, phc: str) -> dict[str, str]:
    values = {
        "base_ppb_max": str(wander.base_ppb_max),
        "walk_ppb_per_sqrt_s": str(wander.walk_ppb_per_sqrt_s),
        "wander_interval_ms": str(wander.interval_ms),
        "seed": "" if wander.seed is None else f"--seed {wander.seed}",
        "phc": phc,
    }
    return {"bw-wander.arguments": _filled(folder / SHARED / "bw-wander.arguments", values)}


def _filled(template: Path, values: dict[str, str]) -> str:
    """Return a template with its words filled in; arguments of a command without the comments above them."""
    try:
        text = template.read_text()
        if template.suffix == ".arguments":
            lines = text.splitlines(keepends=True)
            text = "".join(line for line in lines if not line.startswith("#"))
        return Template(text).substitute(values)
    except OSError as error:
        raise ConfigError(f"{template}: {error.strerror}") from error
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{template}: a word that cannot be filled in: {error}") from error
