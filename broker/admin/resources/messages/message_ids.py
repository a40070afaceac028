"""Message ids as JSON, in the form of Pulsar's admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.admin.bodies import json_body
from broker.messages.position import EARLIEST, LATEST, Position
from broker.policies.values import BadBodyError, JsonNumber
from server.http import RestError

if TYPE_CHECKING:
    from aiohttp import web

    from broker.messages.stores.managed_ledger import ManagedLedger

_LIMIT = 1 << 63
_BY_NAME = {"earliest": EARLIEST, "latest": LATEST}


class ResetTarget(NamedTuple):
    """A message id in a request's body (upstream: ResetCursorData).

    Attributes:
        position: The entry.
        excluded: True if the target is the entry after ``position``.
        properties: Properties of the subscription to create at the position.
        partition: Index of the partition; -1 for none.
        batch_index: Index of a message in a batch; -1 for none.
    """

    position: Position
    excluded: bool = False
    properties: object = None
    partition: int = -1
    batch_index: int = -1

    def passes(self, ledger: ManagedLedger) -> bool:
        """Return True if the target is after the whole entry, not before or within its batch.

        Source: upstream PersistentTopicsBase.calculatePositionAckSet.
        """
        digest = ledger.digest(self.position) if self.batch_index >= 0 else None
        left = 0 if digest is None else digest.message_count - self.batch_index - 1
        return self.excluded and left <= 0


def message_id(position: Position, partition: int = -1) -> dict[str, int]:
    """Return a message id as JSON, by default without a partition."""
    return {
        "ledgerId": position.ledger_id,
        "entryId": position.entry_id,
        "partitionIndex": partition,
        "batchSize": 0,
        "batchIndex": -1,
    }


async def reset_target(request: web.Request) -> ResetTarget | None:
    """Return the message id in a request's body, or None for an empty body.

    Raises:
        BadBodyError: The body is no message id.
    """
    value = await json_body(request)
    if value is None:
        return None
    if isinstance(value, str) and not isinstance(value, JsonNumber):
        found = _BY_NAME.get(value.lower())
        if found is None:
            raise BadBodyError(
                f"Invalid value {value[:100]} for the position. Allowed values are "
                "[latest, earliest]"
            )
        return ResetTarget(found)
    if not isinstance(value, dict):
        raise BadBodyError("the body should be a message id")
    position = Position(_number(value, "ledgerId"), _number(value, "entryId"))
    return ResetTarget(
        position,
        value.get("excluded") is True,
        value.get("properties"),
        _number(value, "partitionIndex", "-1"),
        _number(value, "batchIndex", "-1"),
    )


async def given_target(request: web.Request) -> ResetTarget:
    """Return the message id in a request's body, and refuse an empty body.

    Raises:
        BadBodyError: The body is empty or no message id.
    """
    found = await reset_target(request)
    if found is None:
        raise BadBodyError("the body should be a message id", upstream_status=500)
    return found


def _number(value: dict[str, object], name: str, default: str = "0") -> int:
    given = value.get(name, JsonNumber(default))
    try:
        number = int(str(given)) if len(str(given)) <= len(str(_LIMIT)) else _LIMIT
    except ValueError:
        raise BadBodyError(f"{name} should be a whole number") from None
    if not -_LIMIT <= number < _LIMIT:
        raise BadBodyError(f"{name} should be a smaller number")
    return number


def path_number(request: web.Request, name: str) -> int:
    """Return the whole number in a variable of the request's path.

    Raises:
        RestError: 404, as JAX-RS: the text is no whole number.
    """
    text = request.match_info[name]
    digits = text[1:] if text.startswith(("-", "+")) else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > len(str(_LIMIT)):
        raise RestError(404, f"{name}={text[:40]!r} should be a whole number")
    return int(text)
