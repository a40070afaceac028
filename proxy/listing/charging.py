"""The interface for reserving and charging the memory of a flight's topic list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from limiter.memory.dual_limiter import SharedOwner
    from proto.topics_response import TopicsAnswer


class Charging(Protocol):
    """A charging policy for answers, chosen at the proxy's start."""

    reuses_answers: bool
    """True if a flight may end with an answer that is still being sent to other clients."""

    def charge(self, request: pb.CommandGetTopicsOfNamespace, owner: SharedOwner) -> Charge:
        """Return the charge of one flight; ``owner`` stands for all clients waiting for it."""

    def expected_bytes(self, request: pb.CommandGetTopicsOfNamespace) -> int | None:
        """Return the probable size of an answer, for flow control; None before the first."""


class Charge(Protocol):
    """The memory of one flight.

    When the last owner leaves, held memory is released at any wait.

    Raises:
        RequestError: Memory was not granted.
        UnansweredRequestError: Profile pulsar: the client gets no answer.
    """

    async def reserve(self, *, confirmation: bool) -> None:
        """Wait for the memory required before the broker request.

        Args:
            confirmation: Whether the request only confirms an already held list.
        """

    def admit(self, total_size: int) -> bool:
        """Decide on an announced answer, before its body is read."""

    def declined(self, total_size: int) -> None:
        """Record the size of an answer that ``admit`` declined, or refuse the answer."""

    async def settle(self, answer: TopicsAnswer, *, charged: bool) -> None:
        """Charge an answer; its direct memory belongs to the owners from now on.

        Args:
            answer: The broker's, or the confirmed answer.
            charged: Whether the answer's bytes are already charged.
        """

    def release(self) -> None:
        """Release all memory still held, except the direct memory of a settled answer."""
