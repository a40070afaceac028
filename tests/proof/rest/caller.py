"""The calls of a pair of servers, and their observations."""

import http.client
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import requests

from benchmarks.controlled_process import ControlledProcess
from tests.proof.rest.cases import Call, Kind
from tests.proof.rest.examples import NAMESPACE, TOPIC, make_examples, takes_away

MESSAGES = 20
_PATIENCE_SECONDS = 60.0
_TURNS_KEPT = 20
_IDLE_SECONDS = 20.0
"""Servers close connections idle for 30 s, and calls of the other server may take as long."""


@dataclass
class Seen:
    """All observations in a profile.

    Attributes:
        kinds: Calls by their kind.
        statuses: Answers by their status; 0: without an answer.
        done: Described calls, answered 2xx or 3xx, by kind.
        operations: Answers of each operation by status.
        failed: Missing answers, and answers of 500 and more, except 501 of unimplemented
            operations.
        undescribed: Answers with an undescribed status.
        turns: The longest turns, with their calls and stacks: milliseconds of processor time.
        memory: Resident bytes after each block.
        refused: Examples that could not be made again.
        received: Messages exchanged at the end.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    operations: dict[str, Counter[int]] = field(default_factory=dict)
    failed: list[dict[str, Any]] = field(default_factory=list)
    undescribed: Counter[str] = field(default_factory=Counter)
    turns: list[tuple[float, str, str]] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    received: int = 0

    @property
    def calls(self) -> int:
        return sum(self.kinds.values())


class Caller:
    """Makes calls of a broker and its proxy; mutable state: the observations."""

    def __init__(self, servers: ControlledProcess) -> None:
        self._servers = servers
        self._session = requests.Session()
        self._session.trust_env = False
        self._urls = (servers.ready["broker"], servers.ready["proxy"])
        self._connections = [_connection(url) for url in self._urls]
        self._before: dict[int, str] = {}
        self._used = [0.0, 0.0]
        self.seen = Seen()

    def described(self, role: int) -> dict[str, Any]:
        """Return the description by the broker (0) or the proxy (1)."""
        found: dict[str, Any] = self._session.get(f"{self._urls[role]}/openapi.json").json()
        return found

    def call_all(self, block: Iterable[tuple[int, Call]]) -> None:
        """Make calls of the broker (0) or the proxy (1), after making the examples anew."""
        self._anew()
        for role, call in block:
            self._call(role, call)
        self.seen.memory.append(self._servers.ask("memory")["bytes"])

    def end(self) -> None:
        """Request the operations that must still be served."""
        self._anew()
        found = self._servers.ask(
            "exchange", topic=f"{TOPIC}-after", subscription="billing", messages=MESSAGES
        )
        listed = self._session.get(f"{self._urls[1]}/admin/v2/persistent/{NAMESPACE}").json()
        self.seen.received = found["received"] if f"{TOPIC}-after" in listed else 0
        self._session.close()
        for one in self._connections:
            one.close()

    def _anew(self) -> None:
        self._before.clear()
        for one in self._connections:
            one.close()  # possibly idle for longer than a server's timeout
        for url in self._urls:
            self._session.delete(f"{url}/admin/v2/floodgate/faults")
        self.seen.refused.update(make_examples(self._session, self._urls[0], anew=True))
        self._servers.ask("fill", topic=TOPIC, messages=MESSAGES)
        self._servers.ask("turn")

    def _call(self, role: int, call: Call) -> None:
        seen = self.seen
        status, text = self._answer(role, call)
        turn = self._servers.ask("turn")
        found = (turn["millis"], str(call), turn["explained"])
        seen.turns = sorted([*seen.turns, found], reverse=True)[:_TURNS_KEPT]
        seen.kinds[call.kind.name] += 1
        seen.statuses[status] += 1
        seen.operations.setdefault(call.label, Counter())[status] += 1
        if call.kind is not Kind.REFUSED and 200 <= status < 400:
            seen.done[call.kind.name] += 1
        described = str(status) in call.answers
        if status < 100 or (status >= 500 and not described):
            how = {"label": call.label, "kind": call.kind.name, "call": str(call)}
            how["before"] = self._before.get(role, "nothing")
            seen.failed.append({"status": status, "text": text[:300], **how})
        elif not described:
            seen.undescribed[f"{call.label}: {status}"] += 1
        self._before[role] = f"{call} {dict(call.headers)}: {status}"
        if 200 <= status < 300 and takes_away(call.label):
            make_examples(self._session, self._urls[0])
            self._servers.ask("turn")

    def _answer(self, role: int, call: Call) -> tuple[int, str]:
        connection = self._connections[role]
        now = time.monotonic()
        if now - self._used[role] > _IDLE_SECONDS:
            connection.close()
        self._used[role] = now
        try:
            connection.request(call.method, call.path, call.body, dict(call.headers))
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return 0, repr(error)


def phrase(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}" if status else "no answer"


def _connection(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=_PATIENCE_SECONDS)
