import json
from pathlib import Path

import pytest

from proto import PulsarApi_pb2 as pb
from tests.support.golden.exchange import (
    Expect,
    Rest,
    Send,
    Silence,
    load_cases,
    load_deviations,
    parse_row,
    with_address,
)

GOLDEN = Path(__file__).parents[3] / "golden"
PING = "type: PING ping { }"


def write_case(folder: Path, file: str, case: str, exchange: list[list[str]]) -> None:
    line = json.dumps({"case": case, "exchange": exchange})
    (folder / file).write_text(line + "\n", encoding="utf-8")


def test_rows_become_what_is_sent_and_what_must_come_back() -> None:
    rows = [["C", PING], ["C", "PING one byte at a time", "0aff"], ["S", "(closed)"], ["S", PING]]
    command, raw, closed, answer = (parse_row(row) for row in rows)
    ping = pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing())
    assert command == Send(ping)
    assert raw == Send(None, b"\x0a\xff", one_byte_at_a_time=True)
    assert closed == Expect(Silence.CLOSED)
    assert answer == Expect(ping)


def test_a_call_in_between_is_a_row() -> None:
    assert parse_row(["REST", "PUT /a?b=c 3 4", "204"]) == Rest("PUT", "/a?b=c", "3 4", 204)
    assert parse_row(["REST", "DELETE /a", "404"]) == Rest("DELETE", "/a", None, 404)


def test_a_row_may_be_of_the_second_connection() -> None:
    sent = parse_row(["second connection", ["C", PING]])
    silent = parse_row(["second connection", ["S", "(nothing)"]])
    assert isinstance(sent, Send)
    assert sent.connection == 1
    assert silent == Expect(Silence.NOTHING, connection=1)


def test_what_a_closed_connection_was_not_sent_is_a_close() -> None:
    assert parse_row(["S", "(closed: the rest was not sent)"]) == Expect(Silence.CLOSED)


@pytest.mark.parametrize(
    "row",
    [
        ["X", PING],
        ["C"],
        ["S", "type: NO_SUCH"],
        ["C", "w", "0g"],
        ["second connection", ["REST", "GET /", "200"]],
    ],
)
def test_a_row_of_no_known_form_is_refused(row: list[object]) -> None:
    with pytest.raises(ValueError, match=r"row|text format|hexadecimal"):
        parse_row(row)


def test_every_recorded_exchange_of_the_replayed_groups_can_be_read() -> None:
    groups = {"connect", "lookup", "partitions", "topics", "frames", "watch"}
    cases = load_cases(GOLDEN, frozenset(groups))
    assert len(cases) == 239
    assert {case.target for case in cases} == {"broker", "proxy"}


def test_a_later_recording_is_added_by_dropping_in_a_file(tmp_path: Path) -> None:
    write_case(tmp_path, "broker.jsonl", "lookup/a", [["C", PING]])
    write_case(tmp_path, "proxy-4.2.jsonl", "lookup/b", [["C", PING]])
    cases = load_cases(tmp_path, frozenset({"lookup"}))
    assert [(case.name, case.target) for case in cases] == [
        ("lookup/a", "broker"),
        ("lookup/b", "proxy"),
    ]


def test_a_recording_whose_name_tells_no_target_is_refused(tmp_path: Path) -> None:
    write_case(tmp_path, "other.jsonl", "lookup/a", [["C", PING]])
    with pytest.raises(ValueError, match=r"other\.jsonl: a recording's name begins with"):
        load_cases(tmp_path, frozenset({"lookup"}))


@pytest.mark.parametrize(
    ("name", "connects_first"),
    [
        ("connect/protocol_0", False),
        ("connect/lookup_before_connect", False),
        ("connect/twice", True),
        ("connect/ping", True),
        ("frames/size_zero", True),
    ],
)
def test_a_connect_stands_before_each_exchange_outside_its_own_group(
    tmp_path: Path, name: str, connects_first: bool
) -> None:
    write_case(tmp_path, "broker.jsonl", name, [["C", PING]])
    (case,) = load_cases(tmp_path, frozenset({"connect", "frames"}))
    assert case.connects_first is connects_first


def test_an_address_is_replaced_in_texts_at_every_depth() -> None:
    command = pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE)
    command.lookupTopicResponse.request_id = 1
    command.lookupTopicResponse.brokerServiceUrl = "pulsar://127.0.0.1:6650"
    command.lookupTopicResponse.message = "not 127.0.0.1:66501"
    with_address(command, "127.0.0.1:6650", "127.0.0.1:9")
    assert command.lookupTopicResponse.brokerServiceUrl == "pulsar://127.0.0.1:9"
    assert command.lookupTopicResponse.message == "not 127.0.0.1:66501"


def deviation_text(**changes: str) -> str:
    entry = {"case": '"a/b"', "target": '"proxy"', "fields": '["kind"]', "reason": '"Because."'}
    lines = [f"{key} = {value}" for key, value in (entry | changes).items()]
    return "\n".join(["[[deviation]]", *lines, ""])


def test_a_deviation_is_known_by_case_and_target(tmp_path: Path) -> None:
    path = tmp_path / "deviations.toml"
    path.write_text(deviation_text(), encoding="utf-8")
    deviations = load_deviations(path)
    assert deviations["a/b", "proxy"].fields == {"kind"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (deviation_text(reason='" "'), "needs a reason"),
        (deviation_text(fields="[]"), "at least one field"),
        (deviation_text() * 2, "named twice"),
    ],
)
def test_a_deviation_without_reason_or_field_or_named_twice_is_refused(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "deviations.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=complaint):
        load_deviations(path)
