"""Recorded admin REST calls about messages, with the wire traffic between them.

Rows keep the recorded order, because each depends on its predecessors. A change may take effect
later (topic policies travel through a system topic), so a GET is retried for a while until its
answer is the recorded one.

Masked, as named in the recording: moments, ledger ids, temporary addresses, the owner's port, the
client's version, the order of names; the words of a 500 or of a page.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden.connection import Place, Replay
from tests.support.golden.exchange import Case, Deviation, load_lines, parse_row
from tests.support.golden.masks import Difference, complaint
from tests.support.golden.message_frames import LedgerIds
from tests.support.golden.rest import Call, RestAnswer, ask, call_of
from tests.support.golden.targets import FOREIGN_BROKER, golden_broker, prepare_namespace

AGAIN_SECONDS = 0.05
PATIENCE_SECONDS = 10.0
"""Time for a GET to reach the recorded answer or its admitted deviation."""
_FOREIGN_WAIT_SECONDS = {"/expireMessages": 0.5, "/all_subscription/": 0.5}
"""Pause after calls with a delayed effect that the next call needs."""
_MOMENT = re.compile(r"(Timestamp|TimeStamp|Time|Date)$")
_LEDGER = frozenset(
    {
        "ledgerId",
        "cursorLedger",
        "cursorsLedgerId",
        "CompactedTopicLedger",
        "cursorLedgerLastEntry",  # how often a cursor was written, at most once a second
    }
)
_POSITIONS = frozenset(
    {
        "markDeletePosition",
        "readPosition",
        "lastConfirmedEntry",
        "individuallyDeletedMessages",
        "firstMessageId",
        "lastMessageId",
    }
)
_OF_THE_MOMENT = frozenset(
    {
        "address",
        "connectedSince",
        "ownerBroker",
        "clientVersion",
        "brokerUrl",
        "httpUrl",
        "nativeUrl",
    }
)
_FIRST_EPOCH = 1_000_000_000_000
CONSUMER, PRODUCER, LATER = "consumer", "producer", "later"
_CONNECTION_OF = {
    "msg wire ten messages": PRODUCER,
    "msg wire consume and acknowledge three": CONSUMER,
    "msg wire acknowledge m0, m1 and m3": CONSUMER,
}
"""Connections of groups; all other groups share a third."""
_LEAVE_BEFORE = frozenset({"msg stats after they left", "msg partitioned stats"})


def load_rows(path: Path) -> list[Call | Case]:
    """Read the recording: calls, and exchanges on the wire."""
    return [_row(row) for row in load_lines(path)]


def _row(row: dict[str, Any]) -> Call | Case:
    if "exchange" in row:
        # The group's note: messages may come beside answers.
        return Case(f"messaging/{row['case']}", "broker", tuple(map(parse_row, row["exchange"])))
    call, headers = call_of(row), tuple(sorted(row.get("headers", {}).items()))
    return replace(call, recorded=replace(call.recorded, pulsar_headers=headers))


def row_name(row: Call | Case) -> str:
    return row.name.removeprefix("messaging/")


def replay(
    rows: Sequence[Call | Case],
    namespace: str,
    folder: Path,
    admitted: Mapping[tuple[str, str], Deviation],
) -> dict[str, list[Difference]]:
    """Replay calls in order on a fresh broker; return each row's differences.

    Args:
        rows: As recorded.
        namespace: The recorded one.
        folder: For the broker's files.
        admitted: The deviations.
    """
    with golden_broker(folder) as broker:
        if not broker.web:
            pytest.skip("FLOODGATE_GOLDEN_WEB names no web port to replay this against.")
        prepare_namespace(broker, namespace)
        place = Place(broker.address, broker.address, broker.web)
        return dict(play(rows, place, admitted))


def play(
    rows: Sequence[Call | Case], place: Place, admitted: Mapping[tuple[str, str], Deviation]
) -> Iterator[tuple[str, list[Difference]]]:
    """Play every row in order; yield its name and differences.

    Args:
        rows: As recorded.
        place: The servers.
        admitted: The deviations.
    """
    ledgers = LedgerIds()
    connections: dict[str, Replay] = {}
    with ExitStack() as exits:
        for row in rows:
            name = row_name(row)
            if name in _LEAVE_BEFORE:
                exits.close()
                connections.clear()
            if isinstance(row, Call):
                yield name, _asked(row, place, ledgers, admitted.get((name, "broker")))
                continue
            where = _CONNECTION_OF.get(name, LATER)
            if where not in connections:
                connections[where] = Replay(row, place, exits, ledgers)
            yield name, connections[where].play(row)


def _asked(
    call: Call, place: Place, ledgers: LedgerIds, deviation: Deviation | None
) -> list[Difference]:
    request = replace(
        call.request,
        path=ledgers.put_into_text(call.request.path),
        body=call.request.body and ledgers.put_into_text(call.request.body),
    )
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = rest_differences(call, ask(place.web, request))
        if FOREIGN_BROKER:
            waits = [one for part, one in _FOREIGN_WAIT_SECONDS.items() if part in request.path]
            time.sleep(max(waits, default=0.0))
        as_admitted = not complaint(found, deviation)
        if as_admitted or request.method != "GET" or time.monotonic() > end:
            return found
        time.sleep(AGAIN_SECONDS)


def rest_differences(call: Call, answered: RestAnswer) -> list[Difference]:
    """Return every part of an answer that differs after the masks."""
    recorded = call.recorded
    pairs = [
        ("status", recorded.status, answered.status),
        ("type", recorded.content_type, answered.content_type),
        ("headers", _headers(recorded), _headers(answered)),
    ]
    if recorded.status != 500 and not (recorded.content_type or "").startswith("text/"):
        pairs += _body_pairs(call, recorded.body, answered.body)
    return [Difference(0, what, str(one), str(other)) for what, one, other in pairs if one != other]


def _headers(answer: RestAnswer) -> dict[str, str]:
    """Return Pulsar's own headers, without the ledger of the message's id."""
    return {
        name: re.sub(r"^\d+:", "<ledger>:", value) if name == "X-Pulsar-Message-ID" else value
        for name, value in answer.pulsar_headers
    }


def _body_pairs(call: Call, recorded: str, answered: str) -> list[tuple[str, Any, Any]]:
    left, right = _flat(call, recorded), _flat(call, answered)
    return [
        (name, left.get(name, "(absent)"), right.get(name, "(absent)"))
        for name in sorted(left.keys() | right.keys())
    ]


def _flat(call: Call, body: str) -> dict[str, str]:
    try:
        value = json.loads(body)
    except ValueError:
        return {"body": body}
    return dict(_leaves("body", _masked("", value)))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _leaves(f"{path}.{key}", one)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        yield f"{path}.length", str(len(value))
        for index, one in enumerate(value):
            yield from _leaves(f"{path}[{index}]", one)
    else:
        yield path, json.dumps(value, ensure_ascii=False)


def _masked(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _masked(name, one) for name, one in value.items()}
    if isinstance(value, list):
        items = [_masked(key, one) for one in value]
        scalar = not any(isinstance(one, dict | list) for one in items)
        return sorted(items, key=str) if scalar else items
    return _masked_scalar(key, value)


def _masked_scalar(key: str, value: Any) -> Any:
    if key in _OF_THE_MOMENT or (key == "metadata" and isinstance(value, str)):
        return f"<{key}>"
    if _is_moment(key, value):
        return "<moment>"
    if key in _LEDGER and value != -1:
        return "<ledger>"
    if key in _POSITIONS and isinstance(value, str):
        return re.sub(r"\d+:", "<ledger>:", value)
    return value


def _is_moment(key: str, value: Any) -> bool:
    if key != "timestamp" and not _MOMENT.search(key):
        return False
    if isinstance(value, str):
        return re.match(r"\d{4}-\d\d-\d\dT", value) is not None
    return isinstance(value, int) and value >= _FIRST_EPOCH
