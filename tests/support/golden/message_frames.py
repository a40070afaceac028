"""Message parts of recorded exchanges: run-specific ids, payloads, a delayed SEND.

Ledger ids are the server's: a replay learns them from answers and puts them into sent commands.
Entry ids are compared.
"""

from collections.abc import Iterator, Sequence

from google.protobuf.message import Message

from proto import PulsarApi_pb2 as pb
from tests.support.golden.exchange import Answer, Case, Expect, Send, Step
from tests.support.golden.masks import Difference
from tests.support.peers.frames import MAGIC, frame, split_message, with_checksum

_RANKS = {
    pb.BaseCommand.PRODUCER_SUCCESS: 1,
    pb.BaseCommand.WATCH_TOPIC_UPDATE: 2,
    pb.BaseCommand.MESSAGE: 3,
}


class LedgerIds:
    """A replay's ledger ids, by recorded id."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def learn(self, recorded: Answer, answered: Answer) -> None:
        """Learn ids from an answer about the same messages."""
        if isinstance(recorded, pb.BaseCommand) and isinstance(answered, pb.BaseCommand):
            for left, right in zip(_ids(recorded), _ids(answered), strict=False):
                self._known[left.ledgerId] = right.ledgerId

    def put_into(self, command: pb.BaseCommand) -> None:
        """Replace recorded ledgers by the replay's, in place."""
        for one in _ids(command):
            one.ledgerId = self._known.get(one.ledgerId, one.ledgerId)

    def put_into_text(self, text: str) -> str:
        """Return a recorded path or body with the ledgers of the replay."""
        for recorded, ours in self._known.items():
            text = text.replace(f'"ledgerId": {recorded},', f'"ledgerId": {ours},')
            text = text.replace(f"/ledger/{recorded}/", f"/ledger/{ours}/")
        return text


def _ids(message: Message) -> Iterator[pb.MessageIdData]:
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        for child in value if descriptor.is_repeated else (value,):
            if isinstance(child, pb.MessageIdData):
                yield child
            else:
                yield from _ids(child)


def answers_in_a_row(steps: Sequence[Step], start: int) -> list[Expect]:
    """Return the next consecutive answers of a connection."""
    found: list[Expect] = []
    for step in steps[start:]:
        if not isinstance(step, Expect) or not isinstance(step.answer, pb.BaseCommand):
            break
        if found and step.connection != found[0].connection:
            break
        found.append(step)
    return found


def is_about_messages(case: Case) -> bool:
    """Tell whether a case has producers or consumers."""
    return case.group == "messaging" or any(
        isinstance(step, Send) and step.command is not None and step.command.HasField("producer")
        for step in case.steps
    )


def rank(answer: Answer) -> int:
    """Return 0 for an answer, more for commands that a real broker sends in random order.

    Examples: the second answer to a waiting producer, a watcher's updates, and messages.
    """
    return _RANKS.get(answer.type, 0) if isinstance(answer, pb.BaseCommand) else 0


def is_message(answer: Answer) -> bool:
    """Tell messages from answers."""
    return isinstance(answer, pb.BaseCommand) and answer.type == pb.BaseCommand.MESSAGE


def payload_difference(step: int, recorded: bytes | int | None, came: bytes) -> list[Difference]:
    """Return the difference between payloads; a recorded size is among them."""
    if recorded is None:
        return []
    if isinstance(recorded, int):
        left, right = f"{recorded} bytes", f"{len(came)} bytes"
    else:
        left, right = _comparable(recorded), _comparable(came)
    return [] if left == right else [Difference(step, "payload", left, right)]


def _comparable(payload: bytes) -> str:
    """Return a payload for comparison: whole, without the time of a delayed delivery."""
    if not payload.startswith(MAGIC):
        return payload.hex()
    metadata, content = split_message(payload)
    if not metadata.HasField("deliver_at_time"):
        return payload.hex()
    metadata.ClearField("deliver_at_time")
    return f"delayed {metadata} {content.hex()}"


def delayed_send(now_ms: int, milliseconds: int) -> bytes:
    """Return a SEND whose recording holds only its delivery delay."""
    command = pb.BaseCommand(type=pb.BaseCommand.SEND)
    command.send.producer_id, command.send.sequence_id, command.send.num_messages = 1, 0, 1
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1_700_000_000_000)
    metadata.deliver_at_time = now_ms + milliseconds
    return frame(command, with_checksum(metadata, b"later"))
