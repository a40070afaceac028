"""A broker and network of plain values that answer a schedule's requests on command."""

from __future__ import annotations

import random as chance
from dataclasses import replace
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.discovery.families import schedule_of
from client.discovery.schedule import (
    CloseWatch,
    DiscoveryOptions,
    GiveUp,
    ListTopics,
    OpenWatch,
    Unanswered,
)
from proto.topic_hash import topics_hash
from tests.support.clocks.manual_clock import ManualClock

if TYPE_CHECKING:
    from client.discovery.schedule import Action, Failure

OPTIONS = DiscoveryOptions("persistent://public/default/t-.*", operation_timeout_seconds=1e9)


class World:
    """A schedule, its client's names, and the broker's.

    Attributes:
        schedule: Under test.
        topics: The broker's matching topics.
        names: The client's.
        pending: Requests without outcome.
        asked: Time and kind of each topic or watch request.
        watching: Whether the broker reports changes.
        gave_up: The subscription's error.
    """

    def __init__(self, family: str, options: DiscoveryOptions = OPTIONS, seed: int = 1) -> None:
        self.clock = ManualClock(0.0)
        self.topics: set[str] = {"t-0"}
        self.names: set[str] = set()
        self.pending: list[Action] = []
        self.asked: list[tuple[float, Action]] = []
        self.watching = self.connected = False
        self.gave_up: Failure | None = None
        self._first = True
        random = chance.Random(seed).random
        self.schedule = schedule_of(family, replace(options), self.clock, self._perform, random)

    def _perform(self, action: Action) -> None:
        if isinstance(action, GiveUp):
            self.gave_up = action.failure
        elif isinstance(action, CloseWatch):
            self.watching = False
        elif isinstance(action, ListTopics | OpenWatch):
            lists = [one for one in self.pending if isinstance(one, ListTopics)]
            assert not (lists and isinstance(action, ListTopics)), "two listings at a time"
            self.asked.append((self.clock.now(), action))
            self.pending.append(action)

    @property
    def listings(self) -> list[float]:
        """Moments of the list requests."""
        return [at for at, action in self.asked if isinstance(action, ListTopics)]

    def connect(self, *, watches: bool = True, reconciles: bool = False) -> None:
        self.connected = True
        self.schedule.connected(watches=watches, reconciles=reconciles)

    def start(self) -> None:
        """Connect, and begin."""
        self.connect()
        self.schedule.start()

    def answer(self) -> None:
        """Answer the oldest request, truly."""
        action = self.pending.pop(0)
        self.names = set(self.topics)
        if isinstance(action, ListTopics):
            self.schedule.listed(topics_hash(self.names))
            if self._first:
                self._first = False
                self.schedule.subscribed()
        else:
            self.watching = True
            self.schedule.watch_opened(topics_hash(self.names))

    def refuse(self, failure: Failure = pb.TooManyRequests) -> None:
        """Refuse the oldest request."""
        action = self.pending.pop(0)
        if isinstance(action, ListTopics):
            self.schedule.list_failed(failure)
        else:
            self.schedule.watch_failed(failure)

    def lose(self) -> None:
        """Lose the connection and all requests in flight."""
        self.connected = self.watching = False
        lost, self.pending = self.pending, []
        self.schedule.connection_lost()
        for action in lost:
            if isinstance(action, ListTopics):
                self.schedule.list_failed(Unanswered.DISCONNECTED)
            else:
                self.schedule.watch_failed(Unanswered.DISCONNECTED)

    def change(self, name: str, *, told: bool = True) -> None:
        """Create a topic, or delete an existing one; reports to a live watch."""
        before = set(self.topics)
        self.topics ^= {name}
        if self.watching and told:
            self.names = (self.names | (self.topics - before)) - (before - self.topics)
            fits = self.names == self.topics
            self.schedule.watch_updated(topics_hash(self.names), fits=fits)

    def calm(self, seconds: float, step: float = 1.0) -> None:
        """Answer everything for a while."""
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            if not self.connected:
                self.connect()
            while self.pending:
                self.answer()
            self.clock.advance(step)
        while self.pending:
            self.answer()
