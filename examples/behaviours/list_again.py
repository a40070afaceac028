"""Clients that list their namespace, sleep, and list again with a smaller pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from loadgen.plan.fields import Duration, Pattern
from loadgen.plan.group import Group

if TYPE_CHECKING:
    from loadgen.engine.client import LoadClient


class ListAgain(Group):
    """List twice.

    Attributes:
        pattern: Local part of the second list's pattern; the first list has no pattern.
        pause: From the first answer to the second request.
    """

    operations: ClassVar[tuple[str, ...]] = ("list",)

    do: Literal["list-again"] = "list-again"
    pattern: Pattern
    pause: Duration = 1.0

    def requests_each(self, seconds: float) -> float:
        """See Group."""
        del seconds
        return 2.0

    @property
    def lasts(self) -> bool:
        """See Group: the run may end when all clients have both lists."""
        return False

    async def client(self, me: LoadClient) -> None:
        """List, sleep, and list again."""
        first = await me.list_topics(due=me.started)
        if first.failed is not None:
            me.gave_up(first.failed)
            return
        await me.sleep(self.pause)
        second = await me.list_topics(pattern=f"persistent://{me.namespace}/{self.pattern}")
        if second.failed is not None:
            me.gave_up(second.failed)
            return
        me.back()
