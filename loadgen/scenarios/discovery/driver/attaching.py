"""Attaches a client to its topics: LOOKUP and SUBSCRIBE, again whenever that is lost."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from limiter.backoff import Backoff
from loadgen.scenarios.discovery.driver.ledger import LOOK_UP, SUBSCRIBE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from client.discovery.actions import Failure
    from limiter.clock import Clock, TimerHandle
    from loadgen.clients.wires import BrokerAddress, Wire
    from loadgen.scenarios.discovery.driver.link import Link
    from loadgen.scenarios.discovery.driver.links import Links

REOPEN_SECONDS = 0.1
"""Seconds from the broker's closing of a consumer until its topic is looked up anew."""
_MOST_SECONDS = 60.0
_FINAL = frozenset(
    {
        pb.AuthenticationError,
        pb.AuthorizationError,
        pb.ConsumerAssignError,
        pb.ConsumerBusy,
        pb.IncompatibleSchema,
        pb.InvalidTopicName,
        pb.NotAllowedError,
        pb.SubscriptionNotFound,
        pb.TopicNotFound,
        pb.TopicTerminatedError,
    }
)
"""Refusals that the official clients do not try again behind."""


class _Attachment:
    """One topic of one client."""

    __slots__ = ("attempt", "backoff", "link", "stood", "topic")

    def __init__(self, topic: str, backoff: Backoff) -> None:
        self.topic = topic
        self.backoff = backoff
        self.link: Link | None = None  # the one it is attached on
        self.stood = False  # ever
        self.attempt: TimerHandle | None = None


class Attachments:
    """The topics that one client subscribes to.

    The first attempts are made for the operation timeout; what stood once is tried for ever. Delays
    are those of the official clients: 0.1 s to 60 s, twice as long each time.

    Args:
        links: The client's connections.
        clock: Where time comes from.
        random: Returns numbers from 0 to 1.
        subscription: Name.
        on_attached: Called once, when all topics are subscribed to.
        on_given_up: Told why a topic cannot be.
        retry_seconds: First attempts begin within this time; 0: there is but one, ever.
    """

    def __init__(  # noqa: PLR0913 - its parts
        self,
        links: Links,
        clock: Clock,
        random: Callable[[], float],
        *,
        subscription: str,
        on_attached: Callable[[], None],
        on_given_up: Callable[[Failure, str], None],
        retry_seconds: float,
    ) -> None:
        self._links = links
        self._clock = clock
        self._random = random
        self._subscription = subscription
        self._on_attached = on_attached
        self._on_given_up = on_given_up
        self._retry_seconds = retry_seconds
        self._give_up_at = 0.0
        self._each: list[_Attachment] = []
        self._left = 0
        self._closed = False

    def attach(self, topics: Sequence[str]) -> None:
        """Begin."""
        self._give_up_at = self._clock.now() + self._retry_seconds
        self._left = len(topics)
        self._each = [
            _Attachment(topic, Backoff(0.1, _MOST_SECONDS, self._random)) for topic in topics
        ]
        if not self._each:
            self._on_attached()
        for number in range(len(self._each)):
            self._look_up(number)

    def close(self) -> None:
        """Begin nothing any more."""
        self._closed = True
        for each in self._each:
            if each.attempt is not None:
                each.attempt.cancel()

    def lost(self, link: Link) -> None:
        """Attach again what was attached on a connection that is gone."""
        for number, each in enumerate(self._each):
            if each.link is link:
                each.link = None
                self._again_in(number, each.backoff.next())

    def closed_by_broker(self, number: int) -> None:
        """Attach a topic again, in a moment."""
        if 0 <= number < len(self._each) and self._each[number].link is not None:
            self._each[number].link = None
            self._again_in(number, REOPEN_SECONDS)

    def _again_in(self, number: int, seconds: float) -> None:
        if self._closed or not self._retry_seconds:
            return
        each = self._each[number]
        each.attempt = self._clock.call_at(self._clock.now() + seconds, self._look_up, number)

    def _look_up(self, number: int) -> None:
        if self._closed:
            return
        topic = self._each[number].topic
        self._links.request(
            self._links.service,
            LOOK_UP,
            lambda wire, request_id: wire.look_up(request_id, topic),
            partial(self._subscribe, number),
            partial(self._failed, number),
        )

    def _subscribe(self, number: int, broker: BrokerAddress) -> None:
        if self._closed:
            return
        topic, subscription = self._each[number].topic, self._subscription
        link = self._links.to(broker)

        def send(wire: Wire, request_id: int) -> None:
            wire.subscribe(request_id, number, topic, subscription)

        answered = partial(self._subscribed, number, link)
        self._links.request(link, SUBSCRIBE, send, answered, partial(self._failed, number))

    def _subscribed(self, number: int, link: Link, answer: object) -> None:
        del answer
        each = self._each[number]
        each.link = link
        each.backoff.reset()
        if not each.stood:
            each.stood = True
            self._left -= 1
            if self._left == 0 and not self._closed:
                self._on_attached()

    def _failed(self, number: int, failure: Failure, reason: str) -> None:
        each = self._each[number]
        if self._closed:
            return
        delay = each.backoff.next()
        late = not each.stood and self._clock.now() + delay >= self._give_up_at
        if failure not in _FINAL and not late:
            self._again_in(number, delay)
        elif not each.stood:
            self._on_given_up(failure, reason)
