"""A name and a password."""

import pytest

from client.authentication.authentication import AuthenticationBasic
from client.exceptions import InvalidConfiguration


@pytest.mark.parametrize(
    ("arguments", "method", "data"),
    [
        ({"username": "me", "password": "a:b"}, "basic", b"me:a:b"),
        ({"username": "me", "password": "", "method": "own"}, "own", b"me:"),
        (
            {"auth_params_string": '{"username": "me", "password": "x"}', "method": "own"},
            "basic",
            b"me:x",
        ),
        (
            {"auth_params_string": '{"username": "me", "password": "x", "method": "own"}'},
            "own",
            b"me:x",
        ),
    ],
)
def test_auth_data_is_the_username_and_password_with_the_configured_method(
    arguments: dict[str, str], method: str, data: bytes
) -> None:
    authentication = AuthenticationBasic(**arguments)
    assert (authentication.method_name, authentication.auth_data()) == (method, data)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"username": "me"}, "password is a str, not NoneType"),
        ({"auth_params_string": "{"}, "auth_params_string is a JSON object"),
        ({"auth_params_string": "[]"}, "auth_params_string is a JSON object"),
        ({"auth_params_string": '{"username": "me"}'}, "lacks a username or a password"),
        ({"auth_params_string": '{"username": 1, "password": ""}'}, "username is a str, not int"),
    ],
)
def test_missing_or_invalid_arguments_are_refused_with_the_argument_named(
    arguments: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=sentence):
        AuthenticationBasic(**arguments)
