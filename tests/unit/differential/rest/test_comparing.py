"""Answers to REST calls are compared in every field, after named masks."""

from __future__ import annotations

import pytest

from tests.differential.rest.calls import JSON_TYPE, PLAIN, RestCall, RestExchange
from tests.differential.rest.comparing import compare, compare_answers
from tests.differential.rest.deviations import deviation_of
from tests.differential.rest.playing import RestAnswer

TENANT = "dr-1-0001"
HTML = "text/html;charset=iso-8859-1"


def _call(kind: str = "GET /admin/v2/x", method: str = "GET", path: str = "/x") -> RestCall:
    return RestCall(kind, PLAIN, method, path)


def _answer(body: str = "", status: int = 200, media_type: str | None = JSON_TYPE) -> RestAnswer:
    return RestAnswer(status, media_type, None, None, body)


def _compared(
    real: RestAnswer, ours: RestAnswer, kind: str = "GET /x"
) -> tuple[list[str], set[str]]:
    found = compare_answers(0, TENANT, _call(kind), real, ours)
    return [one.field for one in found.differences], {mask for _, mask in found.masked}


@pytest.mark.parametrize(
    ("ours", "fields"),
    [
        (RestAnswer(200, JSON_TYPE, None, None, '{"b":[1],"a":2}'), []),
        (RestAnswer(404, JSON_TYPE, None, None, '{"a":2,"b":[1]}'), ["status"]),
        (RestAnswer(200, "text/plain", None, None, '{"a":2,"b":[1]}'), ["type"]),
        (RestAnswer(200, JSON_TYPE, "/y", None, '{"a":2,"b":[1]}'), ["location"]),
        (RestAnswer(200, JSON_TYPE, None, ("GET",), '{"a":2,"b":[1]}'), ["allow"]),
        (RestAnswer(200, JSON_TYPE, None, None, '{"a":2,"b":[1,2]}'), ["body"]),
    ],
)
def test_every_field_is_compared_and_json_by_its_value(ours: RestAnswer, fields: list[str]) -> None:
    assert _compared(_answer('{"a":2,"b":[1]}'), ours) == (fields, set())


def test_the_order_of_an_array_counts() -> None:
    assert _compared(_answer('["a","b"]'), _answer('["b","a"]')) == (["body"], set())


@pytest.mark.parametrize(
    ("kind", "real", "ours", "mask"),
    [
        ("GET /x", '["127.0.0.1:1"]', '["127.0.0.1:2"]', "addresses"),
        ("GET /admin/v2/brokers/version", "4.2.4", "Floodgate", "version"),
        ("GET /admin/v2/brokers/configuration", '["a","b"]', '["b","a"]', "order of keys"),
        ("GET /admin/v2/tenants", f'["x","{TENANT}"]', f'["{TENANT}-b","{TENANT}"]', ""),
        ("GET /admin/v2/tenants", f'["x","{TENANT}"]', f'["{TENANT}","z"]', "others' tenants"),
        ("GET /n", '["persistent://t/n/__change_events"]', "[]", "system topics"),
        (
            "GET /n",
            '["non-persistent://t/n/b","non-persistent://t/n/a"]',
            '["non-persistent://t/n/a","non-persistent://t/n/b"]',
            "order of non-persistent topics",
        ),
    ],
)
def test_a_mask_hides_what_it_names_and_is_counted(
    kind: str, real: str, ours: str, mask: str
) -> None:
    # When
    differs, masks = _compared(_answer(real), _answer(ours), kind)
    # Then
    assert (differs == [], mask in masks) == (bool(mask), bool(mask))


def test_the_web_servers_own_page_has_other_words_and_the_same_status() -> None:
    page = _answer("<html>HTTP ERROR 404", 404, HTML)
    assert _compared(page, _answer('{"reason":"Not Found"}', 404)) == ([], {"page"})
    assert _compared(page, _answer('{"reason":"x"}', 405))[0] == ["status", "type", "body"]
    assert _compared(_answer("", 415, None), _answer('{"reason":"x"}', 415)) == ([], {"page"})


def test_an_answer_that_is_no_error_is_no_page() -> None:
    assert _compared(_answer("", 200, None), _answer("{}"))[0] == ["type", "body"]


def test_words_of_javas_exceptions_are_not_compared() -> None:
    trace = '{"reason":"java.lang.NullPointerException\\n\\tat x"}'
    assert _compared(_answer(trace, 500), _answer('{"reason":"x"}', 500))[0] == []
    parser = _answer("Unexpected character", 400, "text/plain")
    assert _compared(parser, _answer("the body is not JSON", 400, "text/plain"))[0] == []
    assert _compared(parser, _answer('{"reason":"x"}', 400))[0] == ["type"]


def test_all_calls_of_an_exchange_are_compared_in_order() -> None:
    # Given
    exchange = RestExchange("1-1", TENANT, (_call(), _call()))
    # When
    first, second = compare(
        exchange, (_answer("1"), _answer("2")), (_answer("1"), _answer("3", 201))
    )
    # Then
    assert (first.differences, first.kinds_agree) == ((), True)
    assert [one.step for one in second.differences] == [1, 1]
    assert not second.kinds_agree


@pytest.mark.parametrize(
    ("call", "real", "ours", "name"),
    [
        (_call(), _answer("", 500), _answer("", 412), "failure of the server"),
        (_call(), _answer("", 0), _answer("", 412), "failure of the server"),
        (_call(method="FOO"), _answer("", 405), _answer("", 400), "unknown method"),
        (_call(), _answer("", 404), _answer("", 501), "not built"),
        (_call(path="/a%0Ab"), _answer("", 204), _answer("", 412), "control character"),
        (_call(method="PUT", path="/n/x-partition-01"), _answer("", 204), _answer("", 409), None),
        (_call(method="PUT"), _answer("", 405), _answer("", 400), None),
        (_call(), _answer("", 204), _answer("", 412), None),
        (_call(), _answer("", 500), _answer("", 500), None),
    ],
)
def test_a_deviation_is_a_class_with_a_reason(
    call: RestCall, real: RestAnswer, ours: RestAnswer, name: str | None
) -> None:
    # When
    found = deviation_of(call, real, ours)
    # Then
    assert (found.name if found else None) == name
    assert found is None or found.reason
