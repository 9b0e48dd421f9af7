# SPDX-License-Identifier: Apache-2.0
"""Where points are delivered to: an endpoint file (TOML), and credentials from the environment or a file.

    [influxdb]
    api = 2
    url = "https://influx.example"
    organisation = "lab"
    database = "hil"

Write interfaces, and how each names the precision of nanoseconds (defaults differ from version to version):

1  /write?db=&rp=&precision=ns           InfluxDB 1.x, "Write data with the HTTP API"
2  /api/v2/write?org=&bucket=&precision=ns     InfluxDB 2.x, "Write data with the API"
3  /api/v3/write_lp?db=&precision=nanosecond&accept_partial=true&no_sync=false
                                               InfluxDB 3 Core, "Use the v3 write_lp API to write data"

The last two are defaults of 3.x, and what delivery rests on: sound lines of a request with refused ones are
kept (400, with a list of those), and 204 comes after the write-ahead log is safe.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from hw.errors import ConfigError
from hw.fields import HOST_LABELS, Fields, can_be_looked_up

TOKEN, USER, PASSWORD = "BENCHWRIGHT_INFLUX_TOKEN", "BENCHWRIGHT_INFLUX_USER", "BENCHWRIGHT_INFLUX_PASSWORD"
ENDPOINT_VARIABLE = "BENCHWRIGHT_ENDPOINT"
APIS = (1, 2, 3)
_CREDENTIALS = ("token", "user", "password")
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}")
_PATH = re.compile(r"[A-Za-z0-9/._~%-]*")


@dataclass(frozen=True)
class Endpoint:
    """A write interface of a server.

    Attributes:
        api: 1, 2 or 3.
        path: Path and query of a write.
        query_path: Path and query of an InfluxQL query, without its text; empty: nothing is read back.
        authorization: Value of the header; empty: none. Never shown.
    """

    api: int
    secure: bool
    host: str
    port: int
    path: str
    authorization: str = field(default="", repr=False)
    query_path: str = ""

    @property
    def name(self) -> str:
        """Return what messages call it, without anything secret."""
        return f"{'https' if self.secure else 'http'}://{self.host}:{self.port}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return what must never be shown, the longest first."""
        kind, _, secret = self.authorization.partition(" ")
        found = [secret]
        if kind == "Basic":
            pair = base64.b64decode(secret).decode()
            found += [pair, pair.partition(":")[2]]
        return tuple(each for each in found if each)


def load_endpoint(path: Path, environment: Mapping[str, str]) -> Endpoint:
    """Read an endpoint file.

    Raises:
        ConfigError: A key is unknown, missing or of the wrong type, the address cannot be, or credentials
            would travel unencrypted or can be read by others.
    """
    section = _read(path)
    api = section.api
    for key, value, only in (
        ("organisation", section.organisation, 2),
        ("retention_policy", section.retention_policy, 1),
    ):
        if value and api != only:
            raise ConfigError(f"{path}: influxdb.{key}: only with api = {only}")
    if api == 2 and not section.organisation:
        raise ConfigError(f"{path}: influxdb.organisation: missing; api = 2 needs it")
    try:
        url = urlsplit(section.url)
        host, port = url.hostname or "", url.port
    except ValueError as error:
        raise ConfigError(f"{path}: influxdb.url: {error}") from error
    if url.scheme not in ("http", "https") or not _HOST.fullmatch(host) or not can_be_looked_up(host):
        raise ConfigError(
            f"{path}: influxdb.url: need http://HOST:PORT or https://HOST[:PORT], {HOST_LABELS}"
        )
    if not _PATH.fullmatch(url.path):
        raise ConfigError(f"{path}: influxdb.url: its path must be of letters, digits and /-._~%")
    if url.username is not None or url.password is not None or url.query or url.fragment:
        raise ConfigError(f"{path}: influxdb.url: no credentials and no query in here; see docs/store.md")
    secure = url.scheme == "https"
    authorization = _authorization(api, _credentials(path, section, environment), path)
    if authorization and not secure and not section.allow_plain_http and not _is_loopback(host):
        raise ConfigError(
            f"{path}: credentials would go unencrypted to {host}: use https, or allow_plain_http = true"
        )
    return Endpoint(
        api=api,
        secure=secure,
        host=host,
        port=port or (443 if secure else 80),
        path=url.path.rstrip("/") + _request(api, section),
        authorization=authorization,
        query_path=url.path.rstrip("/") + _query(section) if section.read_back else "",
    )


@dataclass(frozen=True)
class _Section:
    """What the table says; empty: not."""

    api: int
    url: str
    database: str
    organisation: str
    retention_policy: str
    credentials: str
    allow_plain_http: bool
    read_back: bool


def _read(path: Path) -> _Section:
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    file = Fields(document, str(path), "")
    table = file.child("influxdb")
    assert table is not None
    file.finish()
    section = _Section(
        api=table.integer("api", APIS[0], APIS[-1]),
        url=table.text_that_says("url"),
        database=table.text_that_says("database"),
        organisation=table.text("organisation", ""),
        retention_policy=table.text("retention_policy", ""),
        credentials=table.text("credentials", ""),
        allow_plain_http=table.boolean("allow_plain_http", False),
        read_back=table.boolean("read_back", True),
    )
    table.finish()
    return section


def _request(api: int, section: _Section) -> str:
    database = section.database
    if api == 1:
        query = {"db": database, "precision": "ns"}
        if section.retention_policy:
            query["rp"] = section.retention_policy
        return f"/write?{urlencode(query)}"
    if api == 2:
        query = {"org": section.organisation, "bucket": database, "precision": "ns"}
        return f"/api/v2/write?{urlencode(query)}"
    query = {"db": database, "precision": "nanosecond", "accept_partial": "true", "no_sync": "false"}
    return f"/api/v3/write_lp?{urlencode(query)}"


def _query(section: _Section) -> str:
    """Return the InfluxQL interface, which all three versions have."""
    query = {"db": section.database, "epoch": "ns"}
    if section.retention_policy:
        query["rp"] = section.retention_policy
    return f"/query?{urlencode(query)}"


def _credentials(path: Path, section: _Section, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials of the file that the endpoint names, else those of the environment."""
    if not section.credentials:
        found = {"token": TOKEN, "user": USER, "password": PASSWORD}
        return {name: environment[key] for name, key in found.items() if environment.get(key)}
    file = path.parent / section.credentials
    try:
        mode = file.stat().st_mode
        document: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error
    except (ValueError, RecursionError):  # its message may quote the line
        raise ConfigError(f"{file}: no TOML") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{file}: others can read the credentials; chmod 600 it")
    for key, value in document.items():
        if key not in _CREDENTIALS or not isinstance(value, str):
            raise ConfigError(f"{file}: {key}: known here, as texts: {', '.join(_CREDENTIALS)}")
    return {name: str(value) for name, value in document.items()}


def _authorization(api: int, credentials: Mapping[str, str], path: Path) -> str:
    """Return the header's value as each version wants it; raises ConfigError where a part is missing."""
    token, user, password = (credentials.get(name, "") for name in _CREDENTIALS)
    if any(ord(character) < 32 or ord(character) > 126 for character in token):
        raise ConfigError(f"{path}: the token holds characters that no token has (a line break?)")
    if user or password:
        if not (user and password) or token:
            raise ConfigError(f"{path}: credentials: either a token, or a user and a password")
        if api != 1:
            raise ConfigError(f"{path}: credentials: api = {api} takes a token")
        return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    if not token:
        return ""
    return f"{'Bearer' if api == 3 else 'Token'} {token}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
