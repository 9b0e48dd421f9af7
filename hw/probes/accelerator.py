# SPDX-License-Identifier: Apache-2.0
"""Whether guests run on the processor (KVM) or under software emulation (TCG) on this machine."""

from __future__ import annotations

from hw.capability import Capability, State
from hw.errors import BenchwrightError


def accelerator() -> Capability:
    """Boot a guest under KVM, or take the answer of this boot of the machine; build no image for it."""
    try:
        from hw.virtual import accel, image

        if image.find("target") is None:
            return judge_untried()
        finding = accel.find()
    except ImportError as error:
        return judge_failed(f"no Python module {error.name}")
    except BenchwrightError as error:
        return judge_failed(str(error))
    return judge_accelerator(finding.accelerator, finding.reason)


def judge_untried() -> Capability:
    """Judge a machine without a guest image: only a guest that boots proves that KVM works."""
    return Capability(
        "accelerator",
        State.LIMITED,
        "not tried: there is no guest image yet; without KVM guests run under software emulation",
        "the first `make qualify` builds the image; then make doctor again",
    )


def judge_failed(reason: str) -> Capability:
    """Judge a machine on which no guest can be tried at all."""
    return Capability(
        "accelerator", State.MISSING, f"not tried: {reason}", "make setup; then make doctor again"
    )


def judge_accelerator(name: str, reason: str) -> Capability:
    """Judge the accelerator that works, "kvm" or "tcg", and the reason for it."""
    if name == "kvm":
        return Capability("accelerator", State.OK, f"KVM: {reason}")
    return Capability(
        "accelerator",
        State.LIMITED,
        f"software emulation, several times slower than the processor: {reason}",
        "enable VT-x or AMD-V in the firmware, or nested virtualisation on this machine's host; "
        "modprobe kvm_intel or kvm_amd",
    )
