# SPDX-License-Identifier: Apache-2.0
"""A real InfluxDB 2.7 on loopback: built by tests/influxdb2/build/build.sh, set up by its own interface."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

from tests.dashboards.influxd import DATABASE, InfluxServer

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "tests" / "influxdb2" / "build" / "build.sh"
PROGRAM = REPOSITORY / ".build" / "influxd2"
ORGANISATION = "lab & co"
_WEEK_S = 7 * 86_400


def build() -> int:
    """Build the server where it is not there (minutes, once); return the build's exit code."""
    return subprocess.run([BUILD], check=False, stdout=sys.stderr).returncode


class InfluxServer2(InfluxServer):
    """The server; `set_up` makes organisation, bucket, a token that may do all, and the bucket's database."""

    @staticmethod
    def require() -> None:
        """Fail where it has not been built: its tests are run by nothing but what builds it."""
        assert PROGRAM.exists(), f"{PROGRAM} is not there: make test-influxdb2 builds it"

    def command(self) -> list[str]:
        """Return the command that starts it."""
        return [
            str(PROGRAM.resolve()),
            f"--bolt-path={self.folder}/influxd.bolt",
            f"--sqlite-path={self.folder}/influxd.sqlite",
            f"--engine-path={self.folder}/engine",
            f"--http-bind-address=127.0.0.1:{self.port}",
            "--reporting-disabled",
            "--log-level=warn",
        ]

    def set_up(self) -> None:
        """Set the server up as docs/store.md says."""
        wanted = {"username": "lab", "password": "only-on-loopback", "org": ORGANISATION, "bucket": DATABASE}
        made = self.ask("POST", "/api/v2/setup", wanted)
        self.token = str(made["auth"]["token"])
        self.organisation_id = str(made["org"]["id"])
        self.bucket_id = str(made["bucket"]["id"])
        mapping = {"database": DATABASE, "retention_policy": "autogen", "default": True}
        self.ask(
            "POST",
            "/api/v2/dbrps",
            mapping | {"orgID": self.organisation_id, "bucketID": self.bucket_id},
        )

    def set_shards(self, duration: str) -> None:
        """Let each shard of the bucket hold so long, such as 52w."""
        weeks = int(duration.removesuffix("w"))
        rule = {"type": "expire", "everySeconds": 0, "shardGroupDurationSeconds": weeks * _WEEK_S}
        self.ask("PATCH", f"/api/v2/buckets/{self.bucket_id}", {"retentionRules": [rule]})

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Send a request of its own interface and return the object that it answers."""
        return cast("dict[str, Any]", json.loads(self.request(method, path, body) or b"{}"))

    def new_bucket(self, name: str, retention_s: int = 0) -> str:
        """Make a bucket, without a database of its own, and return its id."""
        rules = [{"type": "expire", "everySeconds": retention_s}] if retention_s else []
        wanted = {"orgID": self.organisation_id, "name": name, "retentionRules": rules}
        return str(self.ask("POST", "/api/v2/buckets", wanted)["id"])

    def new_token(self, *actions: str) -> str:
        """Make a token that may do no more than some actions (read, write) with all buckets."""
        resource = {"type": "buckets", "orgID": self.organisation_id}
        permissions = [{"action": action, "resource": resource} for action in actions]
        wanted = {"orgID": self.organisation_id, "permissions": permissions}
        return str(self.ask("POST", "/api/v2/authorizations", wanted)["token"])

    def endpoint_text(self) -> str:
        """Return the text of an endpoint file for the server."""
        return (
            f'[influxdb]\napi = 2\nurl = "{self.url}"\ndatabase = "{DATABASE}"\n'
            f'organisation = "{ORGANISATION}"\n'
        )


def built(folder: Path) -> InfluxServer2:
    """Return a server in a folder; build its program where it is not there.

    Raises:
        SystemExit: With the exit code of a build that fails.
    """
    if code := build():
        sys.exit(code)
    return InfluxServer2(folder)
