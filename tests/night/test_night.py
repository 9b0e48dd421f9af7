# SPDX-License-Identifier: Apache-2.0
"""A night of made-up parts: what comes of each, what is kept, and how an interrupt ends it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.night import names
from tests.night.__main__ import main
from tests.night.parts import Part, Step
from tests.night.shift import TREE_CHANGED
from tests.patience import HANG_S, wait_until

ROOT = Path(__file__).resolve().parents[2]
COUNTED = "open('results/ran', 'a').write('{name} ')\n"
"""Begins the program of each part: what has run stands in this file."""
SLEEP = "import time; time.sleep(86400)"
LONG_S = 1e6


def part(name: str, program: str, limit_s: float = LONG_S, named: names.Names = names.none) -> Part:
    """Return a part that runs a program of Python."""
    step = Step((sys.executable, "-c", COUNTED.format(name=name) + program))
    return Part(name, f"about {name}", (step,), limit_s, named)


class Tree:
    """A work tree of git with a night of its own."""

    def __init__(self, root: Path) -> None:
        """Make it, with one commit."""
        self.root = root
        (root / ".gitignore").write_text("/results/\n")
        (root / "source").write_text("first\n")
        (root / "results").mkdir()
        self.git("init", "--quiet")
        self.commit()

    def git(self, *arguments: str) -> str:
        """Run git, with nobody's settings."""
        who = [f"GIT_{role}_{what}=x@x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
        command = ["env", "GIT_CONFIG_GLOBAL=/dev/null", *who, "git", "-C", str(self.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self) -> None:
        """Commit all that there is."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "x")

    def run(self, table: Sequence[Part], *arguments: str, grace_s: float = HANG_S) -> int:
        """Run a night; return its exit code."""
        return main(list(arguments), lambda _fuzz_s, _bench: table, self.root, grace_s)

    def ran(self) -> list[str]:
        """Return which parts have run since this was asked for last."""
        file = self.root / "results" / "ran"
        names = file.read_text().split() if file.exists() else []
        file.unlink(missing_ok=True)
        return names

    def folder(self) -> Path:
        """Return the one folder of results."""
        (folder,) = (path for path in (self.root / "results" / "night").iterdir() if path.is_dir())
        return folder

    def read(self, name: str, folder: Path | None = None) -> dict[str, Any]:
        """Return a file of the results."""
        return json.loads(((folder or self.folder()) / f"{name}.json").read_text())


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Give a tree without a result."""
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("codes", "exit_code"),
    [((0,), 0), ((0, 3), 0), ((3,), 0), ((0, 4, 3), 4), ((0, 4, 1), 1), ((2,), 1), ((5,), 1), ((137, 0), 1)],
)
def test_exit_code_of_a_night(tree: Tree, codes: tuple[int, ...], exit_code: int) -> None:
    table = [part(f"p{number}", f"raise SystemExit({code})") for number, code in enumerate(codes)]
    assert tree.run(table) == exit_code
    assert tree.ran() == [each.name for each in table], "each runs, whatever came of the one before"
    verdicts = [tree.read(each.name)["verdict"] for each in table]
    known = {0: "passed", 3: "skipped", 4: "inconclusive"}
    assert verdicts == [known.get(code, "failed") for code in codes]
    assert [each["verdict"] for each in tree.read("summary")["parts"]] == verdicts
    assert tree.read("summary")["exit_code"] == exit_code


def test_what_is_kept_of_a_part(tree: Tree) -> None:
    said = "print('all of it', file=sys.stderr)\nprint('missing:\\n  this\\n  and that')"
    tree.run([part("p", f"import sys\n{said}\nsys.exit(3)")])
    kept = tree.read("p")
    assert tree.folder().name == kept["commit"][:12]
    assert (kept["commit"], kept["diff"]) == (tree.git("rev-parse", "HEAD"), "")
    assert (kept["exit_code"], kept["reason"]) == (3, "missing: this; and that")
    assert len(kept["stolen_s"]) == os.cpu_count()
    assert kept["seconds"] > 0
    assert kept["load_max"] >= 0
    assert kept["began_utc"] <= kept["ended_utc"]
    assert "all of it" in (tree.folder() / kept["log"]).read_text()


def test_a_program_that_is_not_there_fails(tree: Tree) -> None:
    assert tree.run([Part("p", "", (Step(("results/no-such-program",)),), LONG_S)]) == 1
    assert "no-such-program: No such file" in tree.read("p")["reason"]


def test_steps_run_until_one_does_not_end_well(tree: Tree) -> None:
    good, missing = part("a", "").steps[0], part("b", "raise SystemExit(3)").steps[0]
    assert tree.run([Part("p", "", (good, missing, good), LONG_S)]) == 0
    assert tree.ran() == ["a", "b"]
    assert tree.read("p")["verdict"] == "skipped"
    # pytest's 3 is an error of its own, and nothing that is missing here.
    assert tree.run([Part("q", "", (Step(missing.argv, is_pytest=True),), LONG_S)]) == 1


def test_what_failed_is_named_in_the_results(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    program = "import sys; open(sys.argv[1], 'w').write('t::<one>\\nt::two\\n'); sys.exit(1)"
    own = Step((sys.executable, "-c", program, "{own}.failed.txt"))
    table = [
        Part("listed", "", (own,), LONG_S, names.from_list),
        part("logged", "print('x\\nlint: failed: types tidy'); raise SystemExit(1)", LONG_S,
             names.from_log(r"^lint: failed: (.+)$", " ")),
    ]  # fmt: skip
    assert tree.run(table) == 1
    assert tree.read("listed")["failures"] == ["t::<one>", "t::two"]
    assert tree.read("logged")["failures"] == ["types", "tidy"]
    assert "failed: listed: t::two" in capsys.readouterr().err
    page = (tree.folder() / "summary.html").read_text()
    assert "t::&lt;one&gt;" in page
    assert "tidy" in page


def test_what_did_not_pass_of_a_qualification(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    own = tmp_path / "qualify-ci"
    assert names.from_run(own) == []
    own.with_name("qualify-ci.run.txt").write_text(f"{run}\n")
    assert names.from_run(own) == []
    (run / "xunit.xml").write_text(
        '<testsuite><testcase classname="Latency" name="A"/><testcase classname="Latency" name="B">'
        '<failure message="fail: x"/></testcase></testsuite>'
    )
    assert (names.from_run(own), names.run_folder(own)) == (["Latency B"], str(run))


def test_a_part_beyond_its_limit_is_ended_and_has_failed(tree: Tree) -> None:
    assert tree.run([part("p", SLEEP, limit_s=0.5), part("q", "")]) == 1
    kept = tree.read("p")
    assert (kept["verdict"], kept["reason"]) == ("failed", "timed out after 0.5 s")
    assert tree.read("q")["verdict"] == "passed"


def test_what_a_part_leaves_running_is_ended(tree: Tree) -> None:
    leaves = f"import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', {SLEEP!r}]).pid)"
    assert tree.run([part("p", leaves)]) == 0
    child = int((tree.folder() / "p.log").read_text())
    stat = Path(f"/proc/{child}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_night_goes_on_where_it_was_left(tree: Tree) -> None:
    table = [part("a", ""), part("b", "raise SystemExit(1)"), part("c", "raise SystemExit(3)"), part("d", "")]
    assert tree.run(table[:3]) == 1
    assert tree.ran() == ["a", "b", "c"]
    assert tree.run(table) == 1
    assert tree.ran() == ["c", "d"], "what was skipped may be there by now"
    assert tree.run(table, "a", "d") == 0
    assert tree.ran() == []
    assert [each["part"] for each in tree.read("summary")["parts"]] == ["a", "b", "c", "d"]
    assert tree.run(table, "--again", "a") == 0
    assert tree.ran() == ["a"]
    assert tree.read("a.before")["part"] == "a"


def test_other_commands_give_another_result(tree: Tree) -> None:
    tree.run([part("a", "")])
    tree.run([part("a", "pass")])
    assert tree.ran() == ["a", "a"]


def test_another_state_of_the_tree_has_results_of_its_own(tree: Tree) -> None:
    table = [part("a", "")]
    names: set[str] = set()

    def another(change: Callable[[], object]) -> str:
        change()
        assert tree.run(table) == 0
        assert tree.ran() == ["a"]
        (name,) = {path.name for path in (tree.root / "results" / "night").iterdir() if path.is_dir()} - names
        names.add(name)
        return name

    clean = another(lambda: None)
    changed = another(lambda: (tree.root / "source").write_text("second\n"))
    added = another(lambda: (tree.root / "new").write_text("a\n"))
    written = another(lambda: (tree.root / "new").write_text("b\n"))
    assert all(name.startswith(f"{clean}-") for name in (changed, added, written))
    assert tree.read("a", tree.root / "results" / "night" / changed)["diff"] == changed.partition("-")[2]
    (tree.root / "new").unlink()
    (tree.root / "source").write_text("first\n")
    assert tree.run(table) == 0
    assert tree.ran() == [], "clean as before"
    assert "-" not in another(tree.commit)


def test_a_tree_that_is_changed_meanwhile_breaks_the_night_off(tree: Tree) -> None:
    table = [part("a", "open('source', 'w').write('changed')"), part("b", "")]
    assert tree.run(table) == 4
    assert tree.ran() == ["a"]
    kept = tree.read("a")
    assert (kept["verdict"], kept["reason"]) == ("inconclusive", TREE_CHANGED)
    assert tree.read("summary")["not_run"] == ["b"]


def test_a_folder_without_a_commit_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], lambda _fuzz_s, _bench: [part("a", "")], tmp_path) == 3
    assert "kept by commit" in capsys.readouterr().err


def test_parts_by_name_and_pattern(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    table = [part("bench-a", ""), part("bench-b", ""), part("lint", ""), part("fuzz", "")]
    assert tree.run(table, "lint", "bench-*") == 0
    assert tree.ran() == ["bench-a", "bench-b", "lint"]
    assert "not run" not in capsys.readouterr().err
    for word in ("no-such", "x*", "", "list*"):
        assert tree.run(table, "lint", word) == 2
        assert "bench-a bench-b lint fuzz" in capsys.readouterr().err
    assert tree.ran() == []
    for word in ("--list", "list"):
        assert tree.run(table, word) == 0
        listed = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in listed] == [each.name for each in table]
        assert "about lint" in listed[2]
    assert tree.ran() == []


@pytest.mark.parametrize("seconds", ["0", "x", "1.5"])
def test_seconds_that_are_none_are_refused_first(tree: Tree, seconds: str) -> None:
    assert tree.run([part("a", "")], "--fuzz-s", seconds) == 2
    assert tree.ran() == []


@pytest.mark.parametrize("hours", ["0", "-1", "x", "nan"])
def test_hours_that_are_none_are_refused_first(
    tree: Tree, hours: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tree.run([part("a", "")], f"--hours={hours}") == 2
    assert hours in capsys.readouterr().err
    assert tree.ran() == []


def test_a_night_of_some_hours_begins_with_what_the_last_one_left(tree: Tree) -> None:
    """What a whole night was too short for comes last: it would take the next one, too."""
    table = [part("a", ""), part("b", SLEEP), part("c", ""), part("d", "")]
    assert tree.run(table, "--hours=24", "a", "d") == 0
    assert tree.run(table, "--hours=1e-4") == 0, "begins with b, which never ends"
    tree.ran()
    tree.commit()
    table[1] = part("b", "")
    assert tree.run(table, "--hours=24") == 0
    assert tree.ran() == ["c", "d", "a", "b"]
    tree.commit()
    assert tree.run(table, "--hours=24") == 0
    assert tree.ran() == ["a", "b", "c", "d"], "nothing was left"


def test_the_end_of_a_night_ends_its_part_without_a_result(tree: Tree) -> None:
    """A part that is left to the next night is no failure, a night that had time for none no pass."""
    table = [part("a", ""), part("b", SLEEP), part("c", SLEEP)]
    short = "--hours=1e-4"
    assert tree.run(table, short, "b", "c") == 4
    assert tree.run(table, "a") == 0
    assert tree.run(table, short) == 0
    summary = tree.read("summary")
    assert (sorted(summary["later"]), summary["not_run"]) == (["b", "c"], [])
    assert not (tree.folder() / "b.json").exists()


def test_a_part_that_took_longer_than_what_is_left_is_not_begun(tree: Tree) -> None:
    table = [part("a", ""), part("b", "")]
    assert tree.run(table) == 0
    file = tree.folder() / "b.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "seconds": 2 * 3600}))
    tree.ran()
    assert tree.run(table, "--again", "--hours=1") == 0
    assert tree.ran() == ["a"]
    assert tree.run(table, "--again", "--hours=24", "b") == 0
    assert tree.ran() == ["b"]


def test_two_nights_in_a_tree_are_one_too_many(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    nights = tree.root / "results" / "night"
    nights.mkdir()
    with (nights / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert tree.run([part("a", "")]) == 5
    assert "another night" in capsys.readouterr().err
    assert tree.run([part("a", "")]) == 0


WAITS = """
import signal, sys, time
def end(*_):
    open('results/closed', 'w').write('x')
    sys.exit(0)
signal.signal(signal.SIGINT, end)
open('results/started', 'w').write('x')
time.sleep(86400)
"""
STUBBORN = """
import signal, time
def hear(number, _):
    open(f'results/heard-{number}', 'w').write('x')
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, hear)
open('results/started', 'w').write('x')
while True:
    time.sleep(86400)
"""
NIGHT = """
import sys
from pathlib import Path
from tests.night.__main__ import main
from tests.night.test_night import LONG_S, part
program, grace_s, root = sys.argv[1:]
table = [part("a", ""), part("b", program), part("c", "")]
sys.exit(main([], lambda _fuzz_s, _bench: table, Path(root), float(grace_s)))
"""


def begin(tree: Tree, program: str, grace_s: float) -> subprocess.Popen[bytes]:
    """Begin a night whose second part waits, and wait for that."""
    command = [sys.executable, "-c", NIGHT, program, str(grace_s), str(tree.root)]
    process = subprocess.Popen(command, cwd=ROOT)
    wait_until((tree.root / "results" / "started").exists, "the second part")
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_part_and_keeps_the_rest(tree: Tree, number: signal.Signals) -> None:
    night = begin(tree, WAITS, HANG_S)
    night.send_signal(number)
    assert night.wait(HANG_S) == 4
    assert (tree.root / "results" / "closed").exists(), "the part has cleaned up behind itself"
    assert tree.ran() == ["a", "b"]
    summary = tree.read("summary")
    assert (summary["interrupted"], summary["not_run"], summary["exit_code"]) == ("b", ["b", "c"], 4)
    assert [each["part"] for each in summary["parts"]] == ["a"]
    assert "Interrupted" in (tree.folder() / "summary.html").read_text()
    assert not (tree.folder() / "b.json").exists()
    assert tree.run([part("a", ""), part("b", ""), part("c", "")]) == 0
    assert tree.ran() == ["b", "c"]


def test_a_part_that_hears_nothing_is_killed(tree: Tree) -> None:
    night = begin(tree, STUBBORN, 0.1)
    night.send_signal(signal.SIGINT)
    assert night.wait(HANG_S) == 4
    assert tree.read("summary")["interrupted"] == "b"


def test_a_further_interrupt_waits_no_longer(tree: Tree) -> None:
    night = begin(tree, STUBBORN, 10 * HANG_S)
    for number in (signal.SIGINT, signal.SIGTERM):
        night.send_signal(signal.SIGINT)
        heard = tree.root / "results" / f"heard-{int(number)}"
        wait_until(heard.exists, f"{number.name} at the part")
    night.send_signal(signal.SIGINT)
    assert night.wait(HANG_S) == 4
