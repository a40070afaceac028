"""Compares a schedule with a scripted broker's record of an official client."""

from __future__ import annotations

import json
import re
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import proto.PulsarApi_pb2 as pb
from client.discovery.families import schedule_of
from client.discovery.schedule import (
    CloseWatch,
    DiscoveryOptions,
    GiveUp,
    ListTopics,
    LookUpPattern,
    OpenWatch,
    Unanswered,
)
from proto.topic_hash import topics_hash
from tests.support.clocks.manual_clock import ManualClock
from tests.support.discovery.scripts import OPERATION_SECONDS, PATTERN, SCRIPTS

if TYPE_CHECKING:
    from client.discovery.schedule import Action

GOLDEN = Path(__file__).parents[2] / "golden" / "discovery"
LATE_SECONDS = 0.2
"""Tolerance in seconds between a schedule and a client on a busy machine."""
LATE_BEHIND_DOWNTIME_SECONDS = 2.0
"""Tolerance while the broker is unreachable: the client's delays are random."""
_STEP_SECONDS = 0.005
_BASE = "persistent://public/default/"
_REQUESTS = ("list", "lookup", "watch", "close watch")


def recorded(client: str) -> dict[str, list[dict[str, Any]]]:
    """Return the records of a client, by script."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (GOLDEN / f"{client}.jsonl").read_text(encoding="utf-8").splitlines():
        seen = json.loads(line)
        found.setdefault(seen["script"], []).append(seen)
    return found


class Replay:
    """A course of events: the schedule's requests must match the client's in order and time.

    Args:
        family: The schedule's.
        name: The script's.
        seen: The broker's record of the client.
    """

    def __init__(self, family: str, name: str, seen: list[dict[str, Any]]) -> None:
        self._script = SCRIPTS[name]
        self._seen = with_losses(seen)
        self._clock = ManualClock(0.0)
        self._due: deque[tuple[float, Action]] = deque()
        self._topics = set(self._script.topics)
        self._own: set[str] = set()
        self._down = self._gave_up = self._subscribed = False
        self._watch_open = False
        self._pending: str | None = None
        self._ran_out: list[tuple[float, str]] = []
        self._client = "java" if family.startswith("java") else family
        options = DiscoveryOptions(
            pattern=PATTERN,
            properties={"team": "red"},
            period_seconds=self._script.period_seconds,
            operation_timeout_seconds=OPERATION_SECONDS,
        )
        self.schedule = schedule_of(family, options, self._clock, self._perform, lambda: 0.5)

    def run(self) -> None:
        """Replay the record.

        Raises:
            AssertionError: The schedule made another request, or at another time.
        """
        for seen in self._seen:
            at, what = seen["at"], seen["what"]
            if at is None:
                self._told(seen)
                continue
            if what == "list" and not self.schedule.listings:
                self.schedule.start()
            if what == "lookup" and not self._subscribed:
                self._subscribe(at)
            if what in _REQUESTS:
                if not seen.get("pattern", "").startswith("^"):  # a topic's partitions
                    self._requested(at, seen)
            else:
                self._until(at)
                self._told(seen)
        assert not self._due, f"asked for too much: {self._due}"

    # -- time ---------------------------------------------------------------------------------

    def _until(self, at: float) -> None:
        while self._clock.now() + _STEP_SECONDS <= at:
            self._step()

    def _step(self) -> None:
        self._clock.advance(_STEP_SECONDS)
        while self._ran_out and self._ran_out[0][0] <= self._clock.now():
            _, kind = self._ran_out.pop(0)
            if self._pending == kind:
                self._pending = None
                if kind == "list":
                    self.schedule.list_failed(Unanswered.TIMED_OUT)
                else:
                    self.schedule.watch_failed(Unanswered.TIMED_OUT)

    def _times_out(self, kind: str) -> None:
        """Time a request out; Java checks the age of its requests periodically."""
        self._pending = kind
        now, seconds = self._clock.now(), float(OPERATION_SECONDS)
        end = now + seconds
        if self._client == "java":
            end = -(-end // seconds) * seconds
        self._ran_out.append((end, kind))

    # -- the schedule's requests --------------------------------------------------------------

    def _perform(self, action: Action) -> None:
        if isinstance(action, GiveUp):
            self._gave_up = True
        elif self._down and isinstance(action, ListTopics):
            self.schedule.list_failed(Unanswered.UNREACHABLE)
        elif self._down and isinstance(action, OpenWatch):
            self.schedule.watch_failed(Unanswered.UNREACHABLE)
        else:
            self._due.append((self._clock.now(), action))

    def _requested(self, at: float, seen: dict[str, Any]) -> None:
        """Wait for the schedule's equal request and give the same answer."""
        what, behind_downtime = seen["what"], any(e == "down" for _, e in self._script.events)
        late = LATE_BEHIND_DOWNTIME_SECONDS if behind_downtime else LATE_SECONDS
        if what == "watch" and self._due and self._looked_up(self._due[0][1]):
            pass  # an action's second half
        else:
            while not self._due:
                assert self._clock.now() < at + late, f"{at}: asked too late, or never: {seen}"
                self._step()
        asked_at, action = self._due[0]
        assert abs(asked_at - at) <= late, f"{at}: asked {action} at {asked_at:.2f}"
        wanted = _wanted(seen)
        assert _fields(action, what) == wanted, f"{at}: asked {action}, not {wanted}"
        self._until(at)
        self._answer(what, action, seen.get("answer", ""))

    def _looked_up(self, action: Action) -> bool:
        return isinstance(action, OpenWatch) and not action.again

    def _answer(self, what: str, action: Action, answer: str) -> None:
        if what == "lookup" and isinstance(action, OpenWatch) and answer == "answer":
            if self._script.watchers:
                return  # WATCH_TOPIC_LIST follows
            answer = "NotAllowedError"
        self._due.popleft()
        if isinstance(action, LookUpPattern | CloseWatch):
            return
        listing = isinstance(action, ListTopics)
        if answer == "silence":
            self._times_out("list" if listing else "watch")
        elif answer != "answer":
            code = pb.ServerError.Value(answer)
            (self.schedule.list_failed if listing else self.schedule.watch_failed)(code)
        else:
            self._own = self._matching()
            if listing:
                self.schedule.listed(self._own_hash())
            else:
                self._watch_open = True
                self.schedule.watch_opened(self._own_hash())

    # -- events -------------------------------------------------------------------------------

    def _told(self, seen: dict[str, Any]) -> None:
        what = seen["what"]
        if what == "connect":
            self._down = False
            script = self._script
            self.schedule.connected(watches=script.watchers, reconciles=script.reconcile)
        elif what == "lost":
            self._lose()
        elif what == "program" and seen["says"] == "subscribed" and not self._subscribed:
            self._subscribe(seen["at"])
        elif what == "program" and seen["says"].startswith("refused"):
            while not self._gave_up:
                assert self._clock.now() < seen["at"] + LATE_SECONDS, "it does not give up"
                self._step()
        elif what == "event":
            self._event(*seen["event"].partition(" ")[::2])

    def _subscribe(self, at: float) -> None:
        self._until(at)
        self._subscribed = True
        self.schedule.subscribed()

    def _lose(self) -> None:
        self._watch_open = False
        kind, self._pending = self._pending, None
        self.schedule.connection_lost()
        if kind == "list":
            self.schedule.list_failed(Unanswered.DISCONNECTED)

    def _event(self, verb: str, name: str) -> None:
        if verb.startswith("create"):
            self._topics.add(name)
        elif verb.startswith("delete"):
            self._topics.discard(name)
        elif verb == "down":
            self._down = True
            self._lose()
        elif verb == "up":
            self._down = False
        elif verb == "drop":
            self._lose()
        elif verb == "close":
            self.schedule.close()
        if self._watch_open and verb in ("create", "delete"):
            before = self._own
            self._own = before | {_BASE + name} if verb == "create" else before - {_BASE + name}
            fits = self._own == self._matching()
            self.schedule.watch_updated(self._own_hash(), fits=fits)

    def _matching(self) -> set[str]:
        return {_BASE + name for name in self._topics if re.match("t-", name)}

    def _own_hash(self) -> str:
        return topics_hash(self._own)


def _wanted(seen: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a recorded request."""
    what = seen["what"]
    if what == "list":
        return {key: seen.get(key) for key in ("pattern", "hash", "properties")}
    if what == "watch":
        return {"pattern": seen["pattern"], "hash": seen["hash"]}
    return {"pattern": seen["topic"]} if what == "lookup" else {}


def _fields(action: Action, what: str) -> dict[str, Any]:
    """Return the equal fields of an action of a kind."""
    if isinstance(action, ListTopics) and what == "list":
        properties = dict(action.properties) or None
        return {"pattern": action.pattern, "hash": action.topics_hash, "properties": properties}
    if isinstance(action, OpenWatch) and what == "watch":
        return {"pattern": action.pattern, "hash": action.topics_hash}
    if isinstance(action, OpenWatch | LookUpPattern) and what == "lookup":
        return {"pattern": action.pattern}
    return {} if isinstance(action, CloseWatch) and what == "close watch" else {"not": what}


def with_losses(seen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a record with client-made losses, 0.1 s earlier."""
    found: list[dict[str, Any]] = []
    connected = False
    for one in seen:
        if one["what"] == "connect" and connected:
            lost = {"at": round(one["at"] - 0.1, 2), "what": "lost"}
            place = len(found)
            while (
                place and found[place - 1]["at"] is not None and found[place - 1]["at"] > lost["at"]
            ):
                place -= 1
            found.insert(place, lost)
        connected = connected or one["what"] == "connect"
        if one.get("event") in ("drop", "down"):
            connected = False
        found.append(one)
    return found
