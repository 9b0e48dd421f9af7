# SPDX-License-Identifier: Apache-2.0
"""Settings of clock stacks: intervals that a stack can do, its data file, its configuration files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hw.errors import ConfigError
from resources.clock_sync.config import Place, client_files, server_files
from resources.clock_sync.settings import (
    LINUX_STACKS,
    STACK_FILE,
    ClockSettings,
    Wander,
    load_stack,
    load_stacks,
    stack_names,
)

TEMPLATES = Path(__file__).resolve().parents[3] / "targets" / "linux-rt" / "clock"
STACKS = stack_names()
SYNCHRONISING = [name for name in STACKS if load_stack(name, simulated=True).interval_max_s > 0]
PLACE = Place(server="10.77.0.50", interface="test0", phc="/dev/ptp0", simulated=True)


@pytest.mark.parametrize(
    ("stack", "wanted_s", "real_s"),
    [
        ("chrony", 30, 32),
        ("chrony", 60, 64),
        ("chrony", 120, 128),
        ("chrony", 240, 256),
        ("chrony", 480, 512),
        ("chrony", 960, 1024),
        ("chrony", 1, 1),
        ("ptp-software", 0.125, 0.125),
        ("ptp-software", 0.1, 0.125),
        ("ntp-user", 30, 30),
        ("ntp-user", 960, 960),
        ("phc2sys", 3, 3),
        ("timeservice", None, 30),
        ("timeservice", 960, 960),
        ("free-run", 30, 0),
    ],
)
def test_interval_is_the_one_that_the_stack_can_do(stack: str, wanted_s: float | None, real_s: float) -> None:
    settings = ClockSettings(sync_interval_s=wanted_s).effective(load_stack(stack, simulated=True))
    assert settings.sync_interval_s == real_s


def test_stack_has_an_interval_of_its_own() -> None:
    for name in STACKS:
        stack = load_stack(name, simulated=True)
        assert ClockSettings().effective(stack).sync_interval_s == stack.sync_interval_s


@pytest.mark.parametrize("stack", SYNCHRONISING)
def test_interval_out_of_range_is_refused(stack: str) -> None:
    spec = load_stack(stack, simulated=True)
    for wrong_s in (0.0, spec.interval_min_s / 2, spec.interval_max_s * 1.01):
        with pytest.raises(ConfigError, match=f"clock stack {stack}: sync_interval_s: must be in"):
            ClockSettings(sync_interval_s=wrong_s).effective(spec)


def test_a_stack_may_keep_a_clock_of_its_own() -> None:
    found = {name: load_stack(name, simulated=True) for name in STACKS}
    assert {name for name, stack in found.items() if stack.device != "realtime"} == {"timeservice"}
    assert found["timeservice"].server_wander == Wander(50_000, 1)
    assert found["chrony"].server_wander is None


def test_unknown_stack_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be one of chrony, free-run, ntp-user"):
        load_stack("sundial", simulated=True)


def test_lock_rule_depends_on_the_bench() -> None:
    virtual, real = load_stack("chrony", simulated=True).lock, load_stack("chrony", simulated=False).lock
    assert virtual is not None
    assert real is not None
    assert virtual.offset_ns > real.offset_ns


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("consecutive = 5", "consecutive = 0", "consecutive: must be an integer in 1..10000"),
        ("consecutive = 5", "in_a_row = 5", "consecutive: missing"),
        ("sync_interval_s = 1.0", "sync_interval_s = -1.0", "must be a number in 0"),
        ("[lock.hardware]", "[lock.brassware]", "chrony/stack.toml: lock.hardware: missing"),
        ("kp = 0.2", "kp = 0.2\nkd = 1", "servo.kd: unknown key"),
        ("walk_ppb_per_sqrt_s = 1", "walk = 1", "server_wander.walk_ppb_per_sqrt_s: missing"),
        (
            'needs = ["phc"]',
            'needs = ["sun"]',
            "/stack.toml: needs: must be a list of server, phc, found 'sun'",
        ),
        (
            "[servo]",
            '[machine_needs]\ncommand = "x"\n[servo]',
            "needs.without: missing",
        ),
        ("can_resume = false", "can_resume = 0", "can_resume: must be true or false, found 0"),
        (
            'format = "chrony-tracking"',
            'format = "papyrus"',
            "logs.chronyd.format: must be one of ptp4l, phc",
        ),
        ('format = "chrony-measurements"', 'format = "pmc"', "answers.format: must be one of chrony-measure"),
        ('settled_states = "locked"\n', "", "logs.bw-ntp-user.settled_states: missing"),
        (
            'tools = "bw-timed"',
            'tool = "bw-timed"',
            "stack.toml: tool: unknown key; known here: answers, can",
        ),
        ('title = "Chrony With', 'title = "Chrony  With', "stack.toml: title: must be words with one blank"),
        ('title = "A Clock That Chrony', 'title = " A Clock', "stack.toml: edges_title: must be words with"),
        ('title = "Chrony With', 'title = "Chrony\\nWith', "stack.toml: title: must be words with one blank"),
        (
            'title = "Chrony With Kernel Stamps"',
            'title = ""',
            "stack.toml: title: must be a text that is not",
        ),
    ],
)
def test_damaged_data_file_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    texts = {name: (LINUX_STACKS / name / STACK_FILE).read_text() for name in STACKS}
    name = next(name for name in STACKS if old in texts[name])
    (tmp_path / name).mkdir()
    (tmp_path / name / STACK_FILE).write_text(texts[name].replace(old, new))
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_stack(name, simulated=True, path=tmp_path)


@pytest.mark.parametrize("key", ["title", "edges_title"])
def test_two_stacks_of_one_title_are_refused(tmp_path: Path, key: str) -> None:
    """By Robot Framework's rule for names, which knows no capitals, blanks or underscores."""
    chrony = (LINUX_STACKS / "chrony" / STACK_FILE).read_text()
    for name, title in (("old", "My_clock"), ("other", "Mine"), ("own", "my Clock")):
        (tmp_path / name).mkdir()
        own = re.sub(r"(?m)^(edges_)?title.*\n", "", chrony)
        (tmp_path / name / STACK_FILE).write_text(f'{key} = "{title}"\n{own}')
    with pytest.raises(ConfigError, match=rf"own/stack\.toml: {key}: old has it, too: 'my Clock'"):
        load_stacks(simulated=True, path=tmp_path)


def _files(
    stack: str, settings: ClockSettings, place: Place = PLACE
) -> tuple[dict[str, str], dict[str, str]]:
    spec = load_stack(stack, simulated=place.simulated)
    settings = settings.effective(spec)
    served = load_stack(spec.served, simulated=place.simulated)
    return client_files(TEMPLATES, spec, settings, place), server_files(TEMPLATES, served, settings, place)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("simulated", [True, False])
def test_nothing_is_left_to_fill_in(stack: str, simulated: bool) -> None:
    place = Place("10.77.0.50", "test0", "/dev/ptp0", simulated)
    for files in _files(stack, ClockSettings(server_wander=Wander()), place):
        for name, text in files.items():
            directives = [line for line in text.splitlines() if not line.startswith("#")]
            assert not [line for line in directives if "$" in line], name


@pytest.mark.parametrize(
    ("stack", "client", "server"),
    [
        ("free-run", set[str](), set[str]()),
        ("chrony", {"chrony-client.conf"}, {"chrony-server.conf"}),
        ("ntp-user", {"bw-ntp-user.arguments"}, {"chrony-server.conf"}),
        ("timeservice", {"bw-timed.arguments"}, {"chrony-server.conf"}),
        ("ptp-software", {"ptp4l-client.conf"}, {"ptp4l-server.conf"}),
        ("ptp-hardware", {"ptp4l-client.conf", "phc2sys-hardware.arguments", "phc"}, {"ptp4l-server.conf"}),
        ("phc2sys", {"phc2sys.arguments", "phc", "phc-preset", "bw-wander.arguments"}, set[str]()),
    ],
)
def test_each_role_gets_its_files(stack: str, client: set[str], server: set[str]) -> None:
    found = _files(stack, ClockSettings())
    assert (set(found[0]), set(found[1])) == (client, server)


def test_the_nodes_own_tai_is_what_stacks_are_told() -> None:
    place = Place("10.77.0.50", "test0", "/dev/ptp0", simulated=True, tai_utc_s=38)
    client, server = _files("ptp-software", ClockSettings(), place)
    for text in (client["ptp4l-client.conf"], server["ptp4l-server.conf"]):
        assert [line.split() for line in text.splitlines() if "utc_offset" in line] == [["utc_offset", "38"]]
    client, _ = _files("phc2sys", ClockSettings(), place)
    assert client["phc-preset"] == "38\n"
    assert "-O -38" in client["phc2sys.arguments"]


@pytest.mark.parametrize("simulated", [True, False])
@pytest.mark.parametrize("kind", ["linux-rt", "windows"])
def test_guests_alone_use_a_counter_that_promises_nothing(kind: str, simulated: bool) -> None:
    clock = TEMPLATES.parents[1] / kind / "clock"
    spec = load_stack("timeservice", simulated, clock)
    place = Place("10.77.0.50", "test0", "", simulated)
    files = client_files(clock, spec, ClockSettings().effective(spec), place)
    given = "--any-counter" in files["bw-timed.arguments"].split()
    assert given == (kind == "linux-rt" and simulated)


def test_phc_of_a_real_machine_is_neither_set_nor_made_to_wander() -> None:
    client, _ = _files(
        "phc2sys", ClockSettings(), Place("10.10.0.50", "enp3s0", "/dev/ptp0", simulated=False)
    )
    assert set(client) == {"phc2sys.arguments", "phc"}


def test_chrony_asks_for_interleaved_kernel_stamps_at_its_interval() -> None:
    client, server = _files("chrony", ClockSettings(sync_interval_s=30, max_change_s=7))
    lines = client["chrony-client.conf"].splitlines()
    assert "server 10.77.0.50 iburst minpoll 5 maxpoll 5 xleave" in lines
    assert "maxchange 7 0 0" in lines
    assert not [line for line in lines if line.startswith("hwtimestamp")]
    assert "bindaddress 10.77.0.50" in server["chrony-server.conf"].splitlines()


def test_hardware_stamps_name_the_interface() -> None:
    for files in _files("chrony", ClockSettings(hardware_stamps=True)):
        (text,) = files.values()
        assert "hwtimestamp test0" in text.splitlines()


def test_ptp_roles_agree_on_interval_domain_and_stamps() -> None:
    for stack, stamping in (("ptp-software", "software"), ("ptp-hardware", "hardware")):
        client, server = _files(stack, ClockSettings(sync_interval_s=0.25, ptp_domain=24))
        for text in (client["ptp4l-client.conf"], server["ptp4l-server.conf"]):
            words = dict(
                line.split(None, 1) for line in text.splitlines() if line.count(" ") and line[0] not in "#["
            )
            assert words["logSyncInterval"] == "-2"
            assert words["logMinDelayReqInterval"] == "-2"
            assert words["domainNumber"] == "24"
            assert words["time_stamping"] == stamping
            assert "[test0]" in text
    # A summary of several messages would have no sign.
    assert "summary_interval        -2" in client["ptp4l-client.conf"]


def test_user_space_client_polls_exactly_and_panics_where_chrony_would_end() -> None:
    client, _ = _files("ntp-user", ClockSettings(sync_interval_s=30, max_change_s=7))
    assert client["bw-ntp-user.arguments"] == "--server 10.77.0.50 --interval-ms 30000 --panic-ms 7000\n"


def test_seed_of_the_wander_is_passed_on() -> None:
    _, server = _files("chrony", ClockSettings(server_wander=Wander(seed=5)))
    assert "--seed 5" in server["bw-wander.arguments"]
    _, server = _files("chrony", ClockSettings(server_wander=Wander()))
    assert "--seed" not in server["bw-wander.arguments"]


def test_template_that_asks_for_the_unknown_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "chrony-client.conf").write_text("server $nobody\n")
    stack = load_stack("chrony", simulated=True)
    with pytest.raises(ConfigError, match=r"chrony-client\.conf: a word that cannot be filled in: 'nobody'"):
        client_files(tmp_path, stack, ClockSettings().effective(stack), PLACE)
    (tmp_path / "chrony").mkdir()
    (tmp_path / "chrony" / "chrony-client.conf").write_text("server $server\n")
    files = client_files(tmp_path, stack, ClockSettings().effective(stack), PLACE)
    assert files == {"chrony-client.conf": f"server {PLACE.server}\n"}, "its own goes before one for several"
    (tmp_path / "chrony" / "chrony-client.conf").unlink()
    (tmp_path / "config" / "chrony-client.conf").unlink()
    with pytest.raises(ConfigError, match="No such file"):
        client_files(tmp_path, stack, ClockSettings().effective(stack), PLACE)
