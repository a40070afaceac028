"""Deliberate differences between Floodgate and a real Pulsar on odd calls, with reasons.

A call with a listed deviation counts neither as agreeing nor as differing; deviations are counted
by name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.differential.rest.calls import RestCall
from tests.support.golden.rest import RestAnswer

_REGISTERED = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE"})
_CONTROL = re.compile(r"%0[0-9A-Fa-f]|%1[0-9A-Fa-f]|%7[Ff]")


@dataclass(frozen=True)
class RestDeviation:
    """Class of calls with different answers.

    Attributes:
        name: Of the class.
        reason: Reason for the difference.
        holds: Whether a call and its answers, the real answer first, belong to the class.
    """

    name: str
    reason: str
    holds: Callable[[RestCall, RestAnswer, RestAnswer], bool]


def _fails(_: RestCall, real: RestAnswer, ours: RestAnswer) -> bool:
    return real.status in {0, 500} and 200 <= ours.status < 500


def _unknown_method(call: RestCall, real: RestAnswer, ours: RestAnswer) -> bool:
    return call.method not in _REGISTERED and (real.status, ours.status) == (405, 400)


def _not_built(_: RestCall, __: RestAnswer, ours: RestAnswer) -> bool:
    return ours.status == 501


def _control_character(call: RestCall, _: RestAnswer, ours: RestAnswer) -> bool:
    return ours.status == 412 and _CONTROL.search(call.path) is not None


DEVIATIONS = (
    RestDeviation(
        "failure of the server",
        "A real broker answers 500, or never, to some input that is only odd: it fails within. "
        "Here it is done or refused with a sentence, except where profile pulsar repeats the 500.",
        _fails,
    ),
    RestDeviation(
        "unknown method",
        "The HTTP parser here knows the registered methods; another word in their place is a "
        "malformed request, 400, and not 405.",
        _unknown_method,
    ),
    RestDeviation("not built", "501 says what is not built here.", _not_built),
    RestDeviation(
        "control character",
        "A name with a control character would break listings into lines: it is refused.",
        _control_character,
    ),
)


def deviation_of(call: RestCall, real: RestAnswer, ours: RestAnswer) -> RestDeviation | None:
    """Return the deviation of a call and its answers, or None."""
    return next((one for one in DEVIATIONS if one.holds(call, real, ours)), None)
