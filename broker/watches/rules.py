"""What watches are told before the broker starts, and which patterns they accept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.patterns.errors import InvalidPatternError
from broker.patterns.pattern import compile_pattern, pattern_length, remove_domain_scheme
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.patterns.pattern import RegexImplementation

REFUSED = "Unable to create topic list watcher: "


@dataclass(frozen=True, slots=True)
class WatchRules:
    """What watches are told before the broker starts.

    Attributes:
        evaluates_patterns: enableBrokerSideSubscriptionPatternEvaluation.
        max_pattern_length: subscriptionPatternMaxLength, UTF-16 units without the domain.
        implementation: topicsPatternRegexImplementation.
        max_bytes: floodgateTopicWatchMaxBytes; 0 is unlimited.
        max_update_bytes: Names of one update at most.
        max_frame_bytes: An answer's frame at most; as shipped 0: it is sent whatever its size.
        as_shipped: Profile pulsar.
        private_buffers: floodgateResponseBuffers=private.
    """

    evaluates_patterns: bool
    max_pattern_length: int
    implementation: RegexImplementation
    max_bytes: int
    max_update_bytes: int
    max_frame_bytes: int
    as_shipped: bool
    private_buffers: bool


def accepted_pattern(text: str, rules: WatchRules) -> str:
    """Return a client's pattern without its domain, if this broker evaluates it.

    Raises:
        RequestError: It does not: AuthorizationError as shipped or InvalidTopicName for a domain
            nobody knows, NotAllowedError (the client polls), or InvalidTopicName.

    Source: upstream ServerCnx.handleCommandWatchTopicList.
    """
    try:
        pattern = remove_domain_scheme(text)
    except InvalidPatternError as error:
        raise _unknown_domain(error, rules) from None
    if not rules.evaluates_patterns:
        raise RequestError(
            pb.NotAllowedError, f"{REFUSED}Evaluating subscription patterns is disabled."
        )
    if pattern_length(pattern) > rules.max_pattern_length:
        longest = rules.max_pattern_length
        raise RequestError(pb.NotAllowedError, f"{REFUSED}Pattern longer than maximum: {longest}")
    try:
        compile_pattern(pattern, rules.implementation)
    except InvalidPatternError as error:
        raise RequestError(pb.InvalidTopicName, str(error)) from None
    return pattern


def _unknown_domain(error: InvalidPatternError, rules: WatchRules) -> RequestError:
    if rules.as_shipped:
        text = "Exception occurred while trying to handle command WatchTopicList"
        return RequestError(pb.AuthorizationError, text)
    return RequestError(pb.InvalidTopicName, f"Invalid topics pattern: {error}")
