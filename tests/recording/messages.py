"""Record a real broker's answers to the calls and exchanges of a file, in place.

    python -m tests.recording.messages FILE --broker HOST:PORT --web HOST:PORT

Each line of the file has ``case`` and either ``request`` or ``exchange`` with its rows ``C`` and
``REST``; earlier answers in the line are replaced. No server is started.
"""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from tests.support.golden.connection import GoldenConnection, handshake
from tests.support.golden.exchange import RECORDED_BROKER, Send, Silence, parse_request, parse_row
from tests.support.golden.rest import RECORDED_WEB, ask

QUIET_SECONDS = 1.0
"""Silence after which no further message is expected."""
_PATIENCE_SECONDS = 20.0
_WAITS_FOR = {"/compaction": "RUNNING"}
"""A GET is repeated while its answer has this word."""
_TAKES_EFFECT_SECONDS = 0.7
"""Policies of topics travel through a system topic; a change has its effect later."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--broker", required=True)
    parser.add_argument("--web", required=True)
    asked = parser.parse_args()
    rows = [json.loads(line) for line in asked.file.read_text(encoding="utf-8").splitlines()]
    with ExitStack() as exits:
        connection: GoldenConnection | None = None
        for row in rows:
            if "request" in row:
                row |= _called(row["request"], asked.web)
                continue
            if connection is None:
                host, _, port = asked.broker.rpartition(":")
                connection = exits.enter_context(GoldenConnection(host, int(port)))
                handshake(connection)
            row["exchange"] = list(_exchanged(row["exchange"], connection, asked.web))
    text = "".join(json.dumps(row) + "\n" for row in rows)
    text = text.replace(asked.broker, RECORDED_BROKER).replace(asked.web, RECORDED_WEB)
    asked.file.write_text(text, encoding="utf-8")


def _called(request: str, web: str) -> dict[str, Any]:
    call = parse_request(request, 0)
    waits = [word for end, word in _WAITS_FOR.items() if call.path.endswith(end)]
    end = time.monotonic() + _PATIENCE_SECONDS
    answer = ask(web, call)
    if call.method != "GET" and "/persistent/" in call.path:
        time.sleep(_TAKES_EFFECT_SECONDS)
    while any(word in answer.body for word in waits) and time.monotonic() < end:
        time.sleep(0.2)
        answer = ask(web, call)
    found: dict[str, Any] = {"status": answer.status, "body": answer.body}
    return found | ({"type": answer.content_type} if answer.content_type else {})


def _exchanged(
    rows: list[list[Any]], connection: GoldenConnection, web: str
) -> Iterator[list[Any]]:
    for row in rows:
        if row[0] == "REST":
            yield [*row[:2], str(ask(web, parse_request(row[1], 0)).status)]
        elif row[0] == "C":
            step = parse_row(row)
            assert isinstance(step, Send)
            connection.send(step)
            yield row
            yield from _answers(connection)


def _answers(connection: GoldenConnection) -> Iterator[list[str]]:
    seconds = _PATIENCE_SECONDS
    while not isinstance(answer := connection.receive(seconds), Silence):
        behind = f" +payload {connection.payload.hex()}" if connection.payload else ""
        yield ["S", text_format.MessageToString(answer, as_one_line=True) + behind]
        seconds = QUIET_SECONDS
    if answer is Silence.CLOSED:
        yield ["S", answer.value]


if __name__ == "__main__":
    main()
