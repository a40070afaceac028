"""Names and passwords: guessing reveals no information."""

from pathlib import Path

import pytest

from server.authentication.basic.passwords import apr1, is_password
from server.authentication.basic.provider import BasicProvider
from server.authentication.providers import AuthenticationError


def test_an_unknown_name_is_hashed_like_a_wrong_password(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "users").write_text(f"ann:{apr1(b'right', 'salt')}\n")
    provider = BasicProvider(f"file://{tmp_path / 'users'}")
    hashed: list[bytes] = []

    def counted(password: bytes, kept: str) -> bool:
        hashed.append(password)
        return is_password(password, kept)

    monkeypatch.setattr("server.authentication.basic.provider.is_password", counted)
    for shown in (b"ann:wrong", b"bob:wrong", b"bob:right"):
        with pytest.raises(AuthenticationError):
            provider.authenticate(shown, None)
    # A password is hashed each time
    assert hashed == [b"wrong", b"wrong", b"right"]
    assert provider.authenticate(b"ann:right", None).role == "ann"
