"""One change of a watched set, encoded once for all who are told it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.watch_commands import WatchUpdate

if TYPE_CHECKING:
    from broker.watches.names.sorted_names import SortedNames
    from broker.watches.updates.update_permit import UpdatePayment


class SetUpdate:
    """One change of a watched set, encoded once for all who are told it.

    Args:
        before: The set it starts from.
        after: The set it leads to.
        names: What came and went, as proto.watch_commands.encode_changes gives it.

    Attributes:
        command: What is sent.
        payment: Pays for what is sent to all who are told at once.
    """

    __slots__ = ("after", "before", "command", "payment")

    def __init__(
        self,
        before: SortedNames,
        after: SortedNames,
        names: bytes,
        payment: UpdatePayment | None = None,
    ) -> None:
        self.before = before
        self.after = after
        self.command = WatchUpdate(names, after.hash)
        self.payment = payment
        if payment is not None:
            payment.size_bytes += self.command.body_bytes

    def __repr__(self) -> str:
        return f"<update to {self.after.hash}>"
