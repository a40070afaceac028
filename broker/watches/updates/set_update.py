"""One change of a watched set, encoded once for all its watchers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.watch_commands import WatchUpdate

if TYPE_CHECKING:
    from broker.watches.names.sorted_names import SortedNames
    from broker.watches.updates.update_permit import UpdatePermit


class SetUpdate:
    """One change of a watched set, encoded once for all its watchers.

    Args:
        before: The set before the change.
        after: The set after it.
        names: The names added and removed, as proto.watch_commands.encode_changes encodes them.
        permit: Shared by all updates of the change; None where each copy is sent under its own.

    Attributes:
        command: The command without what differs between watchers.
    """

    __slots__ = ("after", "before", "command", "permit")

    def __init__(
        self,
        before: SortedNames,
        after: SortedNames,
        names: bytes,
        permit: UpdatePermit | None = None,
    ) -> None:
        self.before = before
        self.after = after
        self.command = WatchUpdate(names, after.hash)
        self.permit = permit
        if permit is not None:
            permit.size_bytes += self.command.body_bytes

    def __repr__(self) -> str:
        return f"<update to {self.after.hash}>"
