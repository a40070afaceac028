from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from server.authentication.basic import passwords
from server.authentication.basic.passwords import (
    PasswordFileError,
    apr1,
    is_password,
    read_passwords,
)

# As written by `openssl passwd -apr1` and htpasswd -d.
HASHES = [
    (b"myPassword", "$apr1$qHDFfhPC$nITSVHgYbDAK1Y0acGRnY0"),
    (b"s3cret pass word long 1234567", "$apr1$abcdefgh$E.LhB.RAPT/n2ZKtasjCD."),
    (b"password", "abJnggxhB/yWI"),
]


@pytest.mark.parametrize(("password", "hashed"), HASHES)
def test_a_password_is_verified_by_its_hash(password: bytes, hashed: str) -> None:
    assert is_password(password, hashed)
    assert not is_password(b"x" + password, hashed)


def test_only_the_first_eight_characters_of_a_salt_count() -> None:
    assert apr1(b"a", "abcdefghijkl") == apr1(b"a", "abcdefgh")


def test_the_lines_of_a_password_file_are_users_with_hashes() -> None:
    text = "ann:abJnggxhB/yWI\n\n  bob:$apr1$qHDFfhPC$nITSVHgYbDAK1Y0acGRnY0 \n"
    assert list(read_passwords(text)) == ["ann", "bob"]


@pytest.mark.parametrize("crypt", [{}, {"crypt": Mock(return_value=b"*0")}])
def test_crypt_hashes_are_refused_at_the_start_where_the_system_lacks_crypt(
    crypt, monkeypatch
) -> None:
    uncached = passwords._crypt_of_system.__wrapped__
    monkeypatch.setattr(passwords, "_crypt_of_system", uncached)
    monkeypatch.setattr(passwords.ctypes, "CDLL", lambda _: SimpleNamespace(**crypt))
    with pytest.raises(PasswordFileError, match="no crypt hashes"):
        read_passwords("ann:abJnggxhB/yWI")
    assert read_passwords("bob:$apr1$qHDFfhPC$nITSVHgYbDAK1Y0acGRnY0")


@pytest.mark.parametrize(
    "line", ["ann", ":abJnggxhB/yWI", "ann:$2y$05$abc", "ann:{SHA}abc", "ann:plain", "ann:a:b"]
)
def test_an_invalid_line_is_refused_by_its_number_without_its_hash(line: str) -> None:
    with pytest.raises(PasswordFileError, match=r"^line 2\b") as caught:
        read_passwords(f"ann:abJnggxhB/yWI\n{line}\n")
    assert "{SHA}abc" not in str(caught.value)
