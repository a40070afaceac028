"""The golden recording: a real Apache Pulsar's answers, read into cases and steps.

A recording is a file of JSON lines under ``tests/golden``. Each line is a case, and its
``exchange`` lists rows in order: ``["C", text]`` or ``["C", words, hex]`` is sent by the client,
``["S", text]`` by the server. Text is protobuf text format of ``BaseCommand``, or ``(nothing)``, or
``(closed)``; behind ``+payload`` stand the bytes behind a MESSAGE, or their number. ``["REST",
request, status]`` is a call of the broker's admin in between, and ``["second connection", row]``,
or the row's parts behind those words, happens on another connection. ``["NOTE", text]`` marks
messages that were not recorded singly. ``["first connection", "closes"]`` is an unrecorded close.
Files named ``broker*`` are replayed against the broker, ``proxy*`` against the proxy; dropping in a
file adds a recording.

Comparison is in ``golden_masks``, sockets in ``golden_connection``, servers in ``server_process``.
"""

from __future__ import annotations

import enum
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import Message

from proto import PulsarApi_pb2 as pb

RECORDED_BROKER = "127.0.0.1:6650"
"""The recorded broker's address; replaced by the real address in sent rows."""

CONNECTED_WITHIN_EXCHANGE = frozenset({"twice", "ping"})
"""Cases of group ``connect`` that, like all other groups, began after their own CONNECT."""


class Silence(enum.Enum):
    NOTHING = "(nothing)"
    CLOSED = "(closed)"


Answer = pb.BaseCommand | Silence

_SILENCES = {
    "(nothing)": Silence.NOTHING,
    "(closed)": Silence.CLOSED,
    "(closed: the rest was not sent)": Silence.CLOSED,
}
_DELAYED_SEND = re.compile(r"SEND deliver in (?P<seconds>[\d.]+) s")
_PAYLOAD_SIZE = re.compile(r"(?P<size>\d+) bytes")


@dataclass(frozen=True)
class Send:
    """A sent command.

    Attributes:
        command: None when raw bytes were recorded.
        raw: The recorded bytes, empty when a command was recorded.
        one_byte_at_a_time: Whether each byte has its own write.
        connection: Index among the case's connections.
        delivered_in_ms: Delay of a SEND whose time is set at replay.
    """

    command: pb.BaseCommand | None
    raw: bytes = b""
    one_byte_at_a_time: bool = False
    connection: int = 0
    delivered_in_ms: int = 0


@dataclass(frozen=True)
class Expect:
    """An expected answer.

    Attributes:
        answer: The command, or a silence.
        connection: Index among the case's connections.
        payload: Bytes behind the command, or their number; None if not recorded.
    """

    answer: Answer
    connection: int = 0
    payload: bytes | int | None = None


@dataclass(frozen=True)
class Rest:
    """A call of the broker's admin REST.

    Attributes:
        method: ``GET`` and so on.
        path: With query, as on the wire.
        body: None for no body.
        status: The expected status.
    """

    method: str
    path: str
    body: str | None
    status: int


@dataclass(frozen=True)
class Note:
    """Messages on the case's connections that were not recorded singly."""


@dataclass(frozen=True)
class Close:
    """The client closes a connection."""

    connection: int = 0


Step = Send | Expect | Rest | Note | Close


@dataclass(frozen=True)
class Case:
    """A recorded exchange.

    Attributes:
        name: ``group/name`` as recorded.
        target: ``broker`` or ``proxy``, from the file's name.
        steps: Sent rows and expected answers, in order.
    """

    name: str
    target: str
    steps: tuple[Step, ...]

    @property
    def group(self) -> str:
        """The part of the name before the slash."""
        return self.name.partition("/")[0]

    @property
    def without_messages(self) -> bool:
        """True if messages come that were not recorded."""
        return any(isinstance(step, Note) for step in self.steps)

    @property
    def connects_first(self) -> bool:
        """True if an unrecorded CONNECT preceded the exchange."""
        return self.group != "connect" or self.name.partition("/")[2] in CONNECTED_WITHIN_EXCHANGE


@dataclass(frozen=True)
class Deviation:
    """An intended difference, with its reason.

    Attributes:
        case: Name of the case.
        target: ``broker`` or ``proxy``.
        fields: Exactly the differing fields, named as ``golden_masks.Difference.field``.
        reason: For Floodgate's different answer.
    """

    case: str
    target: str
    fields: frozenset[str]
    reason: str


def load_cases(directory: Path, groups: frozenset[str]) -> list[Case]:
    """Read every recording in ``directory`` and keep the exchanges of ``groups``.

    Raises:
        ValueError: Unknown file name, row or command.
    """
    return [
        case for path in sorted(directory.glob("*.jsonl")) for case in _read_cases(path, groups)
    ]


def _read_cases(path: Path, groups: frozenset[str]) -> Iterator[Case]:
    target = next((name for name in ("broker", "proxy") if path.name.startswith(name)), None)
    if target is None:
        raise ValueError(f"{path.name}: a recording's name begins with 'broker' or 'proxy'")
    for row in load_lines(path):
        if "exchange" in row and row["case"].partition("/")[0] in groups:
            steps = tuple(parse_row(each) for each in row["exchange"])
            yield Case(name=row["case"], target=target, steps=steps)


def load_lines(path: Path) -> list[dict[str, Any]]:
    """Read a recording's lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def load_deviations(path: Path) -> dict[tuple[str, str], Deviation]:
    """Read the list of meant differences, by (case, target).

    Raises:
        ValueError: An entry gives no reason or no field, or a case is named twice.
    """
    deviations: dict[tuple[str, str], Deviation] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("deviation", []):
        deviation = Deviation(
            case=entry["case"],
            target=entry["target"],
            fields=frozenset(entry["fields"]),
            reason=entry["reason"].strip(),
        )
        key = (deviation.case, deviation.target)
        if not deviation.reason or not deviation.fields:
            raise ValueError(f"{path.name}: {key} needs a reason and at least one field")
        if key in deviations:
            raise ValueError(f"{path.name}: {key} is named twice")
        deviations[key] = deviation
    return deviations


def parse_row(row: list[Any]) -> Step:
    """Parse an exchange's row as a step.

    Raises:
        ValueError: Unknown form.
    """
    if row[:1] == ["second connection"]:
        return _on_the_second(row[1] if isinstance(row[1], list) else row[1:])
    match row:
        case ["C", text]:
            return _send(text)
        case ["C", words, digits]:
            return Send(None, bytes.fromhex(digits), "one byte at a time" in words)
        case ["S", text]:
            return _expect(text)
        case ["REST", request, status]:
            return parse_request(request, int(status))
        case ["NOTE", _] | ["first connection", "closes"]:
            return Note() if row[0] == "NOTE" else Close()
    raise ValueError(f"a row that is neither ['C', ...] nor ['S', text]: {row}")


def _send(text: str) -> Send:
    if delay := _DELAYED_SEND.fullmatch(text):
        return Send(None, delivered_in_ms=int(float(delay["seconds"]) * 1_000))
    return Send(parse_command(text))


def _expect(text: str) -> Expect:
    command, _, payload = text.partition(" +payload ")
    if size := _PAYLOAD_SIZE.fullmatch(payload):
        return Expect(parse_command(command), payload=int(size["size"]))
    behind = bytes.fromhex(payload) if payload else None
    return Expect(_SILENCES.get(text) or parse_command(command), payload=behind)


def _on_the_second(row: list[Any]) -> Step:
    step = parse_row(row)
    if not isinstance(step, Send | Expect):
        raise ValueError(f"a row that cannot be of the second connection: {row}")  # noqa: TRY004 - the row is wrong, not a type
    return replace(step, connection=1)


def parse_request(text: str, status: int) -> Rest:
    """Parse a call from ``METHOD path`` or ``METHOD path body``."""
    method, path, *body = text.split(" ", 2)
    return Rest(method, path, body[0] if body else None, status)


def parse_command(text: str) -> pb.BaseCommand:
    """Parse a command from protobuf text format.

    Raises:
        ValueError: The text is not a BaseCommand.
    """
    try:
        return text_format.Parse(text, pb.BaseCommand())
    except text_format.ParseError as error:
        raise ValueError(f"not a BaseCommand in text format: {text[:120]} ({error})") from error


def with_address(message: Message, old: str, new: str) -> None:
    """Replace the address ``old`` by ``new`` in every text of ``message``, in place."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for child in value if descriptor.is_repeated else (value,):
                with_address(child, old, new)
        elif descriptor.type == descriptor.TYPE_STRING and not descriptor.is_repeated:
            setattr(message, descriptor.name, _replace_address(value, old, new))


def _replace_address(text: str, old: str, new: str) -> str:
    return re.sub(re.escape(old) + r"(?!\d)", new, text)
