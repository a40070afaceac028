from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.patterns.filter import PatternRules
from broker.patterns.pattern import RegexImplementation
from broker.watches.rules import (
    FLOODGATE_WATCHES,
    PULSAR_WATCHES,
    WatchProfile,
    accepted_pattern,
)
from server.connection.request_errors import RequestError

PATTERNS = PatternRules(
    enabled=True,
    max_length=10,
    implementation=RegexImplementation.RE2J_WITH_JDK_FALLBACK,
    share=True,
    timeout_seconds=1.0,
)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("t/n/.*", "t/n/.*"),
        ("persistent://t/n/.*", "t/n/.*"),
        ("non-persistent://t/n/.*", "t/n/.*"),
        ("^persistent://t/n/.*", "^t/n/.*"),
        ("persistent://" + 10 * "é", 10 * "é"),
        (5 * "\U0001f600", 5 * "\U0001f600"),
        ("", ""),
    ],
)
def test_a_watch_pattern_is_accepted_without_its_domain_scheme(text: str, pattern: str) -> None:
    assert accepted_pattern(text, PATTERNS, FLOODGATE_WATCHES) == pattern


@pytest.mark.parametrize(
    "text", ["t/n/abcdefg", "persistent://t/n/abcdefg", 5 * "\U0001f600" + "a"]
)
def test_a_pattern_longer_than_the_maximum_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        accepted_pattern(text, PATTERNS, FLOODGATE_WATCHES)
    assert refused.value.server_error == pb.NotAllowedError
    assert refused.value.message == (
        "Unable to create topic list watcher: Pattern longer than maximum: 10"
    )


@pytest.mark.parametrize("profile", [FLOODGATE_WATCHES, PULSAR_WATCHES], ids=["ours", "pulsar"])
def test_every_pattern_is_refused_while_pattern_evaluation_is_disabled(
    profile: WatchProfile,
) -> None:
    with pytest.raises(RequestError) as refused:
        accepted_pattern(".*", replace(PATTERNS, enabled=False), profile)
    assert refused.value.server_error == pb.NotAllowedError
    assert refused.value.message == (
        "Unable to create topic list watcher: Evaluating subscription patterns is disabled."
    )


@pytest.mark.parametrize("text", ["t/n/(", "a)|(b", "(?<x"])
def test_a_pattern_that_cannot_be_compiled_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        accepted_pattern(text, PATTERNS, FLOODGATE_WATCHES)
    assert refused.value.server_error == pb.InvalidTopicName
    assert refused.value.message.startswith("Invalid topics pattern: ")


def test_a_pattern_of_an_unknown_domain_is_refused() -> None:
    with pytest.raises(RequestError) as refused:
        accepted_pattern("foo://t/n/a", PATTERNS, FLOODGATE_WATCHES)
    assert refused.value.server_error == pb.InvalidTopicName
    assert "foo" in refused.value.message


@pytest.mark.parametrize("pattern", ["foo://t/n/a", "persistent://"])
def test_in_profile_pulsar_an_unknown_or_lone_domain_is_an_authorization_error(
    pattern: str,
) -> None:
    with pytest.raises(RequestError) as refused:
        accepted_pattern(pattern, PATTERNS, PULSAR_WATCHES)
    assert (refused.value.server_error, refused.value.message) == (
        pb.AuthorizationError,
        "Exception occurred while trying to handle command WatchTopicList",
    )
