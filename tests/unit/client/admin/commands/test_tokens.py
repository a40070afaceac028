"""``floodgate-admin tokens``: keys and tokens without a server."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from client.admin.commands.command_line import app
from tests.support.authentication.credentials import SECRET, token


def run(*words: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["tokens", *map(str, words)], input=text)


def test_a_secret_key_file_is_private_and_signs_and_validates_tokens(tmp_path: Path) -> None:
    key, shown = tmp_path / "secret.key", tmp_path / "ann.jwt"
    run("create-secret-key", "--output", key)
    made = run("create", "--secret-key", f"file:{key}", "--subject", "ann", "-e", "1h")
    shown.write_text(made.stdout)
    checked = run("validate", "--secret-key", f"file://{key}", "--token-file", shown)
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(key.read_bytes()) == 32
    assert json.loads(checked.stdout)["sub"] == "ann"


def test_a_created_key_pair_signs_and_validates_tokens(tmp_path: Path) -> None:
    private, public = tmp_path / "private.key", tmp_path / "public.key"
    files = ("--output-private-key", private, "--output-public-key", public)
    run("create-key-pair", *files, "-a", "ES256")
    made = run("create", "--private-key", f"file:{private}", "-s", "ann", "-a", "ES256")
    checked = run("validate", "--public-key", f"file:{public}", "--stdin", text=made.stdout)
    assert json.loads(checked.stdout) == {"sub": "ann"}


def test_a_token_is_shown_without_its_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOWN", token(sub="ann").decode())
    found = run("show", "--token", "env:SHOWN")
    header, claims = found.stdout.split("---")
    assert (json.loads(header)["alg"], json.loads(claims)) == ("HS256", {"sub": "ann"})
    assert token(sub="ann").decode().rsplit(".", 1)[1] not in found.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("create", "-s", "a", "--secret-key", "c2VjcmV0c2VjcmV0"),
        ("validate", "--secret-key", "data:;base64,c2VjcmV0", "--stdin"),
        ("show", "--token", "eyJhbGciOiJub25lIn0.e30."),
    ],
)
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(words: tuple[str, ...]) -> None:
    found = run(*words, text="x")
    assert found.exit_code == 2
    assert "file:PATH" in found.stderr
    assert not any(word in found.stderr for word in words if len(word) > 12)


@pytest.mark.parametrize(
    ("words", "said", "status"),
    [
        (("create", "-s", "a"), "give exactly one of: --secret-key", 2),
        (("create", "-s", "a", "-sk", "file:/no/such"), "cannot be read", 1),
        (("create", "-s", "a", "-sk", "env:SHORT"), "at least 32 bytes", 1),
        (("create", "-s", "a", "-sk", "env:GOOD", "-e", "soon"), "is no time", 2),
        (("validate", "-sk", "env:GOOD", "--stdin"), "floodgate-admin: ", 1),
        (("validate", "-sk", "env:NONE", "--stdin"), "no environment variable", 1),
        (("create-secret-key", "-a", "RS256"), "no algorithm of secrets", 1),
    ],
)
def test_an_error_is_reported_in_a_single_sentence_with_its_exit_status(
    words, said, status, monkeypatch
) -> None:
    monkeypatch.setenv("SHORT", "c2hvcnQ=")
    monkeypatch.setenv("GOOD", SECRET[:40].hex())
    found = run(*words, text="no.token.here")
    assert (found.exit_code, found.stdout) == (status, "")
    assert said in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "/etc/floodgate/secrets/tokens/signing-keys/the-secret.key",
        "file:///etc/floodgate/the-secret-of-this-broker.key",
        "a long sentence of words that somebody can remember",
    ],
)
@pytest.mark.parametrize("words", [("create", "-s", "a"), ("validate", "--stdin")])
def test_a_variable_that_holds_a_text_instead_of_a_key_is_refused_and_not_repeated(
    words: tuple[str, ...], text: str, monkeypatch
) -> None:
    monkeypatch.setenv("SOME_KEY", text)
    found = run(*words, "-sk", "env:SOME_KEY", text="x")
    assert found.exit_code == 1
    assert "'SOME_KEY' holds a text and no key" in found.stderr
    assert text not in found.stderr
