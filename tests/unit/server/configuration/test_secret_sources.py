"""Secrets from files, the environment, data URLs and base64."""

import base64
from pathlib import Path

import pytest

from server.configuration.secret_sources import KeySourceError, is_literal, read_key, read_source

KEY = b"an RSA key is longer than the name of a file may be" * 8


def test_a_file_is_read_by_its_url_or_its_path(tmp_path: Path) -> None:
    file = tmp_path / "a key"
    file.write_bytes(KEY)
    assert read_source(str(file)) == read_source(file.as_uri()) == KEY


def test_an_environment_variable_is_read_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", base64.b64encode(KEY).decode())
    assert read_source("env:SOME_KEY") == KEY


def test_a_base64_key_longer_than_a_file_name_is_read_as_a_literal() -> None:
    text = base64.b64encode(KEY).decode()
    assert is_literal(text)
    assert read_source(text) == read_source(f"data:;base64,{text}") == KEY


@pytest.mark.parametrize(
    "text", ["not base64!", "data:;base64,!", "data:secret", "a\0b", "env:NO_SUCH"]
)
def test_an_unreadable_source_is_refused_without_showing_its_text(text: str) -> None:
    with pytest.raises(KeySourceError) as caught:
        read_source(text)
    assert text == "env:NO_SUCH" or text not in str(caught.value)


@pytest.mark.parametrize("text", ["/" + "Qk0+" * 8, "/" + "QkK/" * 10 + "Qg=="])
def test_a_base64_secret_that_looks_like_a_path_is_not_shown(text: str) -> None:
    # One of 64 begins with a slash.
    assert is_literal(text)
    with pytest.raises(KeySourceError, match="data:;base64") as caught:
        read_source(text)
    assert text[:9] not in str(caught.value)


def test_a_missing_path_is_named() -> None:
    path = "/etc/floodgate/secrets/tokens/no-such.key"
    assert not is_literal(path)
    with pytest.raises(KeySourceError, match=path):
        read_source(path)


def test_a_file_may_be_named_like_a_secret(tmp_path: Path) -> None:
    file = tmp_path / ("Qk0" * 12)
    file.write_bytes(KEY)
    assert not is_literal(str(file))
    assert read_source(str(file)) == KEY


TEXTS_THAT_ARE_NO_KEYS = (
    "/etc/floodgate/secrets/tokens/signing-keys/the-secret.key",
    "/" + "Qk0+" * 10,
    "file:///etc/floodgate/the-secret-of-this-broker.key",
    "env:ANOTHER_VARIABLE_WITH_THE_SECRET_KEY",
    "a long sentence of words that somebody can remember",
    "-----BEGIN PUBLIC KEY-----",
)


@pytest.mark.parametrize("text", TEXTS_THAT_ARE_NO_KEYS)
def test_a_plain_text_in_a_variable_is_refused_as_a_key(text: str, monkeypatch) -> None:
    monkeypatch.setenv("SOME_KEY", text)
    with pytest.raises(KeySourceError, match="'SOME_KEY' holds a text and no key") as caught:
        read_key("env:SOME_KEY", may_be_pem=False)
    assert text not in str(caught.value)


def test_a_file_name_in_a_variable_is_refused_as_a_key(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ("Qk0" * 20)).write_bytes(KEY)
    monkeypatch.setenv("SOME_KEY", "Qk0" * 20)
    with pytest.raises(KeySourceError, match="holds a text and no key"):
        read_key("env:SOME_KEY", may_be_pem=True)


def test_a_key_in_a_variable_is_base64_a_data_url_or_pem(monkeypatch: pytest.MonkeyPatch) -> None:
    text = base64.b64encode(KEY).decode()
    pem = "-----BEGIN PUBLIC KEY-----\nQk0="
    for held, key in ((f"{text}\n", KEY), (f"data:;base64,{text}", KEY), (pem, pem.encode())):
        monkeypatch.setenv("SOME_KEY", held)
        assert read_key("env:SOME_KEY", may_be_pem=True) == key
