"""Rules for watches: which patterns are accepted, and how the two profiles differ."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.patterns.errors import InvalidPatternError
from broker.patterns.pattern import compile_pattern, pattern_length, remove_domain_scheme
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.patterns.filter import PatternRules

REFUSED = "Unable to create topic list watcher: "


@dataclass(frozen=True, slots=True)
class WatchProfile:
    """How watches behave in a profile, pulsar or floodgate.

    Each is True for behavior recorded from a real broker, False for corrected behavior.

    Attributes:
        one_by_one: Each name is a separate update, queued for each watcher; otherwise a watcher
            receives the difference to the newest version.
        lists_for_each_request: Each request lists the namespace anew under the heap limit;
            otherwise only the first watch of a pattern does.
        second_request_empties: A request for an id with an unanswered first request empties the
            first answer.
        first_watch_answers: A request for an id in use is answered with the id's watch, even if the
            requested topics differ; otherwise differing requests are refused.
        java_errors: Error texts are those of Java's exceptions.
    """

    one_by_one: bool = False
    lists_for_each_request: bool = False
    second_request_empties: bool = False
    first_watch_answers: bool = False
    java_errors: bool = False


FLOODGATE_WATCHES = WatchProfile()
PULSAR_WATCHES = WatchProfile(**{field.name: True for field in fields(WatchProfile)})


def accepted_pattern(text: str, patterns: PatternRules, profile: WatchProfile) -> str:
    """Return a watch's pattern without its domain, or refuse the pattern.

    Raises:
        RequestError: The pattern is refused: AuthorizationError with Java's errors or
            InvalidTopicName for an unknown domain, NotAllowedError (the client polls), or
            InvalidTopicName.

    Source: upstream ServerCnx.handleCommandWatchTopicList.
    """
    try:
        pattern = remove_domain_scheme(text)
    except InvalidPatternError as error:
        raise _unknown_domain(error, profile) from None
    if not patterns.enabled:
        raise RequestError(
            pb.NotAllowedError, f"{REFUSED}Evaluating subscription patterns is disabled."
        )
    longest = patterns.max_length
    if pattern_length(pattern) > longest:
        raise RequestError(pb.NotAllowedError, f"{REFUSED}Pattern longer than maximum: {longest}")
    try:
        compile_pattern(pattern, patterns.implementation)
    except InvalidPatternError as error:
        raise RequestError(pb.InvalidTopicName, str(error)) from None
    return pattern


def _unknown_domain(error: InvalidPatternError, profile: WatchProfile) -> RequestError:
    if profile.java_errors:
        text = "Exception occurred while trying to handle command WatchTopicList"
        return RequestError(pb.AuthorizationError, text)
    return RequestError(pb.InvalidTopicName, f"Invalid topics pattern: {error}")
