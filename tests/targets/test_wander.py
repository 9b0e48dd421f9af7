# SPDX-License-Identifier: Apache-2.0
"""bw-wander as a program: what it would set, by its own log. The walk itself is tested in test_walk.c.

What it sets is tested in a guest (test_clock_stack_faults.py), whose clock may be wrong.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
from typing import Any

import pytest

from hw.tools import local_tool

STEPS = 4000
WALK_PPB = 100
BASE_PPB = 50_000


def simulate(*arguments: str) -> list[dict[str, Any]]:
    """Return the log of a simulated run."""
    argv = [
        str(local_tool("bw-wander")),
        "--base-ppb-max",
        str(BASE_PPB),
        "--walk-ppb-per-sqrt-s",
        str(WALK_PPB),
    ]
    argv += ["--simulate-steps", str(STEPS), *arguments]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("interval_ms", [1000, 250])
def test_log_is_a_random_walk_from_its_base(interval_ms: int) -> None:
    ready, *settings = simulate("--seed", "11", "--interval-ms", str(interval_ms))
    errors = [setting["error_ppb"] for setting in settings]
    assert (ready["seed"], len(settings)) == (11, STEPS)
    assert errors[0] == ready["base_ppb"]
    assert abs(ready["base_ppb"]) <= BASE_PPB
    steps = [after - before for before, after in itertools.pairwise(errors)]
    sigma = WALK_PPB * (interval_ms / 1000) ** 0.5
    # Four standard errors of a standard deviation, and of the correlation of neighbours.
    assert abs(statistics.pstdev(steps) / sigma - 1) < 4 * (0.5 / STEPS) ** 0.5
    assert abs(statistics.correlation(steps[:-1], steps[1:])) < 4 / STEPS**0.5


def test_seed_repeats_a_run_and_is_drawn_when_none_is_given() -> None:
    assert simulate("--seed", "1") == simulate("--seed", "1")
    one, other = simulate(), simulate()
    assert one[0]["seed"] != other[0]["seed"]
    assert simulate("--seed", str(one[0]["seed"])) == one


def test_a_known_base_is_added_to_what_is_drawn() -> None:
    drawn, shifted = simulate("--seed", "5"), simulate("--seed", "5", "--base-ppb", "-200000")
    for without, with_base in zip(drawn[1:], shifted[1:], strict=True):
        assert with_base["error_ppb"] == pytest.approx(without["error_ppb"] - 200_000, abs=1e-3)


def test_missing_phc_is_named() -> None:
    done = subprocess.run(
        [str(local_tool("bw-wander")), "--phc", "/dev/ptp-none"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert "/dev/ptp-none: No such file" in done.stderr
    done = subprocess.run(
        [str(local_tool("bw-wander")), "--phc", "/dev/null"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert "/dev/null" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--base-ppb-max", "500001"], "allowed: 0..500000"),
        (["--base-ppb", "-500001"], "allowed: -500000..500000"),
        (["--walk-ppb-per-sqrt-s", "-1"], "allowed: 0..100000"),
        (["--interval-ms", "9"], "allowed: 10..3600000"),
        (["--seed", "-1"], "out of range"),
        (["--slow"], "unknown option"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], said: str) -> None:
    done = subprocess.run(
        [str(local_tool("bw-wander")), *arguments], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert said in done.stderr
