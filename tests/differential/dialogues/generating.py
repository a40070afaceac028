"""Random dialogues of producers and consumers, mostly like a real client's.

Some steps are refused or close the connection: the remaining state is compared too. The generator
does not know the server's answers, so it tracks the state as if every step had succeeded.

Half of the dialogues are like the recorded dialogues; the other half uses rare fields and steps.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.differential.dialogues import rare_fields
from tests.differential.dialogues.rare_fields import AFTER_ALL_MS, KEYS
from tests.support.dialogues.dialogue import FAILOVER, RESET, Dialogue, Step
from tests.support.dialogues.wire import EARLIEST, LATEST

FEWEST_STEPS, MOST_STEPS = 6, 14
EXCLUSIVE, SHARED, KEY_SHARED = 0, 1, 3
UNKNOWN_ID = 9
BATCH = 3
LARGE_BATCHES = (2, 10, 70)
"""The last size needs two words of acknowledgement bits."""
WIDE = 0.5
"""Share of the dialogues with rare fields and steps."""
NON_PERSISTENT, PARTITIONED = 0.06, 0.1
"""Shares of dialogues on such topics."""
PARTITION = "-partition-1"
"""Suffix of a partition's topic name."""
RARE = 0.12
"""Share of commands with a rare field, within such dialogues."""


@dataclass
class _Side:
    """Open producers and consumers of a connection, if every step succeeded."""

    producers: list[int] = field(default_factory=list)
    consumers: list[int] = field(default_factory=list)


def dialogues(seed: int, count: int, label: str) -> list[Dialogue]:
    """Return dialogues; the same seed gives the same dialogues except for topic names.

    Args:
        seed: Random seed.
        count: Number of dialogues.
        label: Part of the topic names; some rules hash names.
    """
    dice = random.Random(seed)
    names = [f"{seed}-{number}" for number in range(count)]
    return [_Writer(dice, f"public/default/{label}-{name}").dialogue(name) for name in names]


class _Writer:
    def __init__(self, dice: random.Random, name: str) -> None:
        self._dice = dice
        self._wide = dice.random() < WIDE
        domain = "non-persistent" if self._rare(NON_PERSISTENT) else "persistent"
        partition = PARTITION if self._rare(PARTITIONED) else ""
        self._topic = f"{domain}://{name}{partition}"
        self._sides = (_Side(), _Side())
        self._types = {name: self._type() for name in ("s1", "s2")}
        self._messages: list[tuple[str, int]] = []
        self._requests = 0
        self._steps: list[Step] = []

    def dialogue(self, name: str) -> Dialogue:
        """Write a dialogue: open a producer and a consumer, then random steps."""
        opening: list[Callable[[int], dict[str, Any]]] = [self._producer, self._subscribe]
        self._dice.shuffle(opening)
        for one in opening:
            self._write(one)
        for one in (self._flow, self._send):
            if self._dice.random() < 0.85:
                self._write(one)
        while len(self._steps) < self._dice.randint(FEWEST_STEPS, MOST_STEPS):
            weights = [weight for _, weight in self._choices()]
            (chosen,) = self._dice.choices([one for one, _ in self._choices()], weights)
            self._write(chosen)
        return Dialogue(f"dialogue {name}", self._topic, tuple(self._steps))

    def _choices(self) -> list[tuple[Callable[[int], dict[str, Any]], int]]:
        usual = [
            (self._send, 24),
            (self._flow, 14),
            (self._ack, 12),
            (self._subscribe, 12),
            (self._redeliver, 7),
            (self._producer, 8),
            (self._seek, 6),
            (self._consumer_stats, 5),
            (self._last_message_id, 4),
            (self._close_consumer, 5),
            (self._close_producer, 4),
            (self._unsubscribe, 3),
            (self._ping, 2),
            (self._reset, 4),
        ]
        return [*usual, (self._schema, 3), (self._admin, 8)] if self._wide else usual

    def _rare(self, share: float = RARE) -> bool:
        return self._wide and self._dice.random() < share

    def _write(self, command: Callable[[int], dict[str, Any]]) -> None:
        connection = self._connection_for(command)
        self._steps.append(Step(connection, command(connection)))

    def _connection_for(self, command: Callable[[int], dict[str, Any]]) -> int:
        """Return a connection with the command's subject, if any."""
        kind = {self._send: "producers", self._close_producer: "producers"}.get(command)
        if kind is None and command in self._of_consumers:
            kind = "consumers"
        having = [at for at in (0, 1) if kind and getattr(self._sides[at], kind)]
        if having and self._dice.random() < 0.95:
            return self._dice.choice(having)
        return 0 if self._dice.random() < 0.6 else 1

    @property
    def _of_consumers(self) -> tuple[Callable[[int], dict[str, Any]], ...]:
        return (
            self._flow,
            self._ack,
            self._redeliver,
            self._seek,
            self._consumer_stats,
            self._last_message_id,
            self._close_consumer,
            self._unsubscribe,
        )

    def _request(self) -> int:
        self._requests += 1
        return self._requests

    def _type(self) -> int:
        return self._dice.choices((EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED), (28, 36, 16, 20))[0]

    def _of(self, ids: list[int], unlikely: float = 0.03) -> int:
        """Return an id of the list, rarely an unknown id."""
        if not ids or self._dice.random() < unlikely:
            return UNKNOWN_ID
        return self._dice.choice(ids)

    # -- producers ----------------------------------------------------------------------------

    def _producer(self, connection: int) -> dict[str, Any]:
        number = self._dice.choice((1, 1, 1, 2))
        does: dict[str, Any] = {"command": "PRODUCER", "topic": self._topic}
        does |= {"producer_id": number, "request_id": self._request()}
        if self._dice.random() < 0.3:
            does["producer_name"] = self._dice.choice(("fixed", "other"))
            if self._dice.random() < 0.3:
                does["epoch"] = self._dice.randint(0, 2)
                does["user_provided_producer_name"] = self._dice.random() < 0.5
        if self._dice.random() < 0.3:
            does["producer_access_mode"] = self._dice.choice((1, 2, 3))
            if self._dice.random() < 0.2:
                does["topic_epoch"] = self._dice.choice((0, 1, 9))
        if self._rare():
            does |= rare_fields.of_producer(self._dice)
        if number not in self._sides[connection].producers:
            self._sides[connection].producers.append(number)
        return does

    def _send(self, connection: int) -> dict[str, Any]:
        count = self._dice.choices((1, 2, 3), (6, 2, 2))[0]
        size = self._dice.choices((1, BATCH), (6, 4))[0]
        if size > 1 and self._rare(0.3):
            size = self._dice.choice(LARGE_BATCHES)
        first = len(self._messages)
        numbers = list(range(first, first + count))
        self._messages += [(f"m{number}", size) for number in numbers]
        does: dict[str, Any] = {"command": "SEND"}
        does["producer_id"] = self._of(self._sides[connection].producers, 0.01)
        does |= {"sequence_ids": numbers, "batch_of": size}
        does["bad_checksum"] = self._dice.random() < 0.05
        if self._dice.random() < 0.4:
            does["keys"] = [self._dice.choice(KEYS) for _ in numbers]
        if self._rare():
            does["metadata"] = rare_fields.metadata(self._dice)
        if self._rare(0.04):
            does["of_command"] = rare_fields.of_send(self._dice, first)
        return does

    def _close_producer(self, connection: int) -> dict[str, Any]:
        number = self._of(self._sides[connection].producers)
        self._sides[connection].producers = [
            one for one in self._sides[connection].producers if one != number
        ]
        does = {"command": "CLOSE_PRODUCER", "producer_id": number}
        return {**does, "request_id": self._request()}

    # -- consumers ----------------------------------------------------------------------------

    def _subscribe(self, connection: int) -> dict[str, Any]:
        number = self._dice.choice((1, 1, 2))
        name = self._dice.choice(("s1", "s1", "s1", "s2"))
        kind = self._types[name] if self._dice.random() < 0.93 else self._type()
        does: dict[str, Any] = {"command": "SUBSCRIBE", "topic": self._topic}
        does |= {"subscription": name, "subType": kind, "consumer_id": number}
        does |= {"request_id": self._request(), "consumer_name": f"c{connection}{number}"}
        does["initialPosition"] = self._dice.choice((0, 1, 1))
        if self._dice.random() < 0.12:
            does["durable"] = False
            if self._dice.random() < 0.5:
                ends = (EARLIEST, LATEST, self._some_message()[0], self._some_message()[0])
                does["start_message"] = self._dice.choice(ends)
        if self._dice.random() < 0.1:
            does["priority_level"] = self._dice.choice((0, 1))
        if self._dice.random() < 0.1:
            does["consumer_epoch"] = self._dice.choice((0, 1))
        if kind == KEY_SHARED and self._rare(0.5):
            does["keySharedMeta"] = rare_fields.key_shared(self._dice)
        if self._rare():
            does |= rare_fields.of_subscribe(self._dice)
        if number not in self._sides[connection].consumers:
            self._sides[connection].consumers.append(number)
        return does

    def _flow(self, connection: int) -> dict[str, Any]:
        permits = self._dice.choices((1, 2, 5, 100, 0), (25, 25, 25, 25, 1))[0]
        number = self._of(self._sides[connection].consumers)
        return {"command": "FLOW", "consumer_id": number, "messagePermits": permits}

    def _ack(self, connection: int) -> dict[str, Any]:
        number = self._of(self._sides[connection].consumers)
        does: dict[str, Any] = {"command": "ACK", "consumer_id": number}
        does["ack_type"] = "Cumulative" if self._dice.random() < 0.3 else "Individual"
        if self._rare(0.2):
            does["messages"] = [self._some_message()[0] for _ in range(self._dice.randint(0, 3))]
        else:
            does |= self._message_in_part(0.5)
        if self._dice.random() < 0.6:
            does["request_id"] = self._request()
        return does

    def _message_in_part(self, share: float) -> dict[str, Any]:
        """Return a message; for a batch maybe only its unacknowledged messages."""
        name, size = self._some_message()
        if size == 1 or self._dice.random() >= share:
            return {"message": name}
        left = self._dice.randint(0, (1 << size) - 1).to_bytes(-(-size // 64) * 8, "little")
        words = [left[at : at + 8] for at in range(0, len(left), 8)]
        ack_set = [int.from_bytes(word, "little", signed=True) for word in words]
        found: dict[str, Any] = {"message": name, "ack_set": ack_set}
        return found if size == BATCH else {**found, "batch_size": size}

    def _some_message(self) -> tuple[str, int]:
        if not self._messages or self._dice.random() < 0.05:
            return "unknown", 1
        return self._dice.choice(self._messages)

    def _redeliver(self, connection: int) -> dict[str, Any]:
        number = self._of(self._sides[connection].consumers)
        does: dict[str, Any] = {"command": "REDELIVER_UNACKNOWLEDGED_MESSAGES"}
        does["consumer_id"] = number
        if self._dice.random() < 0.4:
            some = {self._some_message()[0] for _ in range(self._dice.randint(1, 2))}
            does["messages"] = sorted(some)
        if self._dice.random() < 0.1:
            does["consumer_epoch"] = self._dice.choice((1, 2))
        return does

    def _seek(self, connection: int) -> dict[str, Any]:
        number = self._of(self._sides[connection].consumers)
        does: dict[str, Any] = {"command": "SEEK", "consumer_id": number}
        does["request_id"] = self._request()
        match self._dice.randrange(4):
            case 0:
                does["message_publish_time"] = self._dice.choice((0, 1, 2, AFTER_ALL_MS))
            case 1:
                does["message"] = self._dice.choice((EARLIEST, LATEST))
            case _:
                does |= self._message_in_part(0.3 if self._wide else 0.0)
        self._sides[connection].consumers = [
            one for one in self._sides[connection].consumers if one != number
        ]
        return does

    def _consumer_stats(self, connection: int) -> dict[str, Any]:
        return self._asked("CONSUMER_STATS", connection)

    def _last_message_id(self, connection: int) -> dict[str, Any]:
        return self._asked("GET_LAST_MESSAGE_ID", connection)

    def _close_consumer(self, connection: int) -> dict[str, Any]:
        return self._gone("CLOSE_CONSUMER", connection)

    def _unsubscribe(self, connection: int) -> dict[str, Any]:
        does = self._gone("UNSUBSCRIBE", connection)
        return {**does, "force": True} if self._dice.random() < 0.2 else does

    def _asked(self, command: str, connection: int) -> dict[str, Any]:
        number = self._of(self._sides[connection].consumers)
        return {"command": command, "consumer_id": number, "request_id": self._request()}

    def _gone(self, command: str, connection: int) -> dict[str, Any]:
        does = self._asked(command, connection)
        self._sides[connection].consumers = [
            one for one in self._sides[connection].consumers if one != does["consumer_id"]
        ]
        return does

    # -- the topic ----------------------------------------------------------------------------

    def _schema(self, connection: int) -> dict[str, Any]:
        does: dict[str, Any] = {"topic": self._topic, "request_id": self._request()}
        match self._dice.randrange(3):
            case 0:
                return {"command": "PARTITIONED_METADATA", **does}
            case 1:
                return {"command": "GET_SCHEMA", **does}
            case _:
                schema = rare_fields.schema(self._dice)
                return {"command": "GET_OR_CREATE_SCHEMA", **does, "schema": schema}

    def _admin(self, connection: int) -> dict[str, Any]:
        return rare_fields.admin_call(self._dice, persistent=self._topic.startswith("p"))

    # -- the connection -----------------------------------------------------------------------

    def _ping(self, connection: int) -> dict[str, Any]:
        return {"command": "PING"}

    def _reset(self, connection: int) -> dict[str, Any]:
        self._sides[connection].producers.clear()
        self._sides[connection].consumers.clear()
        return {"connection": RESET}
