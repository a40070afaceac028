"""The faults beneath official clients, and each application's observations."""

from typing import Any, NamedTuple


class Case(NamedTuple):
    """A fault.

    Attributes:
        document: The posted document, without ``where``.
        python: Result for its application.
        java: Likewise.
        go: Likewise.
        at_proxy: Whether a proxy supports it.
        missing: Receipted messages dropped by the client itself.
        go_may_hide_it: Go's client may retry before it notifies its application.
    """

    document: dict[str, Any]
    python: tuple[str, ...] = ()
    java: tuple[str, ...] = ()
    go: tuple[str, ...] = ()
    at_proxy: bool = True
    missing: int = 0
    go_may_hide_it: bool = False

    def is_as_told(self, language: str, errors: list[str]) -> bool:
        """Return whether an application saw the expected result."""
        expected: tuple[str, ...] = getattr(self, language)
        if language == "go" and self.go_may_hide_it:
            return set(errors) <= set(expected)
        return sorted(errors) == sorted(expected)


def _fault(on: str, action: str, times: int = 1, after: int = 0, **do: Any) -> dict[str, Any]:
    when = {"after": after, "times": times}
    return {"on": [on], "when": when, "do": {"action": action, **do}}


def _sent(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "direction": "sent"}


def _not_ready(on: str) -> dict[str, Any]:
    return _fault(on, "error", 2, error="ServiceNotReady")


_LOST = ("send: Timeout",)
_LOST_IN_GO = ("send: message send timeout",)
CASES = {
    # Go's client closes its connection before it matches the answer: the order of answer and close
    # decides whether it retries.
    "an error for a lookup": Case(
        _not_ready("LOOKUP"),
        go=("subscribe: ServiceNotReady", "create: ServiceNotReady"),
        go_may_hide_it=True,
    ),
    "an error for a producer": Case(_not_ready("PRODUCER"), go=("create: ServiceNotReady",)),
    # The Python client intends a retry, and then considers itself connected.
    "an error for a consumer": Case(
        _not_ready("SUBSCRIBE"), ("subscribe: Timeout",), go=("subscribe: ServiceNotReady",)
    ),
    "an error for a message": Case(_fault("SEND", "error", after=3, error="PersistenceError")),
    "a producer that may not": Case(
        _fault("PRODUCER", "error", error="AuthorizationError"),
        ("create: AuthorizationError",),
        ("create: Authorization",),
        ("create: AuthorizationError",),
    ),
    "a delayed message": Case(_fault("SEND", "delay", 3, delayMs=300)),
    "a lost message": Case(_fault("SEND", "drop", after=3), _LOST, _LOST, _LOST_IN_GO),
    "a lost receipt": Case(
        _sent(_fault("SEND_RECEIPT", "drop", after=3)), _LOST, _LOST, _LOST_IN_GO
    ),
    "a lost lookup": Case(
        _fault("LOOKUP", "drop"),
        ("subscribe: Timeout",),
        ("subscribe: Timeout",),
        ("subscribe: context deadline exceeded",),
    ),
    "an end before a message": Case(_fault("SEND", "disconnect", 2, after=3)),
    "an end behind a message": Case(_fault("SEND", "disconnect", 2, after=3, at="after")),
    "a server that stops reading": Case(_fault("SEND", "stopReading", after=3, forMs=1_500)),
    "a server that reads slowly": Case(_fault("SEND", "drain", bytesPerSecond=400)),
    # The Python client drops the message; Java's and Go's resend.
    "a wrong checksum sent": Case(
        _fault("SEND", "corruptChecksum", after=3), ("send: ChecksumError",)
    ),
    "a wrong checksum received": Case(
        _sent(_fault("MESSAGE", "corruptChecksum", after=3)), missing=1
    ),
    "a closed producer": Case(_fault("SEND", "closeProducer", 3, after=2)),
    # Once: Go's client overlooks a CLOSE_CONSUMER right behind the answer to SUBSCRIBE.
    "a closed consumer": Case(_fault("SEND", "closeConsumer", after=2)),
    "a moved topic": Case(_fault("SEND", "moveTopic", after=2), at_proxy=False),
}
