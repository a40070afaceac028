from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

from tests.support.golden import Case, Expect, Send, Silence, parse_command
from tests.support.golden_connection import frame, replay

if TYPE_CHECKING:
    from collections.abc import Iterator

PING = parse_command("type: PING ping { }")
PONG = parse_command("type: PONG pong { }")


@contextlib.contextmanager
def server_that_sends(data: bytes, *, close: bool) -> Iterator[str]:
    """A server that answers the first bytes it reads by ``data``, whatever they were."""
    done = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(data)
            if not close:
                done.wait(10)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            done.set()
            thread.join()


def found_by_replay(answers: list[Expect], data: bytes, *, close: bool = False) -> list[str]:
    case = Case("connect/x", "broker", (Send(PING), *answers))
    with server_that_sends(data, close=close) as address:
        return [str(each) for each in replay(case, address, "127.0.0.1:6650")]


def test_a_recorded_answer_agrees() -> None:
    # When / Then
    assert found_by_replay([Expect(PONG)], frame(PONG)) == []


def test_silence_and_a_close_agree_with_themselves() -> None:
    # When / Then
    assert found_by_replay([Expect(Silence.NOTHING)], b"") == []
    assert found_by_replay([Expect(Silence.CLOSED)], b"", close=True) == []


def test_an_answer_where_none_was_recorded_differs() -> None:
    # When
    found = found_by_replay([Expect(Silence.NOTHING)], frame(PONG))
    # Then
    assert found == ["row 1: kind was recorded as (nothing), came as PONG"]


def test_an_answer_after_the_last_recorded_one_differs() -> None:
    # When
    found = found_by_replay([Expect(PONG)], frame(PONG) * 2)
    # Then
    assert found == ["row 2: kind was recorded as (nothing), came as PONG"]


def test_a_close_after_the_last_recorded_answer_differs() -> None:
    # When
    found = found_by_replay([Expect(PONG)], frame(PONG), close=True)
    # Then
    assert found == ["row 2: kind was recorded as (nothing), came as (closed)"]
