# SPDX-License-Identifier: Apache-2.0
"""An experiment of one point as the procedure of a suite, on the bench that the suite has open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hw.open_bench import OpenBench
from resources.experiment.experiment_file import read_experiment_file
from resources.experiment.folder import ExperimentFolder
from resources.experiment.run import ExperimentRun
from resources.experiment.substitution import Scalar

FOLDER = "experiment"


def measure_experiment(
    bench: OpenBench, file: Path, nodes: Mapping[str, str], parameters: Mapping[str, Scalar], folder: Path
) -> Path:
    """Measure an experiment without axes; return the folder of its point.

    Args:
        bench: Open; the nodes are powered on.
        file: The experiment.
        nodes: The bench's name of each node.
        parameters: Of the experiment.
        folder: Of the evidence: gets `experiment/`, as `python -m resources.experiment run` makes one.

    Raises:
        BenchwrightError: As of `ExperimentRun.measure`.
    """
    experiment = read_experiment_file(file, bench.spec, parameters, nodes)
    kept = ExperimentFolder.create(folder / FOLDER, experiment)
    run = ExperimentRun(experiment, kept, bench, lambda _line: None)
    run.power_on()
    kept.keep_versions(run.versions())
    run.measure(experiment.points)
    return kept.complete(experiment.points[0])
