import json
from typing import Any

import pytest

from tests.support.golden.exchange import Rest
from tests.support.golden.message_rest import Call, rest_differences
from tests.support.golden.rest import RestAnswer

JSON = "application/json"


def fields(recorded: Any, answered: Any, status: int = 200) -> list[str]:
    call = Call("c", Rest("GET", "/", None, 200), RestAnswer(status, json.dumps(recorded), JSON))
    found = rest_differences(call, RestAnswer(status, json.dumps(answered), JSON))
    return [one.field for one in found]


@pytest.mark.parametrize(
    ("recorded", "answered"),
    [
        ({"lastPublishTimeStamp": 1_795_335_815_941}, {"lastPublishTimeStamp": 1_800_000_000_000}),
        ({"ledgerId": 3, "entryId": 4}, {"ledgerId": 9, "entryId": 4}),
        ({"markDeletePosition": "3:1"}, {"markDeletePosition": "11:1"}),
        ({"ownerBroker": "a:1", "address": "/b:2"}, {"ownerBroker": "c:3", "address": "/d:4"}),
        (["s1", "s2"], ["s2", "s1"]),
    ],
    ids=["moments", "ledgers", "positions", "addresses", "order of names"],
)
def test_what_differs_between_two_runs_is_masked(recorded: Any, answered: Any) -> None:
    assert fields(recorded, answered) == []


@pytest.mark.parametrize(
    ("recorded", "answered", "field"),
    [
        ({"lastPublishTimeStamp": 0}, {"lastPublishTimeStamp": 5}, "body.lastPublishTimeStamp"),
        ({"ledgerId": -1}, {"ledgerId": 9}, "body.ledgerId"),
        ({"markDeletePosition": "3:1"}, {"markDeletePosition": "3:2"}, "body.markDeletePosition"),
        ({"a": {"b": 1}}, {"a": {}}, "body.a"),
        ({"a": [{"b": 1}]}, {"a": []}, "body.a"),
        ({"limitTime": 60}, {"limitTime": 61}, "body.limitTime"),
    ],
)
def test_everything_else_is_compared(recorded: Any, answered: Any, field: str) -> None:
    assert field in fields(recorded, answered)


def test_of_an_internal_error_the_words_are_not_compared() -> None:
    assert fields({"reason": "a"}, {"reason": "b"}, 500) == []


def test_three_sorts_of_empty_answers_are_told_apart() -> None:
    call = Call("c", Rest("GET", "/", None, 200), RestAnswer(200, ""))
    found = [rest_differences(call, RestAnswer(*one)) for one in ((204, ""), (200, "null"))]
    assert [[one.field for one in each] for each in found] == [["status"], ["body"]]
