"""The plug-in's servers: started once, emptied for each test, started again if that fails."""

from __future__ import annotations

import io
import urllib.error
import urllib.request
from email.message import Message
from typing import TYPE_CHECKING

import floodgate_pytest
import pytest
from floodgate_pytest import RESET, FloodgateError, FloodgateServer, KeptServer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Kept(KeptServer):
    """One whose process is only counted."""

    begun = 0

    def _started(self, settings: Sequence[str]) -> FloodgateServer:
        self.begun += 1
        return FloodgateServer("pulsar://h:1", "http://h:2", self.begun)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept("broker", [], tmp_path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    urls = []

    def opened(request: urllib.request.Request, timeout: float) -> io.BytesIO:
        urls.append(f"{request.get_method()} {request.full_url}")
        return io.BytesIO()

    monkeypatch.setattr(urllib.request, "urlopen", opened)
    return urls


def test_a_server_is_emptied_and_kept(kept: Kept, asked: list[str]) -> None:
    assert [kept.empty().pid for _ in range(3)] == [1, 1, 1]
    assert asked == [f"POST http://h:2{RESET}"] * 2


def test_other_settings_take_another_server(kept: Kept, asked: list[str]) -> None:
    assert [kept.empty(url).pid for url in ("a=1", "a=2", "a=2")] == [1, 2, 2]


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(), urllib.error.HTTPError("u", 404, "no", Message(), None)]
)
def test_a_server_that_cannot_be_emptied_is_started_again(
    monkeypatch: pytest.MonkeyPatch, kept: Kept, error: Exception
) -> None:
    # Given
    def refused(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(urllib.request, "urlopen", refused)
    # When, then
    assert [kept.empty().pid for _ in range(2)] == [1, 2]


def test_a_server_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Given
    monkeypatch.setattr(floodgate_pytest, "MODULES", "nowhere.")
    server = KeptServer("proxy", [], tmp_path)
    # When, then
    with pytest.raises(
        FloodgateError, match=r"The proxy did not start: .*No module named 'nowhere'"
    ):
        server.empty()
