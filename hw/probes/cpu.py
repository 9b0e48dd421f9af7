# SPDX-License-Identifier: Apache-2.0
"""Processors, memory, time base, scheduling and counters of this machine."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
from pathlib import Path

from hw.capability import Capability, State
from hw.probes import privileges
from hw.virtual.fair_server import runtimes_ns

CORES_NEEDED = 2
MEMORY_NEEDED_BYTES = 2_000_000_000
MEMORY_WANTED_BYTES = 3_000_000_000

# perf_event_open(2): number by architecture, and the attribute's first version
# (include/uapi/linux/perf_event.h).
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "armv7l": 364}
_PERF_ATTR_SIZE_VER0_BYTES = 64
_PERF_DISABLED, _PERF_EXCLUDE_KERNEL, _PERF_EXCLUDE_HV = 1 << 0, 1 << 5, 1 << 6


def cores() -> Capability:
    """Count the processors that this process may use."""
    return judge_cores(len(os.sched_getaffinity(0)))


def judge_cores(count: int) -> Capability:
    """Judge a number of processors."""
    if count >= CORES_NEEDED:
        return Capability("cores", State.OK, f"{count} processors")
    return Capability(
        "cores",
        State.LIMITED,
        f"{count} processor: the target's stack and the producers take turns, short budgets will be missed",
        f"give the machine {CORES_NEEDED} processors or more",
    )


def memory() -> Capability:
    """Ask the kernel for memory that is free for new processes."""
    return judge_memory(Path("/proc/meminfo").read_text())


def judge_memory(meminfo: str) -> Capability:
    """Judge the text of /proc/meminfo."""
    available_bytes = next(
        int(line.split()[1]) * 1024 for line in meminfo.splitlines() if line.startswith("MemAvailable:")
    )
    found = f"{available_bytes / 1e9:.1f} GB available"
    if available_bytes >= MEMORY_WANTED_BYTES:
        return Capability("memory", State.OK, found)
    state = State.LIMITED if available_bytes >= MEMORY_NEEDED_BYTES else State.MISSING
    return Capability(
        "memory", state, found, f"free or add memory: {MEMORY_WANTED_BYTES / 1e9:.0f} GB for all guests"
    )


def clock_source() -> Capability:
    """Read the kernel's clock source."""
    folder = Path("/sys/devices/system/clocksource/clocksource0")
    try:
        current = (folder / "current_clocksource").read_text().strip()
        available = (folder / "available_clocksource").read_text().split()
    except OSError as error:
        return Capability("clocksource", State.LIMITED, f"unknown: {error.strerror}", "mount sysfs at /sys")
    return judge_clock_source(current, available)


def judge_clock_source(current: str, available: list[str]) -> Capability:
    """Judge a clock source: reading the time must cost tens of nanoseconds and keep one rate."""
    if current in {"tsc", "arch_sys_counter"}:
        return Capability("clocksource", State.OK, current)
    if "tsc" in available:
        remedy = "echo tsc >/sys/devices/system/clocksource/clocksource0/current_clocksource"
    else:
        remedy = "boot with tsc=reliable if the processor's TSC is invariant (constant_tsc, nonstop_tsc)"
    return Capability(
        "clocksource", State.LIMITED, f"{current}: slower to read, rate steered by the hypervisor", remedy
    )


def quiet_machine() -> Capability:
    """Say whether something outside the kernel's control can stop this machine."""
    info = Path("/proc/cpuinfo").read_text()
    governors = {
        path.read_text().strip()
        for path in Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_governor")
    }
    return judge_quiet_machine(info, governors)


def judge_quiet_machine(cpuinfo: str, governors: set[str]) -> Capability:
    """Judge /proc/cpuinfo and the governors in use: a guest can be stopped, a slow clock frequency delays."""
    flags = {flag for line in cpuinfo.splitlines() if line.startswith("flags") for flag in line.split()}
    if "hypervisor" in flags:
        return Capability(
            "quiet-machine",
            State.LIMITED,
            "a virtual machine: its host can stop it; the stall witness records that, and verdicts heed it",
            "use a machine of its own for acceptance",
        )
    if governors - {"performance"}:
        return Capability(
            "quiet-machine",
            State.LIMITED,
            f"frequency governor {', '.join(sorted(governors))}: waking takes longer",
            "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        )
    return Capability("quiet-machine", State.OK, "no hypervisor; processors at full frequency")


FAIR_SERVER_SINCE = (6, 12)
"""Release of Linux; from it on the throttle of real-time threads has no effect."""
FAIR_NS = 50_000_000
"""The kernel's own choice, where nobody may look at it."""


def real_time_scheduling() -> Capability:
    """Try SCHED_FIFO in this process for a moment, and read what the kernel takes from real-time threads."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError as error:
        return judge_real_time_scheduling(
            error.strerror or str(error), None, privileges.lacking("CAP_SYS_NICE"), os.geteuid() == 0
        )
    os.sched_setscheduler(0, policy, parameter)
    try:
        runtime_us = int(Path("/proc/sys/kernel/sched_rt_runtime_us").read_text())
        period_us = int(Path("/proc/sys/kernel/sched_rt_period_us").read_text())
    except (OSError, ValueError):
        return judge_real_time_scheduling("", None)
    if _release() >= FAIR_SERVER_SINCE:
        return judge_real_time_scheduling("", None, fair_ns=max(runtimes_ns().values(), default=FAIR_NS))
    return judge_real_time_scheduling("", (runtime_us, period_us))


def _release() -> tuple[int, int]:
    """Return the kernel's release, of which two numbers count."""
    numbers = re.match(r"(\d+)\.(\d+)", platform.release())
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def judge_real_time_scheduling(
    refusal: str,
    throttle_us: tuple[int, int] | None,
    lacks: tuple[str, ...] = (),
    is_root: bool = False,
    fair_ns: int = 0,
) -> Capability:
    """Judge the answer to a request for SCHED_FIFO.

    Args:
        refusal: Empty where it was granted.
        throttle_us: Runtime and period in microseconds; None: not known.
        lacks: Capabilities of Linux that this process lacks.
        is_root: Whether it is root already.
        fair_ns: What the fair server gives others of each second of a CPU that is kept busy.
    """
    if refusal:
        limits = "give the user rtprio 98 and memlock unlimited in /etc/security/limits.conf"
        remedy = privileges.remedy(refusal, lacks, limits)
        return Capability(
            "realtime",
            State.MISSING,
            f"SCHED_FIFO refused: {privileges.cause(refusal, lacks)}",
            remedy if is_root or remedy == limits else f"{remedy}, or {limits}",
        )
    if throttle_us is not None and 0 <= throttle_us[0] < throttle_us[1]:
        runtime_us, period_us = throttle_us
        return Capability(
            "realtime",
            State.OK,
            f"SCHED_FIFO allowed; paused once it takes {runtime_us / 1000:g} of {period_us / 1000:g} ms",
        )
    if fair_ns:
        said = f"SCHED_FIFO allowed; who keeps a CPU busy leaves others {fair_ns / 1e6:g} ms of each second"
        return Capability("realtime", State.OK, f"{said} (the kernel's fair server)")
    return Capability("realtime", State.OK, "SCHED_FIFO allowed, no throttle")


def performance_counters() -> Capability:
    """Open a counter of processor cycles of this process."""
    number = _PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        return judge_performance_counters(f"not known how to ask on {platform.machine()}")
    attribute = struct.pack(
        "=IIQQQQQ",
        0,
        _PERF_ATTR_SIZE_VER0_BYTES,
        0,
        0,
        0,
        0,
        _PERF_DISABLED | _PERF_EXCLUDE_KERNEL | _PERF_EXCLUDE_HV,
    ).ljust(_PERF_ATTR_SIZE_VER0_BYTES, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.syscall(
        ctypes.c_long(number), attribute, 0, -1, ctypes.c_int(-1), ctypes.c_ulong(0)
    )
    if descriptor < 0:
        return judge_performance_counters(os.strerror(ctypes.get_errno()))
    os.close(descriptor)
    return judge_performance_counters("")


def judge_performance_counters(refusal: str) -> Capability:
    """Judge the answer to a request for a hardware counter."""
    if not refusal:
        return Capability("perf", State.OK, "hardware counters of processor cycles")
    return Capability(
        "perf",
        State.LIMITED,
        f"no hardware counters: {refusal}; cycles and cache misses stay out of the reports",
        "on a virtual machine let its host pass the PMU; "
        "elsewhere run as root or sysctl kernel.perf_event_paranoid=1",
    )
