# SPDX-License-Identifier: Apache-2.0
"""The same suites for several targets: copies with their own variables, and suites that a kind leaves out."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hw.bench import load_bench
from hw.errors import ConfigError
from reports.listener import _suites_of_targets  # pyright: ignore[reportPrivateUsage]
from reports.run.current import take_left_out
from reports.run.left_out import LeftOut
from reports.run.selected import suite_name
from resources import every_target
from resources.every_target import NETWORK_STACK, SUITES, EveryTarget, ProfileSuites, load_kind_suites
from resources.qualify import chosen_targets, require_one_choice

ROBOT_HAS_NO_TESTS = 252
_api: Any = import_module("robot.api")

RESOURCE = """*** Settings ***
Library    Collections
*** Variables ***
${TARGET}    nobody
${LIMIT}     wide
"""
SUITE = """*** Settings ***
Resource    ../words.resource
*** Test Cases ***
Who Is It
    Log    ${TARGET} ${LIMIT}
    Should Not Be Equal    ${TARGET}    nobody
    Should Be Equal    ${LIMIT}    %s
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with suites/clocks, suites/edges and targets/; the modifier looks there."""
    suites = tmp_path / "suites"
    for folder in ("clocks", "edges"):
        (suites / folder).mkdir(parents=True)
        (suites / folder / "one.robot").write_text(SUITE % "wide")
        (tmp_path / "targets" / folder).mkdir(parents=True)
    (suites / "words.resource").write_text(RESOURCE)
    monkeypatch.setattr(every_target, "SUITES", suites)
    monkeypatch.setattr(every_target, "TARGETS", tmp_path / "targets")
    return tmp_path


def build(path: Path, *targets: str) -> Any:
    suite = _api.TestSuite.from_file_system(str(path))
    suite.visit(EveryTarget(*targets))
    return suite


def run(suite: Any) -> dict[str, str]:
    result = suite.run(output=None, log=None, report=None, console="none")
    return {test.full_name: test.status for test in result.suite.all_tests}


def names(suite: Any) -> list[str]:
    return [test.full_name for test in suite.all_tests]


def test_one_target_gets_the_suites_as_they_are(tree: Path) -> None:
    suite = build(tree / "suites", "arm")
    assert names(suite) == ["Suites.Clocks.One.Who Is It", "Suites.Edges.One.Who Is It"]
    assert set(run(suite).values()) == {"PASS"}


def test_each_of_several_targets_gets_a_copy_that_bears_its_name(tree: Path) -> None:
    suite = build(tree / "suites", "linux-rt", "windows")
    found = run(suite)
    assert list(found) == [
        f"Qualification.{target}.{part}.One.Who Is It"
        for target in ("linux-rt", "windows")
        for part in ("Clocks", "Edges")
    ]
    assert set(found.values()) == {"PASS"}


def test_a_single_file_is_copied_too(tree: Path) -> None:
    suite = build(tree / "suites/clocks/one.robot", "a", "b")
    assert names(suite) == ["Qualification.a.Who Is It", "Qualification.b.Who Is It"]
    assert set(run(suite).values()) == {"PASS"}


STACK_SUITE = """*** Settings ***
Resource    ../words.resource
Metadata    Network Stack    ${STACK}
*** Test Cases ***
With Which
    Log    ${TARGET} ${STACK}
    Should Be Equal    ${STACK}    ${SUITE METADATA}[Network Stack]
"""


@pytest.fixture
def stacks(tree: Path) -> Path:
    """Return the tree with a suite that uses a network stack, and with kinds that have some."""
    (tree / "suites/words.resource").write_text(RESOURCE + "${STACK}    kernel\n")
    (tree / "suites/edges/one.robot").write_text(STACK_SUITE)
    for kind, names_ in (("arm", ("kernel", "user")), ("x86", ("kernel",))):
        folder = tree / "targets" / kind / "stack"
        folder.mkdir(parents=True)
        for name in names_:
            (folder / f"{name}.toml").write_text('schema = "benchwright.network_stack/1"\n')
    return tree


def test_a_suite_that_uses_a_network_stack_runs_once_with_each(stacks: Path) -> None:
    suite = build(stacks / "suites", "arm", "x86", "stacks=kernel,user")
    assert names(suite) == [
        f"Qualification.{target}.{rest}"
        for target in ("arm", "x86")
        for rest in (
            "Clocks.One.Who Is It",
            "Edges.One.kernel.With Which",
            "Edges.One.user.With Which",
        )
    ]
    assert list(_suites_of_targets(suite)) == [
        (target, stack, stacks / "suites" / file)
        for target in ("arm", "x86")
        for file, stack in (
            ("clocks/one.robot", None),
            ("edges/one.robot", "kernel"),
            ("edges/one.robot", "user"),
        )
    ]
    found = suite.run(output=None, log=None, report=None, console="none").suite
    assert {test.status for test in found.all_tests} == {"PASS"}
    used = [test.parent.metadata.get("Network Stack") for test in found.all_tests]
    assert used == [None, "kernel", "user"] * 2


def test_a_suite_that_compares_network_stacks_gets_all_of_them_and_no_copy(stacks: Path) -> None:
    one = stacks / "suites/edges/one.robot"
    text = (
        one.read_text().replace("Network Stack", "Compared Stacks").replace("${STACK}", "${COMPARED_STACKS}")
    )
    one.write_text(text)
    suite = build(stacks / "suites", "arm", "stacks=kernel,user")
    assert names(suite) == ["Suites.Clocks.One.Who Is It", "Suites.Edges.One.With Which"]
    found = suite.run(output=None, log=None, report=None, console="none").suite
    used = [test.parent.metadata.get("Compared Stacks") for test in found.all_tests]
    assert used == [None, "kernel user"]


def test_a_single_file_is_copied_for_each_network_stack(stacks: Path) -> None:
    suite = build(stacks / "suites/edges/one.robot", "arm", "stacks=user,kernel,user")
    assert names(suite) == ["One.user.With Which", "One.kernel.With Which"]
    assert set(run(suite).values()) == {"PASS"}


def test_one_network_stack_gets_the_suites_as_they_are(stacks: Path) -> None:
    suite = build(stacks / "suites", "arm", "stacks=user")
    assert names(suite) == ["Suites.Clocks.One.Who Is It", "Suites.Edges.One.With Which"]
    assert [stack for _target, stack, _file in _suites_of_targets(suite)] == [None, "user"]
    found = suite.run(output=None, log=None, report=None, console="none").suite
    assert [test.parent.metadata.get("Network Stack") for test in found.all_tests] == [None, "user"]


def test_a_network_stack_that_no_kind_has_is_an_error(stacks: Path) -> None:
    build(stacks / "suites", "x86", "stacks=user")  # another kind has it: the suite is skipped
    with pytest.raises(ConfigError, match=r"x86/stack/quick\.toml: no network stack 'quick'.*are: kernel$"):
        build(stacks / "suites", "pi@x86", "stacks=kernel,quick")
    with pytest.raises(ConfigError, match=r"name them once"):
        require_one_choice(["kernel"], ["--variable", "STACK:user"])
    require_one_choice([], ["--variable", "STACK:user"])
    require_one_choice(["kernel"], ["--variable", "PHASE:aligned-48"])


def test_every_suite_that_uses_a_network_stack_says_so() -> None:
    resources = [file.name for file in SUITES.glob("*/*.resource") if "=${STACK}" in file.read_text()]
    assert resources
    for suite in SUITES.rglob("*.robot"):
        text = suite.read_text()
        assert any(f"    {name}\n" in text for name in resources) == (
            f"{NETWORK_STACK}    ${{STACK}}" in text
        )


def test_a_kind_leaves_suites_out_and_sets_its_variables(tree: Path) -> None:
    (tree / "targets/arm").mkdir()
    (tree / "targets/arm/suites.toml").write_text(
        'schema = "benchwright.suites/1"\nfolders = ["clocks"]\n[variables]\nLIMIT = "narrow"\n'
    )
    (tree / "suites/clocks/one.robot").write_text(SUITE % "${{'narrow' if $TARGET == 'arm' else 'wide'}}")
    found = run(build(tree / "suites", "linux-rt", "arm"))
    assert list(found) == [
        "Qualification.linux-rt.Clocks.One.Who Is It",
        "Qualification.linux-rt.Edges.One.Who Is It",
        "Qualification.arm.Clocks.One.Who Is It",
    ]
    assert set(found.values()) == {"PASS"}
    assert names(build(tree / "suites", "arm")) == ["Suites.Clocks.One.Who Is It"]
    assert names(build(tree / "suites/clocks", "arm")) == ["Clocks.One.Who Is It"]
    assert names(build(tree / "suites/edges", "arm")) == []


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        ('without = ["edges"]', ("clocks",)),
        ('folders = ["edges"]\nwithout = ["edges"]', ()),
        ('folders = ["edges"]\nwithout = ["clocks"]', ("edges",)),
    ],
)
def test_a_kind_says_in_which_folders_it_takes_no_part(tree: Path, keys: str, left: tuple[str, ...]) -> None:
    (tree / "targets/edges/suites.toml").write_text(f'schema = "benchwright.suites/1"\n{keys}\n')
    assert load_kind_suites(tree / "targets/edges").folders == left


def test_a_profile_may_have_no_time_for_a_folder_or_a_file(tree: Path) -> None:
    path = tree / "targets/edges/suites.toml"
    for without in ("clocks", "clocks/one.robot"):
        path.write_text(f'schema = "benchwright.suites/1"\n[profiles.ci]\nwithout = ["{without}"]\n')
        assert names(build(tree / "suites", "edges", "profile=nightly")) == [
            "Suites.Clocks.One.Who Is It",
            "Suites.Edges.One.Who Is It",
        ]
        assert take_left_out() == ()
        assert names(build(tree / "suites", "profile=ci", "edges")) == ["Suites.Edges.One.Who Is It"]
        assert take_left_out() == (LeftOut("edges", "clocks/one.robot", ("Who Is It",), whole=True),)
        assert take_left_out() == ()


def test_what_a_kind_takes_no_part_in_is_not_left_out_by_the_profile(tree: Path) -> None:
    path = tree / "targets/edges/suites.toml"
    path.write_text(
        'schema = "benchwright.suites/1"\nfolders = ["edges"]\n[profiles.ci]\nwithout = ["clocks"]\n'
    )
    assert names(build(tree / "suites", "edges", "arm", "profile=ci")) == [
        "Qualification.edges.Edges.One.Who Is It",
        "Qualification.arm.Clocks.One.Who Is It",
        "Qualification.arm.Edges.One.Who Is It",
    ]
    assert take_left_out() == ()


def test_a_profile_that_leaves_out_all_says_so(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tree / "targets/edges/suites.toml"
    path.write_text('schema = "benchwright.suites/1"\n[profiles.quick]\nwithout = ["clocks"]\n')
    assert names(build(tree / "suites/clocks", "edges", "profile=quick")) == []
    assert "profile quick leaves out every test of these suites" in capfd.readouterr().err


def test_the_consumer_of_the_virtual_bench_does_not_produce() -> None:
    found = {
        suite_name(Path(each.parent.source)) for each in build(every_target.SUITES, "linux-rt").all_tests
    }
    assert "daq_producer/produced_streams.robot" not in found
    assert "daq_replay/latency_budgets.robot" in found


def test_a_kind_takes_no_part_in_what_needs_more_than_it_has(tree: Path) -> None:
    """A kind that says nothing has all; what a suite needs may be several things."""
    clocks, edges = tree / "suites/clocks/one.robot", tree / "suites/edges/one.robot"
    clocks.write_text(f"*** Settings ***\nMetadata    Needs    clock\n{STACKS}")
    edges.write_text(f"*** Settings ***\nMetadata    Needs    clock, pins\n{METHODS}")
    path = tree / "targets/edges/suites.toml"
    both = ["Clocks", "Edges"]
    for has, left in (("[]", both[:0]), ('["clock"]', both[:1]), ('["pins", "clock"]', both)):
        path.write_text(f'schema = "benchwright.suites/1"\nhas = {has}\n')
        assert {name.split(".")[1] for name in names(build(tree / "suites", "edges"))} == set(left)
    path.write_text('schema = "benchwright.suites/1"\nhas = ["pin"]\n')
    with pytest.raises(ConfigError, match=r"has: must be a list of clock, pins, found 'pin'"):
        load_kind_suites(tree / "targets/edges")
    path.write_text('schema = "benchwright.suites/1"\n')
    assert {name.split(".")[1] for name in names(build(tree / "suites", "edges"))} == {"Clocks", "Edges"}
    assert take_left_out() == ()


def test_variables_of_the_file_itself_give_way(stacks: Path) -> None:
    """The copy for a second target would measure the first one that the file names."""
    own = "*** Variables ***\n${target}    nobody\n${STACK} =    none\n"
    for file in (stacks / "suites").rglob("one.robot"):
        file.write_text(own + file.read_text())
    suite = build(stacks / "suites", "arm", "x86", "stacks=kernel")
    found = list(suite.run(output=None, log=None, report=None, console="none").suite.all_tests)
    assert {test.status for test in found} == {"PASS"}
    assert [test.parent.metadata.get("Network Stack") for test in found] == [None, "kernel"] * 2


def test_a_suite_in_a_folder_of_its_capability_is_one_of_it(tree: Path) -> None:
    """A kind names it, one that is without another folder has it, and times of its capability count."""
    (tree / "suites/fans/deep").mkdir(parents=True)
    (tree / "suites/fans/deep/one.robot").write_text(SUITE % "wide")
    (tree / "resources/fans").mkdir(parents=True)
    (tree / "resources/fans/times.toml").write_text("[ci]\n")
    path, fans = tree / "targets/edges/suites.toml", ["Suites.Fans.Deep.One.Who Is It"]
    head = 'schema = "benchwright.suites/1"\n'
    path.write_text(head + 'without = ["clocks", "edges"]\n')
    assert names(build(tree / "suites", "edges", "profile=ci")) == fans
    assert names(build(tree / "suites", "edges", "profile=quick")) == []
    path.write_text(head + 'folders = ["fans"]\n[profiles.ci]\nwithout = ["fans/deep/one.robot"]\n')
    assert names(build(tree / "suites", "edges")) == fans
    assert names(build(tree / "suites", "edges", "profile=ci")) == []


def test_a_need_of_somebodys_own_suite_that_no_kind_can_have_is_an_error(tree: Path) -> None:
    (tree / "suites/clocks/one.robot").write_text(f"*** Settings ***\nMetadata    Needs    clock\n{STACKS}")
    path = tree / "targets/edges/suites.toml"
    path.write_text('schema = "benchwright.suites/1"\nhas = ["clock"]\n')
    own = tree / "own.robot"
    own.write_text(f"*** Settings ***\nMetadata    Needs    clock\n{STACKS}")
    assert names(build(own, "edges"))
    own.write_text(f"*** Settings ***\nMetadata    Needs    clok\n{STACKS}")
    with pytest.raises(ConfigError, match=r"own\.robot: Needs: must be of clock; found 'clok'"):
        build(own, "edges")


def test_a_profile_has_no_time_for_a_suite_without_times_of_it(tree: Path) -> None:
    """The file of the suite's own goes before that of its capability; without one it has time."""
    for name in ("clocks", "edges"):
        (tree / "resources" / name).mkdir(parents=True)
    (tree / "resources/clocks/times.toml").write_text("[ci]\n")
    assert {name.split(".")[1] for name in names(build(tree / "suites", "arm", "profile=quick"))} == {"Edges"}
    assert take_left_out() == (LeftOut("arm", "clocks/one.robot", ("Who Is It",), whole=True),)
    assert len(names(build(tree / "suites", "arm", "profile=ci"))) == 2
    (tree / "resources/clocks/one.times.toml").write_text("[quick]\n")
    assert len(names(build(tree / "suites", "arm", "profile=quick"))) == 2
    assert len(names(build(tree / "suites", "arm"))) == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('schema = "benchwright.suites/2"', "schema"),
        ('schema = "benchwright.suites/1"\nwithout = ["none"]', "clocks, edges"),
        ('schema = "benchwright.suites/1"\nfolders = ["none"]', "clocks, edges"),
        ('schema = "benchwright.suites/1"\nfolder = ["clocks"]', "folder"),
        ('schema = "benchwright.suites/1"\n[variables]\nLIMIT = 3', "variables.LIMIT"),
        ('schema = "benchwright.suites/1"\n[variables]\nTARGET = "arm"', "variables.TARGET"),
        (
            'schema = "benchwright.suites/1"\n[profiles.ci]\nfolders = []',
            "known here: methods, only_by_name, stacks, without",
        ),
        (
            'schema = "benchwright.suites/1"\n[profiles.hasty]\n',
            "profiles.hasty: no such profile; there are: quick",
        ),
        (
            'schema = "benchwright.suites/1"\n[profiles.ci]\nwithout = ["clocks/two.robot"]',
            "profiles.ci.without: must be a list of clocks, edges, clocks/one.robot, edges/one.robot",
        ),
        (
            'schema = "benchwright.suites/1"\n[profiles.ci]\nwithout_tags = ["slow"]',
            "profiles.ci.without_tags: must be a list of nothing, found 'slow'",
        ),
        (
            'schema = "benchwright.suites/1"\n[profiles.ci]\nmethods = ["tgpio"]',
            "profiles.ci.methods: must be a list of gettime-software, rdtsc-software",
        ),
        (
            'schema = "benchwright.suites/1"\n[profiles.ci]\nstacks = ["chrony"]',
            "profiles.ci.stacks: must be a list of nothing, found 'chrony'",
        ),
        ("schema = ", "suites.toml"),
    ],
)
def test_a_wrong_file_names_the_key(tree: Path, text: str, told: str) -> None:
    (tree / "targets/edges/suites.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"suites\.toml") as error:
        load_kind_suites(tree / "targets/edges")
    assert told in str(error.value)


def test_windows_leaves_out_what_ci_has_no_time_for() -> None:
    of_ci = load_kind_suites(every_target.TARGETS / "windows", profile="ci").profile
    assert set(of_ci.without_tags) == {"table-2", "mid-run"}
    assert load_kind_suites(every_target.TARGETS / "windows", profile="nightly").profile == ProfileSuites(
        "nightly"
    )


QUICK = {
    "linux-rt": {
        "clock_sync/sync_error.robot": 2,
        "daq_replay/latency_budgets.robot": 1,
        "provisioning/same_state.robot": 2,
        "timed_edges/methods.robot": 2,
    },
    "embedded": {"daq_producer/produced_streams.robot": 2},
    "windows": {"clock_sync/sync_error.robot": 1, "daq_replay/latency_budgets.robot": 1},
    "linux": {"daq_replay/latency_budgets.robot": 1},
}
"""Tests of each suite that the profile `quick` leaves of a target."""


@pytest.mark.parametrize("target", QUICK)
def test_what_quick_leaves_of_the_projects_suites(target: str) -> None:
    """With what is left out these are all the tests that the target takes part in."""
    named = f"{target}@{'linux-rt' if target == 'embedded' else target}"
    kept = build(every_target.SUITES, named, "profile=quick")
    out = take_left_out()
    found = Counter(suite_name(Path(test.parent.source)) for test in kept.all_tests)
    assert found == QUICK[target]
    whole = build(every_target.SUITES, named)
    assert {test.name for test in whole.all_tests} == {
        *(test.name for test in kept.all_tests),
        *(name for each in out for name in each.tests),
    }
    assert {each.suite for each in out if each.whole}.isdisjoint(found)
    assert {each.target for each in out} == {target}


def test_every_kind_of_this_project_has_a_file_that_can_be_read() -> None:
    kinds = [folder for folder in every_target.TARGETS.iterdir() if folder.is_dir()]
    assert kinds
    for folder in kinds:
        load_kind_suites(folder)


def test_no_target_is_an_error() -> None:
    with pytest.raises(ConfigError, match="one target"):
        build(every_target.SUITES)


@pytest.mark.parametrize(
    ("modifier", "told"),
    [
        ("resources.every_target.EveryTarget:linux-rt:stacks=none", "no network stack 'none'"),
        ("resources.requirement_tests.RequirementTests:target=linux-rt:bench=none.yaml", "none.yaml"),
    ],
)
def test_a_run_ends_before_its_first_test_where_a_file_is_wrong(modifier: str, told: str) -> None:
    """Robot Framework logs what a modifier raises and goes on with the suites as they are."""
    command = [sys.executable, "-m", "robot", "--pythonpath", ".", "--dryrun"]
    command += [
        *(f"--{each}=NONE" for each in ("output", "log", "report")),
        "--prerunmodifier",
        modifier,
        "robot/daq_replay",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == ROBOT_HAS_NO_TESTS, done.stdout
    assert told in done.stderr


def test_a_run_is_of_all_targets_of_the_bench_or_of_those_named() -> None:
    spec = load_bench(Path("hw/benches/virtual.yaml"))
    linux = spec.targets["linux-rt"]
    spec = replace(spec, targets={"linux-rt": linux, "windows": linux, "embedded": linux})
    assert chosen_targets(spec, []) == ("linux-rt", "windows", "embedded")
    assert chosen_targets(spec, ["embedded", "linux-rt"]) == ("linux-rt", "embedded")
    assert chosen_targets(spec, [], ["--variable", "TARGET:windows"]) == ("windows",)
    assert chosen_targets(spec, [], ["--variable=TARGET:windows", "--variable", "PHASE:aligned-48"]) == (
        "windows",
    )
    with pytest.raises(ConfigError, match=r"no target .arm.; there are: linux-rt, windows, embedded"):
        chosen_targets(spec, ["arm"])


def test_a_profile_takes_some_kinds_only_by_name() -> None:
    spec = load_bench(Path("hw/benches/virtual.yaml"))
    others = ("linux-rt", "embedded", "windows")
    assert chosen_targets(spec, [], profile="quick") == others
    assert chosen_targets(spec, [], profile="ci") == (*others, "linux")
    assert chosen_targets(spec, ["linux", "windows"], profile="quick") == ("windows", "linux")
    assert chosen_targets(spec, [], ["--variable", "TARGET:linux"], "quick") == ("linux",)
    alone = replace(spec, targets={"linux": spec.targets["linux"]})
    assert chosen_targets(alone, [], profile="quick") == ("linux",)


STACKS = """*** Test Cases ***
Chrony Keeps The Clock
    [Tags]    stack:chrony
    No Operation
The Time Service Keeps The Clock
    [Tags]    stack:w32time    slow
    No Operation
Any Clock Is Read
    [Tags]    slow
    No Operation
"""
ONLY_CHRONY = STACKS.partition("The Time")[0]


def test_a_kind_is_asked_for_its_own_clock_stacks_alone(tree: Path) -> None:
    """A suite of which nothing is left is not opened; a kind that says nothing is asked for all."""
    (tree / "suites" / "clocks" / "one.robot").write_text(STACKS)
    (tree / "suites" / "edges" / "one.robot").write_text(ONLY_CHRONY)
    for kind, stack in (("clocks", "w32time"), ("edges", "chrony")):
        own = tree / "targets" / kind / "clock" / stack
        own.mkdir(parents=True)
        (own / "stack.toml").write_text("sync_interval_s = 1.0\n")
    assert names(build(tree / "suites", "clocks")) == [
        "Suites.Clocks.One.The Time Service Keeps The Clock",
        "Suites.Clocks.One.Any Clock Is Read",
    ]
    found = names(build(tree / "suites", "edges", "arm"))
    assert [name for name in found if ".edges." in name] == [
        "Qualification.edges.Clocks.One.Chrony Keeps The Clock",
        "Qualification.edges.Clocks.One.Any Clock Is Read",
        "Qualification.edges.Edges.One.Chrony Keeps The Clock",
    ]
    assert len([name for name in found if ".arm." in name]) == 4
    assert names(build(tree / "suites", "arm@clocks")) == [
        "Suites.Clocks.One.The Time Service Keeps The Clock",
        "Suites.Clocks.One.Any Clock Is Read",
    ]


METHODS = """*** Test Cases ***
One Way To Make An Edge
    [Tags]    method:tgpio-latch
    No Operation
Another Way
    [Tags]    method:rdtsc-software
    No Operation
The Ways Are Compared
    [Tags]    order
    No Operation
"""


def test_a_profile_names_stacks_and_methods(tree: Path) -> None:
    """A test that names neither a stack nor a method stays; what goes is told in the suites' order."""
    (tree / "suites/clocks/one.robot").write_text(STACKS)
    (tree / "suites/edges/one.robot").write_text(METHODS)
    for stack in ("chrony", "w32time"):
        own = tree / "targets/edges/clock" / stack
        own.mkdir(parents=True)
        (own / "stack.toml").write_text("sync_interval_s = 1.0\n")
    (tree / "targets/edges/suites.toml").write_text(
        'schema = "benchwright.suites/1"\n[profiles.quick]\nstacks = ["chrony"]\n'
        'methods = ["tgpio-latch"]\nwithout_tags = ["order"]\n'
    )
    assert names(build(tree / "suites", "edges", "profile=quick")) == [
        "Suites.Clocks.One.Chrony Keeps The Clock",
        "Suites.Clocks.One.Any Clock Is Read",
        "Suites.Edges.One.One Way To Make An Edge",
    ]
    assert take_left_out() == (
        LeftOut("edges", "clocks/one.robot", ("The Time Service Keeps The Clock",), whole=False),
        LeftOut("edges", "edges/one.robot", ("Another Way", "The Ways Are Compared"), whole=False),
    )
