# SPDX-License-Identifier: Apache-2.0
"""Which benchmarks there are: a benchmark is one by being there, `bench/FOLDER/bench_NAME.py`."""

from __future__ import annotations

from pathlib import Path

_PREFIX = "bench_"


def benchmark_files(root: Path) -> dict[str, Path]:
    """Return the benchmarks of a source tree, by their names as in `make bench-NAME`, in the names' order.

    Raises:
        ValueError: Two folders have one of the same name.
    """
    files: dict[str, Path] = {}
    for file in sorted((root / "bench").glob(f"*/{_PREFIX}*.py"), key=lambda path: path.name):
        name = file.stem.removeprefix(_PREFIX).replace("_", "-")
        if name in files:
            raise ValueError(f"{name}: two benchmarks: {files[name]}, {file}")
        files[name] = file
    return files
