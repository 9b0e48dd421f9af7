# SPDX-License-Identifier: Apache-2.0
"""The time service's interval contains UTC, whatever servers do within the root distance that they state."""

from __future__ import annotations

import subprocess

from hw.tools import BUILD
from tests.campaign import Campaign
from tests.patience import HANG_S

PROGRAM = BUILD / "linux" / "tests" / "traffic_gen" / "timeservice" / "test-timeservice-root_distance"
SCENES = 20
"""Of a round."""


def test_interval_contains_utc(campaign: Campaign) -> None:
    for random in campaign.rounds(3):
        argv = [str(PROGRAM), str(random.randrange(2**48)), str(SCENES)]
        with campaign.trying(" ".join(argv[1:]).encode()):
            done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=HANG_S)
            assert done.returncode == 0, done.stderr
