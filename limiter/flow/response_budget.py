"""Limit on the bytes of a connection's unfinished responses.

A request reserves the expected size of its response in advance, and releases the reservation when
the response is in the outbound queue, where the water marks count it. The largest response is not
counted: a topic list waiting for memory must not block the lookups behind it. When the rest reach
the bound, the connection's next requests stay unread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.flow.causes import PauseCause

if TYPE_CHECKING:
    from limiter.flow.read_gate import ReadGate
    from limiter.flow.totals import FlowTotals

SMALL_RESPONSE_BYTES = 8_192
"""The least bytes counted for a response: the cost of its task and buffers."""


class ResponseBudget:
    """The reserved bytes of a connection's unfinished responses.

    Args:
        max_bytes: floodgateMaxInFlightResponseBytesPerConnection; 0 or less is unlimited.
        gate: Read gate, closed when all responses but the largest reach ``max_bytes``, and reopened
            at half of it.
    """

    def __init__(self, max_bytes: int, gate: ReadGate, totals: FlowTotals) -> None:
        self._max_bytes = max_bytes
        self._gate = gate
        self._totals = totals
        self.reserved_bytes = 0
        self._sizes: dict[ResponseReservation, int] = {}

    def reserve(self, size_bytes: int | None) -> ResponseReservation:
        """Reserve a response's bytes; a response of unknown size reserves the whole budget."""
        expected_bytes = self._max_bytes if size_bytes is None else size_bytes
        reservation = ResponseReservation(self, max(expected_bytes, SMALL_RESPONSE_BYTES))
        self._sizes[reservation] = reservation.size_bytes
        self._change(reservation.size_bytes)
        if 0 < self._max_bytes <= self._beside_the_largest():
            self._gate.close_for(PauseCause.IN_FLIGHT_RESPONSE_BYTES)
        return reservation

    def _beside_the_largest(self) -> int:
        if self.reserved_bytes < self._max_bytes or self._max_bytes <= 0:
            return 0
        return self.reserved_bytes - max(self._sizes.values(), default=0)

    def lift(self) -> None:
        """Remove the limit, and resume reading if the limit paused it."""
        self._max_bytes = 0
        self._gate.open_for(PauseCause.IN_FLIGHT_RESPONSE_BYTES)

    def release_all(self) -> None:
        """Release the reservations of a closed connection."""
        for reservation in list(self._sizes):
            reservation.release()

    def give_back(self, reservation: ResponseReservation) -> None:
        """Release the bytes of a queued or abandoned response; called by its reservation."""
        self._change(-self._sizes.pop(reservation))
        if 2 * self._beside_the_largest() <= self._max_bytes:
            self._gate.open_for(PauseCause.IN_FLIGHT_RESPONSE_BYTES)

    def _change(self, delta_bytes: int) -> None:
        self.reserved_bytes += delta_bytes
        self._totals.response_bytes += delta_bytes


class ResponseReservation:
    """Bytes reserved for one response, released by ``with`` or by ``release``."""

    __slots__ = ("_budget", "size_bytes")

    def __init__(self, budget: ResponseBudget, size_bytes: int) -> None:
        self._budget = budget
        self.size_bytes = size_bytes

    def release(self) -> None:
        """Release the reserved bytes; idempotent."""
        if self.size_bytes:
            self.size_bytes = 0
            self._budget.give_back(self)

    def __enter__(self) -> ResponseReservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
