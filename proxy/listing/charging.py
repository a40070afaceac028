"""Interface that reserves and charges the memory of a topic list requested from a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from limiter.memory.dual_limiter import SharedOwner
    from proto.topics_response import TopicsAnswer


class Charging(Protocol):
    """An interface of policies that charge the memory of topic lists to the clients."""

    reuses_answers: bool
    """True if a flight may end with an answer that is still being sent to other clients."""

    def charge(self, request: pb.CommandGetTopicsOfNamespace, owner: SharedOwner) -> Charge:
        """Create the charge for one broker request; ``owner`` stands for all waiting clients."""

    def expected_bytes(self, request: pb.CommandGetTopicsOfNamespace) -> int | None:
        """Return the probable size in bytes of the answer to a request; None if unknown."""


class Charge(Protocol):
    """An interface to the memory that is reserved and charged for the answer to one broker request.

    When the last owner leaves, held memory is released at any wait.

    Raises:
        RequestError: Memory was not granted.
        UnansweredRequestError: Profile pulsar: the client gets no answer.
    """

    async def reserve(self, *, confirmation: bool) -> None:
        """Wait for the memory that must be granted before the request is sent to the broker.

        Args:
            confirmation: Whether the request only confirms an already held list.
        """

    def admit(self, total_size: int) -> bool:
        """Decide, given the announced size of an answer, whether to read its body."""

    def declined(self, total_size: int) -> None:
        """Record the size of an answer that ``admit`` declined, or raise the client's error."""

    async def settle(self, answer: TopicsAnswer, *, charged: bool) -> None:
        """Charge the memory of a received answer, whose direct memory the clients then hold.

        Args:
            answer: The broker's, or the confirmed answer.
            charged: Whether the answer's bytes are already charged.
        """

    def release(self) -> None:
        """Release all memory that is still held, except a charged answer's direct memory."""
