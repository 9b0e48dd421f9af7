# SPDX-License-Identifier: Apache-2.0
"""Which source tree a result belongs to: its commit, and a hash of what differs from it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hw.errors import CapabilityError

_COMMIT_DIGITS = 12
_DIFF_DIGITS = 12


@dataclass(frozen=True)
class State:
    """The state of a source tree.

    Attributes:
        commit: Hash of the commit, whole.
        diff: Hash of what differs from it, new files too; empty where nothing does.
    """

    commit: str
    diff: str

    @property
    def folder_name(self) -> str:
        """The name of the folder for its results: of the commit, and of the difference where there is one."""
        commit = self.commit[:_COMMIT_DIGITS]
        return f"{commit}-{self.diff}" if self.diff else commit


def state_of(root: Path) -> State:
    """Return the state of the source tree in a folder.

    Raises:
        CapabilityError: It is no work tree of git, or has no commit yet.
    """
    commit = _git(root, "rev-parse", "HEAD").decode().strip()
    changed = _git(root, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color")
    added = _git(root, "ls-files", "-z", "--others", "--exclude-standard").split(b"\0")[:-1]
    if not changed and not added:
        return State(commit, "")
    digest = hashlib.sha256(changed)
    for name in sorted(added):
        content = _content(root / os.fsdecode(name))
        digest.update(b"%b\0%d\0%b" % (name, len(content), content))
    return State(commit, digest.hexdigest()[:_DIFF_DIGITS])


def _content(path: Path) -> bytes:
    """Return what a new file says; of a link where it leads, of a folder or a file that vanished nothing."""
    if path.is_symlink():
        return os.fsencode(path.readlink())
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _git(root: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(root), *arguments], check=False, capture_output=True)
    if done.returncode != 0:
        raise CapabilityError(
            f"night: results are kept by commit, and git knows none here: {done.stderr.decode().strip()}"
        )
    return done.stdout
