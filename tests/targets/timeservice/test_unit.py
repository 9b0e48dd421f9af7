# SPDX-License-Identifier: Apache-2.0
"""The time service's unit for systemd: who may read its page, and as whom it runs."""

from __future__ import annotations

import re

from hw.tools import ROOT

FOLDER = ROOT / "targets" / "linux-rt" / "timeservice"


def _settings() -> dict[str, str]:
    text = (FOLDER / "bw-timed.service").read_text()
    return dict(re.findall(r"^([A-Za-z]+)=(.*)$", text, re.MULTILINE))


def test_programs_of_every_user_reach_the_page() -> None:
    """The folder of a dynamic user, where it is kept, is below `/run/private`, which is root's alone."""
    settings = _settings()
    assert settings["RuntimeDirectoryMode"] == "0755"
    assert settings.get("DynamicUser", "no") == "no" or settings.get("RuntimeDirectoryPreserve", "no") == "no"


def test_user_of_the_unit_is_made() -> None:
    settings = _settings()
    made = re.findall(r"^u (\S+) ", (FOLDER / "bw-timed.sysusers").read_text(), re.MULTILINE)
    assert settings.get("DynamicUser", "no") == "no"
    assert made == [settings["User"]]
