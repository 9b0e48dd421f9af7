# SPDX-License-Identifier: Apache-2.0
"""Endpoint files: strict, each version's own request, and credentials that nobody sees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboards.delivery.endpoint import PASSWORD, TOKEN, USER, Endpoint, load_endpoint
from hw.errors import ConfigError

SECRET = "s3cret-of-the-lab"  # noqa: S105


def load(folder: Path, text: str, environment: dict[str, str] | None = None) -> Endpoint:
    file = folder / "endpoint.toml"
    file.write_text(f"[influxdb]\n{text}\n")
    return load_endpoint(file, environment or {})


ONE = 'api = 1\nurl = "http://127.0.0.1:8086"\ndatabase = "h l"'
TWO = 'api = 2\nurl = "https://influx.example/prefix/"\ndatabase = "hil"\norganisation = "lab & co"'
THREE = 'api = 3\nurl = "https://influx.example:8181"\ndatabase = "hil"'


@pytest.mark.parametrize(
    ("text", "path", "port"),
    [
        (ONE, "/write?db=h+l&precision=ns", 8086),
        (ONE + '\nretention_policy = "long"', "/write?db=h+l&precision=ns&rp=long", 8086),
        (TWO, "/prefix/api/v2/write?org=lab+%26+co&bucket=hil&precision=ns", 443),
        (THREE, "/api/v3/write_lp?db=hil&precision=nanosecond&accept_partial=true&no_sync=false", 8181),
    ],
)
def test_request_of_each_version(tmp_path: Path, text: str, path: str, port: int) -> None:
    endpoint = load(tmp_path, text)
    assert (endpoint.path, endpoint.port, endpoint.authorization) == (path, port, "")


def test_header_of_each_version(tmp_path: Path) -> None:
    assert load(tmp_path, ONE, {TOKEN: SECRET}).authorization == f"Token {SECRET}"
    assert load(tmp_path, ONE, {USER: "u", PASSWORD: "p"}).authorization == "Basic dTpw"
    assert load(tmp_path, TWO, {TOKEN: SECRET}).authorization == f"Token {SECRET}"
    assert load(tmp_path, THREE, {TOKEN: SECRET}).authorization == f"Bearer {SECRET}"


def test_credentials_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret.toml"
    file.write_text(f'token = "{SECRET}"\n')
    file.chmod(0o600)
    endpoint = load(tmp_path, TWO + '\ncredentials = "secret.toml"')
    assert endpoint.authorization == f"Token {SECRET}"
    assert SECRET not in repr(endpoint) + endpoint.name
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="others can read"):
        load(tmp_path, TWO + '\ncredentials = "secret.toml"')


def test_damaged_credentials_are_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "secret.toml"
    file.write_text(f"token = {SECRET}\n")
    file.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, TWO + '\ncredentials = "secret.toml"')
    assert SECRET not in str(caught.value)


def test_credentials_do_not_travel_in_the_clear(tmp_path: Path) -> None:
    text = 'api = 1\nurl = "http://192.0.2.7:8086"\ndatabase = "hil"'
    assert load(tmp_path, text).authorization == ""
    with pytest.raises(ConfigError, match="unencrypted"):
        load(tmp_path, text, {TOKEN: SECRET})
    assert load(tmp_path, text + "\nallow_plain_http = true", {TOKEN: SECRET}).authorization


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ONE + "\ndb = 1", "influxdb.db: unknown key; known here: allow_plain_http, api"),
        (ONE.replace("api = 1", "api = 4"), "influxdb.api: must be an integer in 1..3, found 4"),
        (ONE.replace("api = 1", "api = true"), "influxdb.api: must be an integer in 1..3, found True"),
        (ONE.replace('database = "h l"', ""), "influxdb.database: missing"),
        (ONE + '\norganisation = "x"', "only with api = 2"),
        (TWO.replace('organisation = "lab & co"', ""), "influxdb.organisation: missing"),
        (THREE + '\nretention_policy = "x"', "only with api = 1"),
        (ONE.replace("http://127", "http://u:p@127"), "no credentials"),
        (ONE.replace("http://127.0.0.1:8086", "127.0.0.1:8086"), "influxdb.url"),
        (ONE.replace("8086", "99999"), "influxdb.url"),
        ("api = [", "Invalid"),
        (ONE.replace("127.0.0.1:8086", "[::1"), "influxdb.url"),
        (ONE.replace("127.0.0.1:8086", "a b:8086"), "influxdb.url"),
        (ONE.replace("127.0.0.1:8086", "h\u00f6st:8086"), "influxdb.url"),
        (ONE.replace("127.0.0.1", "influx..example"), "influxdb.url: need http://HOST:PORT"),
        (ONE.replace("127.0.0.1", f"{64 * 'i'}.example"), "each label of HOST of 1..63 characters"),
        (ONE.replace("8086", "8086/w\u00f6rk"), "influxdb.url: its path"),
        (ONE.replace("8086", "8086/a b"), "influxdb.url: its path"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "environment", "message"),
    [
        (ONE, {USER: "u"}, "a user and a password"),
        (ONE, {USER: "u", PASSWORD: "p", TOKEN: "t"}, "either a token"),
        (TWO, {USER: "u", PASSWORD: "p"}, "takes a token"),
        (TWO, {TOKEN: "a\nb"}, "line break"),
    ],
)
def test_wrong_credentials(tmp_path: Path, text: str, environment: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, text, environment)
