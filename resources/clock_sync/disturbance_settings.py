# SPDX-License-Identifier: Apache-2.0
"""How clocks are disturbed, and how often: `clock_disturbances.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from hw.path_settings import PathSettings, RandomLoss
from hw.toml_file import read_toml
from resources.clock_sync.settings import stacks_of_any_kind

DISTURBANCES_FILE = Path(__file__).with_name("clock_disturbances.toml")


@dataclass(frozen=True)
class PathImpairment:
    """What netem does to packets from the time server to the target, and nothing to those that come back."""

    delay_us: int
    jitter_us: int
    loss_percent: float

    def settings(self) -> PathSettings:
        """Return it as settings of the bench's router."""
        loss = RandomLoss(self.loss_percent) if self.loss_percent else None
        return PathSettings(self.delay_us, self.jitter_us, loss=loss)

    def text(self) -> str:
        """Return it in words, for a record's conditions."""
        return f"delay {self.delay_us} us, jitter {self.jitter_us} us, loss {self.loss_percent:g} %, one way"


@dataclass(frozen=True)
class DisturbanceSettings:
    """Sizes for a kind of bench, lengths and repeats for a profile.

    Attributes:
        oscillator_ppb: Change of the frequency of the target's oscillator.
        step_share: Step of the target's clock, as a share of the limit on its offset.
        oscillator_s: Length of a trial that changes of the oscillator fall into.
        grandmaster_s: Likewise, of the grandmaster.
        repeats: How often it is made and taken back.
        stacks: Clock stacks whose oscillator and time are changed.
        grandmaster: Clock stacks whose grandmaster vanishes and comes back.
        impaired_s: Length of a trial over an impaired path.
        impaired: Clock stacks whose path is impaired.
    """

    oscillator_ppb: int
    step_share: float
    path: PathImpairment
    oscillator_s: int
    grandmaster_s: int
    repeats: int
    stacks: tuple[str, ...]
    grandmaster: tuple[str, ...]
    impaired_s: int
    impaired: tuple[str, ...]


def load_disturbances(profile: str, simulated: bool, path: Path = DISTURBANCES_FILE) -> DisturbanceSettings:
    """Read how clocks are disturbed.

    Args:
        profile: `ci`, `acceptance` or `soak`.
        simulated: Whether the bench is a virtual one.
        path: The data file.

    Raises:
        ConfigError: The file does not know the profile, or is wrong; names file, field and allowed range.
    """
    document = read_toml(path)
    root = Fields(document, str(path), "")
    sizes, profiles = root.table_of("sizes"), root.table_of("profiles")
    root.finish()
    kind = "simulated" if simulated else "hardware"
    for name, tables in ((kind, sizes), (profile, profiles)):
        if name not in tables:
            raise ConfigError(f"{path}: no table for {name!r}; there are: {', '.join(tables)}")
    size, times = sizes[kind], profiles[profile]
    disturbable = stacks_of_any_kind(lambda stack: stack.disturbable)
    with_standby = stacks_of_any_kind(lambda stack: bool(stack.standby_file))
    jitter_us = size.integer("path_jitter_us", 0, 1_000_000)
    settings = DisturbanceSettings(
        oscillator_ppb=size.integer("oscillator_ppb", 1, 400_000),
        step_share=size.number("step_share", 0.1, 0.9),
        path=PathImpairment(
            delay_us=size.integer("path_delay_us", jitter_us, 1_000_000),
            jitter_us=jitter_us,
            loss_percent=size.number("path_loss_percent", 0.0, 50.0),
        ),
        oscillator_s=times.integer("oscillator_s", 1, 86_400),
        grandmaster_s=times.integer("grandmaster_s", 1, 86_400),
        repeats=times.integer("repeats", 1, 1000),
        stacks=times.texts("stacks", disturbable),
        grandmaster=times.texts("grandmaster", with_standby),
        impaired_s=times.integer("impaired_s", 1, 86_400),
        impaired=times.texts("impaired", disturbable),
    )
    size.text("oscillator_source")
    size.text("path_source")
    size.finish()
    times.finish()
    return settings
