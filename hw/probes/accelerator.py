# SPDX-License-Identifier: Apache-2.0
"""Whether guests run on the processor (KVM) or under software emulation (TCG) on this machine."""

from __future__ import annotations

from pathlib import Path

from hw.capability import Capability, State
from hw.errors import BenchwrightError


def accelerator() -> Capability:
    """Boot a tiny guest under KVM, or take the answer of this boot of the machine."""
    try:
        from hw.virtual import accel
    except ImportError as error:
        return judge_accelerator("", f"not probed: {error}")
    try:
        return judge_accelerator(accel.probe(), "", kvm_device=Path("/dev/kvm").exists())
    except BenchwrightError as error:
        return judge_accelerator("", str(error))


def judge_accelerator(name: str, refusal: str, *, kvm_device: bool = False) -> Capability:
    """Judge the accelerator that works, "kvm" or "tcg", or why none was found."""
    if refusal:
        return Capability("accelerator", State.MISSING, refusal, "make setup; make doctor again")
    if name == "kvm":
        return Capability("accelerator", State.OK, "KVM: a probe guest booted")
    why = "/dev/kvm is there but boots no guest" if kvm_device else "no /dev/kvm"
    return Capability(
        "accelerator",
        State.LIMITED,
        f"software emulation ({why}): guests are slower than their processor",
        "enable VT-x or AMD-V in the firmware, or nested virtualisation on this machine's host; "
        "modprobe kvm_intel or kvm_amd",
    )
