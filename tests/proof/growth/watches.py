"""Topic list watches as rows of growth: opened, notified of changes, closed."""

from contextlib import ExitStack
from functools import partial

import proto.PulsarApi_pb2 as pb
from tests.proof.growth.asking import Asker
from tests.proof.growth.commands import check_names
from tests.proof.growth.measuring import Stage
from tests.proof.growth.rest_calls import created, deleted
from tests.proof.result import ProofError

Type = pb.BaseCommand
MANY_WATCHES = 50
"""Equal watches, each on its own connection."""
DIFFERENT_WATCHES = 40
"""Each keeps nine names of ten: more than the budget for watches."""


class Watches:
    def __init__(self, stage: Stage, way: str) -> None:
        self._stage = stage
        self._way = way
        self._namespace = stage.corpus.namespace(0)
        self._rest = stage.urls["direct"]["web_url"]
        self._tunnel = stage.tunnel if way != "direct" else None
        self._each = stage.corpus.each

    def measure_all(self) -> None:
        """Measure a watch of some names, a watch of all, many of all, and some refused watches."""
        before = self._stage.resident_bytes()
        for of, pattern in (("few", ".*rare.*"), ("all", ".*")):
            with self.asker() as asker:
                set_up = partial(self.watch, asker, pattern)
                if self._stage.measure(f"watch of {of}", self._way, set_up):
                    self._events(asker, of)
        self._stage.held("held after these watches", self._way, before)
        with ExitStack() as stack:
            askers = [stack.enter_context(self.asker()) for _ in range(MANY_WATCHES)]
            many = partial(self._watch_at_once, askers)
            self._stage.measure(f"{MANY_WATCHES} equal watches at once", self._way, many, 1)
        self._stage.held(f"held after {MANY_WATCHES} watches", self._way, before)
        if self._stage.corpus.namespaces == 1:
            with self.asker() as asker:
                refused = partial(self._watch_too_many, asker)
                self._stage.measure("watches until refused", self._way, refused, 1)
            self._stage.held("held after refused watches", self._way, before)

    def asker(self) -> Asker:
        return Asker(self._stage.urls[self._way]["service_url"], self._tunnel)

    def watch(self, asker: Asker, pattern: str) -> int:
        return asker.ask(self._request(asker, pattern)).size_bytes

    def _request(self, asker: Asker, pattern: str) -> pb.BaseCommand:
        number = asker.next_id()
        asked = pb.CommandWatchTopicList(
            request_id=number,
            watcher_id=number,
            namespace=self._namespace,
            topics_pattern=f"{self._namespace}/{pattern}",
        )
        return pb.BaseCommand(type=Type.WATCH_TOPIC_LIST, watchTopicList=asked)

    def _watch_at_once(self, askers: list[Asker]) -> None:
        """Request all watches before an answer is read."""
        for asker in askers:
            asker.send(self._request(asker, ".*"))
        for asker in askers:
            check_names(asker.answer().size_bytes, self._each)

    def _watch_too_many(self, asker: Asker) -> None:
        """Watch with pattern after pattern until the capacity is exhausted.

        Raises:
            ProofError: It never is, or the refusal is different.
        """
        for number in range(DIFFERENT_WATCHES):
            tens, digit = divmod(number, 10)
            try:
                self.watch(asker, f".*[^{digit}]" + "[0-9]" * tens + "p?-app.*")
            except ProofError as refusal:
                if "floodgateTopicWatchMaxBytes" in str(refusal):
                    return
                raise
        raise ProofError(f"none of {DIFFERENT_WATCHES} watches was refused")

    def _events(self, asker: Asker, of: str) -> None:
        """Measure the cost of a watch when a topic is created and deleted; all watches are notified
        of both.
        """
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
