# SPDX-License-Identifier: Apache-2.0
"""The virtual bench, open for all tests of this package."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from hw.provisioning import Provisioner
from hw.session import Bench, open_bench
from tests.simulation.trial import TARGET, VIRTUAL_BENCH, Lab


@pytest.fixture(scope="package")
def opened() -> Generator[Bench]:
    """Open the bench; all targets that the tests ask for are on it, one after the other."""
    with open_bench(VIRTUAL_BENCH) as bench:
        yield bench


@pytest.fixture(scope="package", params=[TARGET])
def lab(
    opened: Bench, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Generator[Lab]:
    """Provision a target as a qualification does; a parameter names it, else it is the Linux target.

    Afterwards its power is cut: targets share a processor of this machine.
    """
    kind: str = request.param
    folder = tmp_path_factory.mktemp("lab")
    target = opened.spec.targets[kind]
    opened.power_on([target.node, "producer-12"])
    Provisioner(opened.node(target.node), target).prepare(folder)
    yield Lab(opened, folder / "results", kind)
    opened.power_off(target.node)
