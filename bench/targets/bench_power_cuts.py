# SPDX-License-Identifier: Apache-2.0
"""Power cuts of the virtual ARM board at random instants: of its boot, and of its life while it writes.

After each pair of cuts the next boot has to succeed, the disk, which the board may write to, has to be what
it was, and nothing of what was written may be left.
"""

from __future__ import annotations

import hashlib
import statistics
import threading
import time
from pathlib import Path
from random import Random

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, Bar, publish, say
from hw.drivers.virtual_board import DISK_FILE
from hw.errors import BenchError
from hw.session import Bench, open_bench

BENCH = Path("tests/targets/one_board.yaml")
BOARD = "board"
SPOILT = "/var/spoilt"
SPOILER = f"while :; do dd if=/dev/urandom of={SPOILT} bs=64k count=8 2>/dev/null; sync; done"
BOOT_CUT_MAX_S = 5.0
"""From power on: most of a boot has passed then."""
LIFE_CUT_MAX_S = 2.0
BARS = {"failed_boots": Bar(0.0), "changed_disks": Bar(0.0), "left_files": Bar(0.0)}


def cut_in_boot(bench: Bench, after_s: float) -> None:
    """Give the board power and take it away before it is up."""
    timer = threading.Timer(after_s, bench.power_off, (BOARD,))
    timer.start()
    try:
        bench.power_on([BOARD])
    except BenchError as error:
        if "has lost its power while it booted" not in str(error):
            raise
    timer.join()


@takes(cuts=(20, "half of them in a boot"), seed=(1, "of the instants"))
def main(options: Options) -> int:
    """Cut and boot in turn."""
    random = Random(options.seed)
    boots_s: list[float] = []
    instants_s: list[tuple[float, float]] = []
    failed = changed = left = 0
    with open_bench(REPOSITORY / BENCH) as bench:
        disk = bench.folder / BOARD / DISK_FILE
        digests: set[str] = set()
        for number in range(0, options.cuts, 2):
            boot_s, life_s = random.uniform(0.0, BOOT_CUT_MAX_S), random.uniform(0.0, LIFE_CUT_MAX_S)
            instants_s.append((boot_s, life_s))
            cut_in_boot(bench, boot_s)
            start_s = time.monotonic()
            try:
                bench.power_on([BOARD])
            except BenchError as error:
                say(f"cut {number + 1}: {error}")
                failed += 1
                continue
            boots_s.append(time.monotonic() - start_s)
            node = bench.node(BOARD)
            left += node.run(["test", "-e", SPOILT], check=False).exit_code == 0
            node.run(["sh", "-c", f"( {SPOILER} ) </dev/null >/dev/null 2>&1 &"])
            time.sleep(life_s)
            bench.power_off(BOARD)
            digests.add(hashlib.sha256(disk.read_bytes()).hexdigest())
            changed = len(digests) - 1
            say(f"cut {boot_s:.1f} s into a boot, {life_s:.1f} s into a life")
    figures = {
        "cuts": float(2 * len(instants_s)),
        "failed_boots": float(failed),
        "changed_disks": float(changed),
        "left_files": float(left),
        "boot_median_s": statistics.median(boots_s) if boots_s else 0.0,
        "boot_max_s": max(boots_s, default=0.0),
    }
    return publish("power-cuts", figures, BARS, {"seed": options.seed, "instants_s": instants_s})
