"""The interface by which a flight reserves and charges the memory of a topic list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from limiter.memory.dual_limiter import SharedOwner
    from proto.topics_response import TopicsAnswer


class Charging(Protocol):
    """A way to charge for answers; chosen when the proxy is put together."""

    reuses_answers: bool
    """True if a flight may end with an answer that is on its way to others already."""

    def charge(self, request: pb.CommandGetTopicsOfNamespace, owner: SharedOwner) -> Charge:
        """Return the charge for one flight; ``owner`` is all who wait for it, together."""

    def expected_bytes(self, request: pb.CommandGetTopicsOfNamespace) -> int | None:
        """Return what an answer will probably take, for flow control; None before the first."""


class Charge(Protocol):
    """The memory of one flight.

    When the last of its owners leaves, what is held is given back at any wait.

    Raises:
        RequestError: Memory was not granted.
        UnansweredRequestError: Profile pulsar: the client gets no answer.
    """

    async def reserve(self, *, confirmation: bool) -> None:
        """Wait for the memory that must be held before the broker is asked.

        Args:
            confirmation: The broker is asked whether a list that is held already is still right.
        """

    def admit(self, total_size: int) -> bool:
        """Decide on an announced answer, before its body is read."""

    def declined(self, total_size: int) -> None:
        """Remember the size of an answer that was not admitted, or refuse it."""

    async def settle(self, answer: TopicsAnswer, *, charged: bool) -> None:
        """Charge what the answer takes; its direct memory is the owners' from now on.

        Args:
            answer: The broker's, or the one that it confirmed.
            charged: Its bytes are charged already.
        """

    def release(self) -> None:
        """Give back what is still held: all but the direct memory of a settled answer."""
