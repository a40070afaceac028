import pytest

from tests.support.golden.exchange import Deviation, Silence, parse_command
from tests.support.golden.masks import Difference, complaint, differences, mask_text

LOOKUP = "type: LOOKUP_RESPONSE lookupTopicResponse {{ request_id: 1 response: {} {} }}"
ERROR = "type: ERROR error {{ request_id: 1 error: {} message: {} }}"
PROXIED = (
    '"{{\\"errorMsg\\":\\"{}\\",\\"reqId\\":{}, \\"remote\\":\\"a/{}\\", \\"local\\":\\"/{}\\"}}"'
)
TOPICS = (
    "type: GET_TOPICS_OF_NAMESPACE_RESPONSE getTopicsOfNamespaceResponse {{ request_id: 1 {} }}"
)
CONNECTED = "type: CONNECTED connected {{ server_version: {} feature_flags {{ {} }} }}"
JAVA = "java.util.regex.PatternSyntaxException: Unclosed group near index 3"


def differing_fields(recorded: str, answered: str) -> list[str]:
    found = differences(0, parse_command(recorded), parse_command(answered))
    return [each.field for each in found]


def test_equal_answers_do_not_differ() -> None:
    text = LOOKUP.format("Connect", 'brokerServiceUrl: "pulsar://127.0.0.1:6650"')
    assert differing_fields(text, text) == []


@pytest.mark.parametrize(
    ("recorded", "answered"),
    [
        (CONNECTED.format('"Pulsar Server4.2.4"', ""), CONNECTED.format('"Floodgate"', "")),
        (
            TOPICS.format('topics: "a" topics: "b"'),
            TOPICS.format('topics: "b" topics: "a"'),
        ),
        (
            ERROR.format("ServiceNotReady", PROXIED.format("no", 12, "x:1", "c:2")),
            ERROR.format("ServiceNotReady", PROXIED.format("no", -345, "x:1", "c:9")),
        ),
        (ERROR.format("MetadataError", f'"{JAVA}"'), ERROR.format("MetadataError", '"not closed"')),
        (
            ERROR.format("ServiceNotReady", PROXIED.format(JAVA, 1, "x:1", "c:2")),
            ERROR.format("ServiceNotReady", PROXIED.format("not closed", 2, "x:1", "c:3")),
        ),
        (
            "type: SEND_RECEIPT send_receipt { producer_id: 1 sequence_id: 0 "
            "message_id { ledgerId: 3 entryId: 0 } }",
            "type: SEND_RECEIPT send_receipt { producer_id: 1 sequence_id: 0 "
            "message_id { ledgerId: 9 entryId: 0 } }",
        ),
    ],
    ids=["version", "order", "proxied", "java", "proxied java", "message id"],
)
def test_what_differs_between_two_runs_is_masked(recorded: str, answered: str) -> None:
    assert differing_fields(recorded, answered) == []


@pytest.mark.parametrize(
    ("recorded", "answered", "fields"),
    [
        (
            LOOKUP.format("Failed", "error: TopicNotFound"),
            LOOKUP.format("Failed", "error: MetadataError"),
            ["lookupTopicResponse.error"],
        ),
        (
            LOOKUP.format("Connect", "authoritative: false"),
            LOOKUP.format("Connect", ""),
            ["lookupTopicResponse.authoritative"],
        ),
        (
            LOOKUP.format("Failed", 'message: "Namespace not found"'),
            LOOKUP.format("Failed", 'message: "No such namespace"'),
            ["lookupTopicResponse.message"],
        ),
        (
            TOPICS.format('topics: "a"'),
            TOPICS.format('topics: "a" topics: "a"'),
            ["getTopicsOfNamespaceResponse.topics"],
        ),
        (
            CONNECTED.format('"x"', "supports_topic_watchers: true"),
            CONNECTED.format('"x"', "supports_topic_watchers: false"),
            ["connected.feature_flags.supports_topic_watchers"],
        ),
        (
            ERROR.format("ServiceNotReady", PROXIED.format("no", 1, "x:1", "c:2")),
            ERROR.format("ServiceNotReady", PROXIED.format("no", 1, "x:7", "c:2")),
            ["error.message"],
        ),
        (
            ERROR.format("MetadataError", f'"{JAVA}"'),
            ERROR.format("MetadataError", '""'),
            ["error.message"],
        ),
        (
            ERROR.format("ServiceNotReady", PROXIED.format(JAVA, 1, "x:1", "c:2")),
            ERROR.format("ServiceNotReady", '"plain"'),
            ["error.message"],
        ),
        (
            ERROR.format("ServiceNotReady", PROXIED.format(JAVA, 1, "x:1", "c:2")),
            ERROR.format("ServiceNotReady", PROXIED.format("", 1, "x:1", "c:2")),
            ["error.message"],
        ),
        (
            ERROR.format("MetadataError", f'"{JAVA}"'),
            ERROR.format("UnknownError", '"not closed"'),
            ["error.error"],
        ),
        ("type: PING ping { }", "type: PONG pong { }", ["kind"]),
    ],
    ids=[
        "code",
        "presence",
        "text",
        "names",
        "flag",
        "server address",
        "java without text",
        "java frame",
        "java frame without text",
        "java code",
        "kind",
    ],
)
def test_everything_else_is_a_difference_by_its_field(
    recorded: str, answered: str, fields: list[str]
) -> None:
    assert differing_fields(recorded, answered) == fields


def test_silence_a_close_and_a_command_are_three_kinds_of_answer() -> None:
    ping = parse_command("type: PING ping { }")
    assert not differences(0, Silence.CLOSED, Silence.CLOSED)
    for answered in (Silence.NOTHING, ping):
        (found,) = differences(4, Silence.CLOSED, answered)
        assert (found.step, found.field, found.recorded) == (4, "kind", "(closed)")


def test_dates_are_masked_and_numbers_are_not() -> None:
    assert mask_text("at 2026-01-02T03:04:05.678Z, 17 of 18") == "at <date>, 17 of 18"


def test_a_difference_says_row_field_and_both_values() -> None:
    (found,) = differences(2, Silence.CLOSED, Silence.NOTHING)
    assert str(found) == "row 2: kind was recorded as (closed), came as (nothing)"


def differing_in(*fields: str) -> list[Difference]:
    return [Difference(1, field, "a", "b") for field in fields]


def test_without_a_deviation_every_difference_is_reported() -> None:
    assert complaint([], None) == ""
    assert "error.message was recorded as a" in complaint(differing_in("error.message"), None)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        (("kind", "error"), ""),
        (("kind",), "these no longer differ"),
        ((), "these no longer differ"),
        (("kind", "error", "message"), "more differs than is admitted"),
    ],
)
def test_a_deviation_covers_exactly_the_fields_it_names(
    fields: tuple[str, ...], wrong: str
) -> None:
    deviation = Deviation("a/b", "proxy", frozenset({"kind", "error"}), "Because.")
    found = complaint(differing_in(*fields), deviation)
    assert found.startswith(wrong)
    assert bool(found) == bool(wrong)
