from tests.support.dialogues.comparison import agree, disagreement
from tests.support.dialogues.dialogue import Dialogue, Seen, Step

PONG: Seen = {"connection": 0, "frame": "PONG"}
SUCCESS: Seen = {"connection": 0, "frame": "SUCCESS"}
PING = {"command": "PING"}


def message(payload: str, connection: int = 0) -> Seen:
    return {"connection": connection, "frame": "MESSAGE", "payload_tail": payload}


def ready(name: str) -> Seen:
    return {"connection": 0, "frame": "PRODUCER_SUCCESS", "producer_name": name}


def test_messages_may_come_before_or_after_answers_and_connections_are_apart() -> None:
    assert agree(
        [SUCCESS, message("m0"), message("m1", 1)], [message("m1", 1), message("m0"), SUCCESS]
    )


def test_the_order_of_messages_and_of_answers_counts() -> None:
    assert not agree([message("m0"), message("m1")], [message("m1"), message("m0")])
    assert not agree([SUCCESS, PONG], [PONG, SUCCESS])


def test_a_frame_too_many_or_too_few_or_on_the_other_connection_disagrees() -> None:
    assert not agree([SUCCESS], [])
    assert not agree([SUCCESS], [SUCCESS, PONG])
    assert not agree([message("m0")], [message("m0", 1)])


def test_any_name_stands_for_one_that_the_server_made() -> None:
    assert agree([ready("*")], [ready("standalone-0-7")])
    assert not agree([ready("fixed")], [ready("standalone-0-7")])


def test_the_first_step_that_disagrees_is_told_with_its_cause() -> None:
    dialogue = Dialogue("d", "t", (Step(0, PING, (PONG,)), Step(1, PING, (PONG, message("m0")))))
    found = disagreement(dialogue, [(PONG,), (PONG, SUCCESS)])
    assert found is not None
    assert found.index == 1
    assert found.cause == "PING -MESSAGE +SUCCESS"
    assert "recorded 0 MESSAGE payload_tail='m0'" in str(found)


def test_a_whole_play_that_agrees_has_no_disagreement() -> None:
    dialogue = Dialogue("d", "t", (Step(0, PING, (PONG,)),))
    assert disagreement(dialogue, [(PONG,)]) is None
