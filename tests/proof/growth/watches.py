"""Topic list watches as rows of growth: set up, told of what comes and goes, closed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from tests.proof.growth.asking import Asker
from tests.proof.growth.commands import check_names
from tests.proof.growth.rest_calls import created, deleted
from tests.proof.result import ProofError

if TYPE_CHECKING:
    from tests.proof.growth.measuring import Stage

Type = pb.BaseCommand
MANY_WATCHES = 10


class Watches:
    """Watches of the first namespace, by one way."""

    def __init__(self, stage: Stage, way: str) -> None:
        self._stage = stage
        self._way = way
        self._namespace = stage.corpus.namespace(0)
        self._rest = stage.urls["direct"]["web_url"]
        self._tunnel = stage.tunnel if way != "direct" else None
        self._each = stage.corpus.each

    def measure_all(self) -> None:
        """Measure a watch of some names, one of all, and several of all."""
        for of, pattern in (("few", ".*rare.*"), ("all", ".*")):
            with self.asker() as asker:
                set_up = partial(self.watch, asker, pattern)
                if self._stage.measure(f"watch of {of}", self._way, set_up):
                    self._events(asker, of)
        with self.asker() as asker:
            self._stage.measure(
                f"{MANY_WATCHES} watches of all", self._way, partial(self._watch_many, asker), 1
            )

    def asker(self) -> Asker:
        return Asker(self._stage.urls[self._way]["service_url"], self._tunnel)

    def watch(self, asker: Asker, pattern: str) -> int:
        """Watch the namespace; return the answer's size."""
        number = asker.next_id()
        asked = pb.CommandWatchTopicList(
            request_id=number,
            watcher_id=number,
            namespace=self._namespace,
            topics_pattern=f"{self._namespace}/{pattern}",
        )
        return asker.ask(
            pb.BaseCommand(type=Type.WATCH_TOPIC_LIST, watchTopicList=asked)
        ).size_bytes

    def _watch_all(self, asker: Asker) -> None:
        check_names(self.watch(asker, ".*"), self._each)

    def _watch_many(self, asker: Asker) -> None:
        for _ in range(MANY_WATCHES):
            self._watch_all(asker)

    def _events(self, asker: Asker, of: str) -> None:
        """Measure what a watch costs when a topic comes and goes; all watches are told of both."""
        topics: list[str] = []

        def comes() -> None:
            topics.append(f"persistent://{self._namespace}/rare-new-{self._stage.fresh()}")
            created(self._rest, topics[-1])
            self._told(asker)

        def goes() -> None:
            deleted(self._rest, topics.pop())
            self._told(asker)

        if self._stage.measure(f"a topic comes, watch of {of}", self._way, comes, 1):
            self._stage.measure(f"a topic goes, watch of {of}", self._way, goes, 1)

    @staticmethod
    def _told(asker: Asker) -> None:
        answer = asker.answer()
        if answer.command is None or answer.command.type != Type.WATCH_TOPIC_UPDATE:
            raise ProofError(f"told with {answer}")
