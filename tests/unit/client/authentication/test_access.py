"""The credentials of tools: files and variables are named, and no secret is taken."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from client.authentication.access import Access
from client.authentication.tls import AuthenticationTLS
from client.exceptions import InvalidConfiguration

UPSTREAM = "org.apache.pulsar.client.impl.auth.Authentication"
TLS = "tlsCertFile:/a.pem,tlsKeyFile:/a.key"


def test_without_settings_there_are_no_credentials() -> None:
    assert Access.named_in({}).authentication() is None


@pytest.mark.parametrize("plugin", ["", "token", f"{UPSTREAM}Token"])
def test_a_token_is_read_from_the_file_that_auth_params_names(plugin: str, tmp_path: Path) -> None:
    (tmp_path / "ann.jwt").write_text("a.b.c\n")
    found = Access(plugin, f"file:{tmp_path / 'ann.jwt'}").authentication()
    assert found is not None
    assert found.http_headers() == {
        "X-Pulsar-Auth-Method-Name": "token", "Authorization": "Bearer a.b.c",
    }  # fmt: skip


@pytest.mark.parametrize("said", ["ann:secret", '{"userId": "ann", "password": "secret"}'])
def test_a_password_is_read_from_the_variable_that_auth_params_names(
    said: str, monkeypatch
) -> None:
    monkeypatch.setenv("A_PASSWORD", said)
    found = Access("basic", "env:A_PASSWORD").authentication()
    assert found is not None
    assert found.auth_data() == b"ann:secret"
    assert found.http_headers()["Authorization"] == "Basic YW5uOnNlY3JldA=="


def test_tls_credentials_are_a_certificate_file_and_a_key_file() -> None:
    found = Access(f"{UPSTREAM}Tls", TLS).authentication()
    assert isinstance(found, AuthenticationTLS)
    assert (found.certificate_path, found.private_key_path) == ("/a.pem", "/a.key")


@pytest.mark.parametrize(
    ("plugin", "params", "said"),
    [
        ("", "planted.secret", "--auth-params ***"),
        ("token", "token:planted.secret", "--auth-params ***"),
        ("basic", "ann:planted.secret", "--auth-params ***"),
        ("tls", "planted.secret", "write tlsCertFile:/path,tlsKeyFile:/path"),
        ("athenz", "file:/planted.secret", "--auth-plugin 'athenz': there are token, basic"),
        ("token", "", "--auth-plugin without --auth-params"),
    ],
)
def test_auth_params_that_name_no_source_are_refused_and_not_repeated(plugin, params, said) -> None:
    with pytest.raises(InvalidConfiguration, match=re.escape(said)) as refused:
        Access(plugin, params)
    assert "planted.secret" not in str(refused.value)


@pytest.mark.parametrize("said", ["planted.secret", '{"userId": "planted.secret"}'])
def test_incomplete_basic_credentials_are_refused_and_not_repeated(said: str, monkeypatch) -> None:
    monkeypatch.setenv("A_PASSWORD", said)
    with pytest.raises(InvalidConfiguration, match="--auth-params of basic") as refused:
        Access("basic", "env:A_PASSWORD").authentication()
    assert "planted.secret" not in str(refused.value)


def test_access_settings_survive_a_round_trip_through_environment_variables() -> None:
    access = Access("tls", TLS, "/ca.pem")
    assert Access.named_in(access.variables()) == access


def keeping(folder: Path) -> Callable[[str], str]:
    """Return a function that writes a text to a new file of the folder, and returns the path."""

    def kept(text: str) -> str:
        file = folder / f"kept-{len(list(folder.iterdir()))}"
        file.write_text(text)
        return str(file)

    return kept


@pytest.mark.parametrize("plugin", ["", "basic"])
def test_the_contents_of_a_secret_recreate_the_access_without_its_original_file(
    plugin: str, tmp_path: Path
) -> None:
    (tmp_path / "here").write_text("ann:secret\n")
    (tmp_path / "ca.pem").write_text("authorities")
    contents = Access(plugin, f"file:{tmp_path / 'here'}", str(tmp_path / "ca.pem")).contents()
    found = Access.from_contents(contents, keeping(tmp_path))
    (tmp_path / "here").unlink()
    assert found.contents() == contents
    assert contents == {"plugin": plugin, "secret": "ann:secret", "trust": "authorities"}
    assert "ann:secret" not in repr(found)


def test_the_contents_of_a_certificate_and_its_key_recreate_the_access(tmp_path: Path) -> None:
    for name in ("a.pem", "a.key"):
        (tmp_path / name).write_text(name)
    params = f"tlsCertFile:{tmp_path / 'a.pem'},tlsKeyFile:{tmp_path / 'a.key'}"
    contents = Access("tls", params).contents()
    found = Access.from_contents(contents, keeping(tmp_path))
    assert found.contents() == contents == {
        "plugin": "tls", "tlsCertFile": "a.pem", "tlsKeyFile": "a.key"
    }  # fmt: skip


def test_contents_without_credentials_recreate_an_access_without_credentials(tmp_path) -> None:
    assert Access.from_contents(Access().contents(), keeping(tmp_path)) == Access()
