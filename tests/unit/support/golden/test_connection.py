import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from proto import PulsarApi_pb2 as pb
from tests.support.golden import connection as golden_connection
from tests.support.golden.connection import Place, frame, replay
from tests.support.golden.exchange import Case, Expect, Rest, Send, Silence, parse_command
from tests.support.golden.rest import RestAnswer
from tests.support.golden.watches import topics_hash

PING = parse_command("type: PING ping { }")
PONG = parse_command("type: PONG pong { }")


@contextlib.contextmanager
def server_that_sends(data: bytes, *, close: bool) -> Iterator[str]:
    """Run a server that answers the first bytes read with ``data``."""
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
        return [str(each) for each in replay(case, Place(address, "127.0.0.1:6650"))]


def test_a_recorded_answer_agrees() -> None:
    assert found_by_replay([Expect(PONG)], frame(PONG)) == []


def test_silence_and_a_close_agree_with_themselves() -> None:
    assert found_by_replay([Expect(Silence.NOTHING)], b"") == []
    assert found_by_replay([Expect(Silence.CLOSED)], b"", close=True) == []


def test_an_answer_where_none_was_recorded_differs() -> None:
    found = found_by_replay([Expect(Silence.NOTHING)], frame(PONG))
    assert found == ["row 1: kind was recorded as (nothing), came as PONG"]


def test_an_answer_after_the_last_recorded_one_differs() -> None:
    found = found_by_replay([Expect(PONG)], frame(PONG) * 2)
    assert found == ["row 2: kind was recorded as (nothing), came as PONG"]


def test_a_close_after_the_last_recorded_answer_differs() -> None:
    found = found_by_replay([Expect(PONG)], frame(PONG), close=True)
    assert found == ["row 2: kind was recorded as (nothing), came as (closed)"]


def watch_update(topic: str, digest: str) -> pb.BaseCommand:
    command = pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_UPDATE)
    command.watchTopicUpdate.watcher_id = 1
    command.watchTopicUpdate.new_topics.append(topic)
    command.watchTopicUpdate.topics_hash = digest
    return command


def test_updates_of_one_change_may_come_in_another_order_with_other_hashes() -> None:
    recorded = [Expect(watch_update("a", topics_hash("a"))), Expect(watch_update("b", "recorded"))]
    other = [watch_update("b", topics_hash("b")), watch_update("a", topics_hash(["a", "b"]))]
    wrong = [watch_update("b", topics_hash("b")), watch_update("a", topics_hash("a"))]
    assert found_by_replay(recorded, b"".join(map(frame, other))) == []
    (found,) = found_by_replay(recorded, b"".join(map(frame, wrong)))
    assert "watchTopicUpdate.topics_hash" in found


def test_updates_of_one_change_are_those_that_were_recorded() -> None:
    recorded = [Expect(watch_update("a", "x")), Expect(watch_update("b", "y"))]
    other = [watch_update("a", topics_hash("a")), watch_update("c", topics_hash("ac"))]
    (found,) = found_by_replay(recorded, b"".join(map(frame, other)))
    assert found == "row 2: watchTopicUpdate.new_topics was recorded as ['b'], came as ['c']"


def test_a_call_in_between_must_have_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden_connection, "ask", lambda *_: RestAnswer(404, ""))
    steps = (Rest("PUT", "/a", None, 204), Rest("DELETE", "/a", None, 404))
    found = replay(Case("watch/x", "broker", steps), Place("", "", "127.0.0.1:1"))
    assert list(map(str, found)) == ["row 0: REST PUT was recorded as 204, came as 404"]
