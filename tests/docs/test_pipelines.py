# SPDX-License-Identifier: Apache-2.0
"""The example pipelines: they parse, their commands exist, and the job on the bench keeps its word."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from tests.night.parts import parts, selected
from tests.patience import HANG_S, wait_until

ROOT = Path(__file__).resolve().parents[2]
PIPELINES = ROOT / "docs" / "pipelines"
JOB = PIPELINES / "bench-job.sh"
GITHUB, GITLAB, JENKINS = (
    PIPELINES / "github-actions.yml",
    PIPELINES / "gitlab-ci.yml",
    PIPELINES / "Jenkinsfile",
)
PYTHON = ".build/venv/bin/python"
JENKINS_SH = re.compile(r"""\bsh\(?\s*(?:script:\s*)?'([^']+)'""")


def document(path: Path) -> dict[str, Any]:
    """Return a YAML pipeline; `on` is a key, not true."""
    return cast("dict[str, Any]", yaml.load(path.read_text(), Loader=yaml.BaseLoader))  # noqa: S506 - texts only


def scripts() -> Iterator[tuple[str, str]]:
    """Yield the shell scripts of all pipelines, with where they stand."""
    for name, job in document(GITHUB)["jobs"].items():
        for step in job["steps"]:
            if "run" in step:
                yield f"github {name}", step["run"]
    for name, job in document(GITLAB).items():
        if isinstance(job, dict):
            for key in ("script", "after_script"):
                for line in cast("dict[str, list[str]]", job).get(key, []):
                    yield f"gitlab {name}", line
    for line in JENKINS_SH.findall(JENKINS.read_text()):
        yield "jenkins", line
    yield (
        "bench-job",
        JOB.read_text().replace('.build/venv/bin/python -m "$@"', ":").replace("add ", f"{PYTHON} -m "),
    )


def commands(text: str) -> Iterator[list[str]]:
    """Yield what is run of ours: `make TARGET …`, `python -m MODULE …`, files of the project."""
    for line in re.sub(r"(?m)#.*$|\\\n", " ", text).splitlines():
        words = (
            shlex.split(line.replace("<(", "(").replace("&&", ";"), posix=True)
            if "'" not in line
            else line.split()
        )
        for place, word in enumerate(words):
            if word == "make" or word == PYTHON or word.startswith("docs/"):
                yield words[place:]


def fault_of(command: list[str]) -> str:
    """Return what is wrong with a command of ours; empty: it exists."""
    if command[0] == "make":
        done = subprocess.run(
            ["make", "-n", command[1]], check=False, capture_output=True, text=True, cwd=ROOT
        )
        return done.stderr if done.returncode else ""
    if command[0] == PYTHON:
        module, *rest = command[command.index("-m") + 1 :]
        shown, said = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(shown),
            contextlib.redirect_stderr(said),
            pytest.raises(SystemExit) as end,
        ):
            importlib.import_module(f"{module}.__main__").main([rest[0], "--help"])
        missing = [word for word in rest if word.startswith("--") and word not in shown.getvalue()]
        return f"{said.getvalue()}{missing or ''}" if end.value.code or missing else ""
    if not os.access(ROOT / command[0], os.X_OK):
        return f"{command[0]} is no program"
    return "" if f"    {command[1]})" in (ROOT / command[0]).read_text() else f"no verb {command[1]}"


def test_commands_exist() -> None:
    found = [(where, command) for where, text in scripts() for command in commands(text)]
    assert len(found) >= 11
    unique = {tuple(command[:4]): (where, command) for where, command in found}
    assert {" ".join(command): fault for _, command in unique.values() if (fault := fault_of(command))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "make qualifi",
        f"{PYTHON} -m dashboards diliver",
        f"{PYTHON} -m dashboards deliver --endpiont x",
        "docs/pipelines/job.sh keep",
        "docs/pipelines/bench-job.sh kept",
    ],
)
def test_command_that_does_not_exist_is_found(text: str) -> None:
    (command,) = commands(text)
    assert fault_of(command)


def test_shell_is_sound(tmp_path: Path) -> None:
    """Bash and shellcheck read every script; an expression of GitHub's in one would be an injection."""
    for place, (where, text) in enumerate(scripts()):
        assert "${{" not in text, where
        (tmp_path / f"{place}.sh").write_text(f"#!/usr/bin/env bash\n{text}\n")
    checked = subprocess.run(
        ["shellcheck", *map(str, tmp_path.glob("*.sh"))], check=False, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout


def test_same_promises_everywhere() -> None:
    """One job at a time; run folder and xunit.xml always kept; inconclusive warns; the token for delivery."""
    github, gitlab, jenkins = document(GITHUB), document(GITLAB), JENKINS.read_text()
    assert github["concurrency"] == {"group": "bench-lab-1", "cancel-in-progress": "false"}
    assert gitlab["qualify"]["resource_group"] == gitlab["deliver"]["resource_group"] == "bench-lab-1"
    assert "lock(resource: 'bench-lab-1')" in jenkins
    steps = github["jobs"]["qualify"]["steps"]
    (upload,) = [step for step in steps if step.get("uses", "").startswith("actions/upload-artifact")]
    assert (upload["if"], upload["with"]["path"]) == ("always()", "results/job/")
    assert gitlab["qualify"]["artifacts"]["when"] == "always"
    assert gitlab["qualify"]["artifacts"]["reports"] == {"junit": "results/job/*/xunit.xml"}
    assert "archiveArtifacts(artifacts: 'results/job/**'" in jenkins.partition("always {")[2]
    assert github["jobs"]["verdict"]["continue-on-error"] == "${{ needs.qualify.outputs.code == '4' }}"
    assert gitlab["qualify"]["allow_failure"] == {"exit_codes": ["4"]}
    assert re.search(r"code == 4\) \{\s*unstable\(", jenkins)
    holders = [name for name, job in github["jobs"].items() if "secrets." in str(job)]
    assert holders == ["deliver"]
    assert jenkins.index("stage('Deliver") < jenkins.index("withCredentials(")


def test_pipelines_start_by_night_and_on_demand_alone() -> None:
    assert set(document(GITHUB)["on"]) == {"schedule", "workflow_dispatch"}
    rules = [rule["if"].split('"')[1] for rule in document(GITLAB)["workflow"]["rules"]]
    assert rules == ["schedule", "web"]
    assert "triggers { cron(" in JENKINS.read_text()


def test_the_night_is_begun_by_the_schedule_alone_and_its_results_are_kept() -> None:
    """All three run the same parts, which there are."""
    github, gitlab, jenkins = document(GITHUB), document(GITLAB), JENKINS.read_text()
    assert github["jobs"]["night"]["if"] == "always() && github.event_name == 'schedule'"
    (rule,) = gitlab["night"]["rules"]
    assert rule["if"] == '$CI_PIPELINE_SOURCE == "schedule"'
    stage = jenkins.partition("stage('Night')")[2]
    assert "when { triggeredBy 'TimerTrigger' }" in stage.partition("steps")[0]
    asked = {tuple(command) for _, text in scripts() for command in commands(text) if "nightly" in command}
    assert len(asked) == 1, "the same everywhere"
    (words,) = (word.removeprefix("PARTS=").split() for word in asked.pop() if word.startswith("PARTS="))
    assert selected(parts(600, "b.yaml"), [word for word in words if not word.startswith("--")])
    kept = [step["with"]["path"] for step in github["jobs"]["night"]["steps"] if step.get("if") == "always()"]
    assert kept == ["results/night/"]
    assert gitlab["night"]["artifacts"]["when"] == "always"
    assert "results/night/" in gitlab["night"]["artifacts"]["paths"]
    assert (
        "archiveArtifacts(artifacts: 'results/night/**'" in stage.partition("always {")[2].partition("}")[0]
    )


class Bench:
    """A source tree with a `make` that behaves as it is told."""

    def __init__(self, folder: Path) -> None:
        """Copy the script into a tree of its own."""
        self.root = folder / "tree"
        self.job = self.root / "results" / "job"
        script = self.root / JOB.relative_to(ROOT)
        script.parent.mkdir(parents=True)
        shutil.copy(JOB, script)
        (self.root / "results" / "20260101T000000Z-lab-1-ci").mkdir(parents=True)
        (folder / "bin").mkdir()
        self._make = folder / "bin" / "make"
        python = self.root / PYTHON
        python.parent.mkdir(parents=True)
        python.write_text('#!/bin/sh\necho "$@" >>"$PWD/python-calls"\n')
        python.chmod(0o755)
        self._environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        self._script = str(script)

    def make_does(self, text: str) -> None:
        """Let `make` run a text of bash."""
        self._make.write_text(f"#!/usr/bin/env bash\n{text}\n")
        self._make.chmod(0o755)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start the script: a shell cannot trap what whoever started the tests has told them to ignore."""
        command = ["env", "--default-signal=INT,TERM", self._script, *arguments]
        return subprocess.Popen(command, env=self._environment, cwd="/")

    def run(self, *arguments: str) -> int:
        """Run the script and return its exit code."""
        return self.start(*arguments).wait(HANG_S)


RUN = "results/20260102T000000Z-lab-1"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Return a tree in which an earlier run lies."""
    return Bench(tmp_path)


@pytest.mark.parametrize("code", [0, 1, 4, 5])
def test_run_folder_is_kept_however_it_came_out(bench: Bench, code: int) -> None:
    text = f'mkdir -p {RUN}-ci; echo "$@" >{RUN}-ci/xunit.xml; echo {code} >"$QUALIFY_EXIT_FILE"; exit 2'
    bench.make_does(text)
    assert bench.run("qualify", "BENCH=b.yaml", "PROFILE=ci") == code
    assert bench.run("keep") == 0
    kept = [path.name for path in bench.job.iterdir()]
    assert sorted(kept) == ["20260102T000000Z-lab-1-ci", "exit-code"]
    assert (bench.job / "20260102T000000Z-lab-1-ci" / "xunit.xml").read_text() == (
        "qualify BENCH=b.yaml PROFILE=ci\n"
    )
    assert (bench.job / "exit-code").read_text() == f"{code}\n"
    assert "reports dossier" not in (bench.root / "python-calls").read_text()


def test_acceptance_gets_its_dossier(bench: Bench) -> None:
    bench.make_does(
        f'mkdir -p {RUN}-acceptance; touch {RUN}-acceptance/SHA256SUMS; echo 0 >"$QUALIFY_EXIT_FILE"'
    )
    assert bench.run("qualify") == 0
    assert bench.run("keep") == 0
    wanted = f"-m reports dossier {RUN}-acceptance --output results/job/dossier.pdf\n"
    assert wanted in (bench.root / "python-calls").read_text()


def test_failed_set_up_is_a_failure(bench: Bench) -> None:
    bench.make_does("exit 2")
    assert bench.run("qualify") == 1
    assert bench.run("keep") == 0


def test_nothing_of_an_earlier_job_is_kept(bench: Bench) -> None:
    bench.make_does(f'mkdir -p {RUN}-ci; echo 0 >"$QUALIFY_EXIT_FILE"')
    assert bench.run("qualify") == 0
    assert bench.run("keep") == 0
    assert bench.run("keep") == 1
    assert not bench.job.exists()


def test_cancelled_job_waits_until_the_bench_is_closed(bench: Bench, tmp_path: Path) -> None:
    """Make and its shell end at the signal; the qualification below them closes the bench first."""
    qualification = tmp_path / "qualification"
    qualification.write_text(
        f"#!/usr/bin/env bash\ntrap 'sleep 0.5; mkdir -p {RUN}-ci; exit 0' TERM\ntouch started\n"
        "for _ in {1..6000}; do sleep 0.05; done\n"
    )
    qualification.chmod(0o755)
    bench.make_does(f"{qualification}\nexit 2")
    job = bench.start("qualify")
    wait_until((bench.root / "started").exists, "the qualification")
    job.send_signal(signal.SIGINT)
    assert job.wait(HANG_S) == 4
    assert bench.run("keep") == 0
    assert (bench.job / "20260102T000000Z-lab-1-ci").is_dir()


def test_wrong_verb_is_explained(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    assert bench.run("kept") == 2
    assert "bench-job.sh keep" in capfd.readouterr().err
