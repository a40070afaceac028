"""Calls go out as they are, and what an exchange made is removed."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.differential.rest.calls import PLAIN, RestCall, RestExchange
from tests.differential.rest.playing import NoAnswerError, UnpreparedError, ask, play

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Recorder(ThreadingHTTPServer):
    """Answers as told, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, bytes]] = []
        self.answers: dict[str, tuple[int, str]] = {}

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: _Recorder

    def __getattr__(self, name: str) -> object:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        line = self.raw_requestline.decode().rpartition(" HTTP")[0]
        self.server.asked.append((line, body))
        status, text = self.server.answers.get(line, (204, ""))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Allow", "PUT, GET")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _recorder() -> Iterator[_Recorder]:
    with _Recorder() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "//a/../%zz;b?c=%"), ("FOO", "/ünï"), ("get", "/a/"), ("PROPFIND", "/%2F%2f")],
)
def test_a_path_goes_out_as_it_is(method: str, path: str) -> None:
    with _recorder() as server:
        # When
        answer = ask(server.address, RestCall("k", PLAIN, method, path))
        # Then
        assert server.asked == [(f"{method} {path}", b"")]
        assert (answer.status, answer.allow) == (204, ("GET", "PUT"))


def test_an_exchange_is_prepared_played_and_removed() -> None:
    # Given
    exchange = RestExchange("1-1", "dr-1", (RestCall("k", PLAIN, "PUT", "/x", "é"),))
    with _recorder() as server:
        server.answers = {
            "GET /admin/v2/tenants": (200, '["dr-1-b","other"]'),
            "GET /admin/v2/namespaces/dr-1-b": (200, '["dr-1-b/n"]'),
            "GET /admin/v2/persistent/dr-1-b/n": (200, '["persistent://dr-1-b/n/a/b"]'),
        }
        # When
        [answer] = play(server.address, exchange)
        # Then
        lines = [line for line, _ in server.asked]
    deleted = [line for line in lines if line.startswith("DELETE")]
    removal = [
        "DELETE /admin/v2/persistent/dr-1-b/n/a%2Fb?force=true",
        "DELETE /admin/v2/namespaces/dr-1-b/n",
        "DELETE /admin/v2/tenants/dr-1-b",
    ]
    assert answer.status == 204
    assert deleted == removal * 2
    made = [lines.index(line) for line in lines if line.startswith("PUT")]
    assert [lines[at] for at in made] == [
        "PUT /admin/v2/tenants/dr-1",
        "PUT /admin/v2/namespaces/dr-1/ns",
        "PUT /x",
    ]


def test_a_tenant_that_cannot_be_made_is_said() -> None:
    with _recorder() as server:
        server.answers = {"PUT /admin/v2/tenants/dr-1": (409, "exists")}
        with pytest.raises(UnpreparedError, match="409 exists"):
            play(server.address, RestExchange("1-1", "dr-1", ()))


def test_a_server_that_is_not_there_is_said() -> None:
    with _recorder() as server:
        address = server.address
    with pytest.raises(NoAnswerError, match="cannot be reached"):
        ask(address, RestCall("k", PLAIN, "GET", "/"))
