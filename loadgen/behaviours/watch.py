"""Clients that watch their namespace's topics and verify every update of the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import proto.PulsarApi_pb2 as pb
from loadgen.behaviours.create_and_delete import due_of
from loadgen.engine.frames import WATCHER_ID, request_frame
from loadgen.plan.fields import Pattern
from loadgen.plan.group import Group
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from loadgen.engine.client import LoadClient

LOOKS, LOOK_SECONDS = 10, 0.4
"""Number and interval of comparisons of a watch's names with a list before the watch is wrong."""


@dataclass(slots=True)
class _Told:
    """The topic names that a watching client has from updates, and the server's hash of them."""

    names: set[str] = field(default_factory=set)
    topics_hash: str = ""


class Watch(Group):
    """Watch a namespace for created and deleted topics, and verify every update.

    Attributes:
        pattern: Local part of the topics pattern; None is all topics of the namespace.
    """

    operations: ClassVar[tuple[str, ...]] = ("update", "watch")
    opens: ClassVar[bool] = True

    do: Literal["watch"] = "watch"
    pattern: Pattern | None = None

    async def client(self, me: LoadClient) -> None:
        """Watch topics until the run ends; then compare the names from updates with a list."""
        told = _Told()
        me.on_pushed = lambda command, _: _take(me, command, told)
        pattern = f"persistent://{me.namespace}/{self.pattern or '.*'}"
        command = pb.CommandWatchTopicList(
            watcher_id=WATCHER_ID, namespace=me.namespace, topics_pattern=pattern
        )
        link, opened = await me.open(pattern, "watch", request_frame(command))
        if opened.failed is not None:
            me.gave_up(opened.failed)
            return
        told.names.update(opened.value.topic)
        told.topics_hash = opened.value.topics_hash
        me.back()
        with me.not_idle():
            await me.first(me.stopping, link.lost)
            if not link.lost.is_set():
                await self._compare(me, pattern, told)

    async def _compare(self, me: LoadClient, pattern: str, told: _Told) -> None:
        """Compare the names from updates with a list, once all pending changes have arrived."""
        missing = extra = 0
        # Topics created by clients are deleted at the end of their life, also after the run's end.
        await me.sleep(LOOK_SECONDS)
        while any(due_of(name, created=False) is not None for name in told.names):
            await me.sleep(LOOK_SECONDS)
        for _ in range(LOOKS):
            listed = await me.names_now(pattern if self.pattern else None)
            if listed is None:
                return
            missing, extra = len(listed - told.names), len(told.names - listed)
            right = not told.topics_hash or told.topics_hash == topics_hash(listed)
            if not missing and not extra and right:
                return
            await me.sleep(LOOK_SECONDS)
        wrong = (
            f"at the end the watch of {me.namespace} lacks {missing} names that a list has, has "
            f"{extra} that it has not, or got a hash that is not that of its names"
        )
        me.end_row(me.begin_row("update"), wrong=wrong)


def _take(me: LoadClient, command: pb.BaseCommand, told: _Told) -> None:
    """Record each topic name in a watch update as a request row.

    An update is wrong if an earlier one already reported the same change.
    """
    if command.type != pb.BaseCommand.WATCH_TOPIC_UPDATE:
        return
    update = command.watchTopicUpdate
    for created, topics in ((True, update.new_topics), (False, update.deleted_topics)):
        for topic in topics:
            due = due_of(topic, created=created)
            row = me.begin_row("update", due, item=f"{'+' if created else '-'}{topic}")
            row.sent = row.due
            again = (topic in told.names) is created
            me.end_row(row, wrong="an update repeated an earlier change" if again else "")
            (told.names.add if created else told.names.discard)(topic)
    told.topics_hash = update.topics_hash
