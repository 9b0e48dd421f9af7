# SPDX-License-Identifier: Apache-2.0
"""Requirements files as suites read them: of what they judge and nothing else."""

from __future__ import annotations

from pathlib import Path

from hw.errors import ConfigError
from reports.errors import RequirementsError
from reports.requirement_forms import read_set
from reports.requirements import RequirementSet


def load_requirements_file(path: Path, quantity: str, *more: str, needs: str = "") -> RequirementSet:
    """Read a requirements file of one form for all suites (reports/requirement_forms.py).

    To read it is not to ask for what is in it: that is `resources/requirement_scope.py`.

    Args:
        path: The TOML file.
        quantity: What the suite judges.
        more: Further quantities that it judges.
        needs: A key that each requirement needs here, of those that its quantity may have.

    Raises:
        ConfigError: Names file, requirement, field and what is allowed there.
    """
    try:
        found = read_set(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigError(f"{path}: {error}") from error
    except RequirementsError as error:
        raise ConfigError(str(error)) from error
    for number, each in enumerate(found.requirements, start=1):
        where = f"{path}: requirement[{number}]"
        if each.quantity not in (quantity, *more):
            wanted = ", ".join((quantity, *more))
            raise ConfigError(f"{where}.quantity: must be one of {wanted}, found {each.quantity!r}")
        if needs and not getattr(each, needs):
            raise ConfigError(f"{where}.{needs}: missing")
    return found
