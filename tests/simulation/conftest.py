# SPDX-License-Identifier: Apache-2.0
"""The virtual bench, open for the tests of a module."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from hw.provisioning import Provisioner
from hw.session import open_bench
from tests.simulation.trial import TARGET, VIRTUAL_BENCH, Lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[Lab]:
    """Open the bench and provision its target, as a qualification does."""
    folder = tmp_path_factory.mktemp("lab")
    with open_bench(VIRTUAL_BENCH) as bench:
        target = bench.spec.targets[TARGET]
        bench.power_on([target.node, "producer-12"])
        Provisioner(bench.node(target.node), target).prepare(folder)
        yield Lab(bench, folder / "results")
