from pathlib import Path

import pytest

from client.authentication.authentication import AuthenticationBasic, AuthenticationToken
from client.exceptions import ErrorGettingAuthenticationData, InvalidConfiguration


@pytest.mark.parametrize(
    ("token", "shown"), [("a.b.c", b"a.b.c"), ("token:a.b.c", b"a.b.c"), ("", b"")]
)
def test_a_literal_token_is_sent_without_its_token_prefix(token: str, shown: bytes) -> None:
    authentication = AuthenticationToken(token)
    assert (authentication.method_name, authentication.auth_data()) == ("token", shown)


def test_neither_token_nor_password_is_in_a_repr() -> None:
    shown = repr([AuthenticationToken("secret"), AuthenticationBasic("me", "secret")])
    assert shown == "[AuthenticationToken(...), AuthenticationBasic(...)]"


def test_a_token_file_is_read_anew_at_each_use(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    file.write_text("old\n")
    authentication = AuthenticationToken(file.as_uri())
    before = authentication.auth_data()
    file.write_text("new\n")
    assert (before, authentication.auth_data()) == (b"old", b"new")


def test_a_token_variable_is_read_anew_at_each_use(monkeypatch: pytest.MonkeyPatch) -> None:
    authentication = AuthenticationToken("env:A_TOKEN")
    monkeypatch.setenv("A_TOKEN", "new")
    assert authentication.auth_data() == b"new"


def test_a_token_function_is_called_anew_at_each_use() -> None:
    words = iter(["first", "file:///taken/as/it/is"])
    authentication = AuthenticationToken(lambda: next(words))
    assert authentication.auth_data() == b"first"
    assert authentication.auth_data() == b"file:///taken/as/it/is"


def _fails() -> str:
    raise OSError("no vault")


@pytest.mark.parametrize(
    ("token", "sentence"),
    [
        ("file:///not/there", "the token's file '/not/there' cannot be read"),
        ("env:NOT_THERE", "no environment variable 'NOT_THERE' with a token"),
        (_fails, "the token's function failed: no vault"),
        (lambda: None, "the token's function returned NoneType, not a str"),
    ],
)
def test_an_unavailable_token_raises_an_error_that_names_its_source(
    token: object, sentence: str
) -> None:
    with pytest.raises(ErrorGettingAuthenticationData, match=sentence):
        AuthenticationToken(token).auth_data()


def test_a_token_that_is_neither_str_nor_function_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="a str or a function that returns one, not int"):
        AuthenticationToken(7)
