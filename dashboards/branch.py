# SPDX-License-Identifier: Apache-2.0
"""The class of the branch that a run belongs to, so that trends of main are not mixed with trials."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hw.errors import ConfigError

MAIN, RELEASE, REQUEST, ADHOC = "main", "release", "pr", "adhoc"
CLASSES = (MAIN, RELEASE, REQUEST, ADHOC)
VARIABLE = "BENCHWRIGHT_BRANCH_CLASS"
_RELEASE = re.compile(r"(release|stable)([/-].*)?|v?\d+(\.\d+)+([-.+].*)?")


def branch_class(environment: Mapping[str, str]) -> str:
    """Return the class of the branch that this process was started for.

    `BENCHWRIGHT_BRANCH_CLASS` decides; else what GitHub Actions, GitLab CI or Jenkins say of their job; else
    `adhoc`: somebody's own try is no history of main, whatever is checked out.

    Raises:
        ConfigError: The variable has none of the four values.
    """
    given = environment.get(VARIABLE, "")
    if given:
        return checked_class(given, VARIABLE)
    if environment.get("GITHUB_ACTIONS"):
        request = environment.get("GITHUB_EVENT_NAME", "").startswith("pull_request")
        tag = environment.get("GITHUB_REF_TYPE") == "tag"
        return _class(request, tag, environment.get("GITHUB_REF_NAME", ""), "")
    if environment.get("GITLAB_CI"):
        request = bool(environment.get("CI_MERGE_REQUEST_IID"))
        tag = bool(environment.get("CI_COMMIT_TAG"))
        name = environment.get("CI_COMMIT_BRANCH", "")
        return _class(request, tag, name, environment.get("CI_DEFAULT_BRANCH", ""))
    if environment.get("JENKINS_URL"):
        tag = bool(environment.get("TAG_NAME"))
        return _class(bool(environment.get("CHANGE_ID")), tag, environment.get("BRANCH_NAME", ""), "")
    return ADHOC


def checked_class(text: str, where: str) -> str:
    """Return a class as it was given; raises ConfigError where it is none."""
    if text not in CLASSES:
        raise ConfigError(f"{where}: {text!r} is not one of {', '.join(CLASSES)}")
    return text


def _class(request: bool, tag: bool, name: str, default: str) -> str:
    if request:
        return REQUEST
    if tag or _RELEASE.fullmatch(name):
        return RELEASE
    return MAIN if name and name in (default, "main", "master") else ADHOC
