"""Comparison of two answers: all fields must agree, after masking run-specific values.

The recording names the masks: server version, producer names, ledger and entry ids, dates, the
client's end of a connection, the order of topic names, the proxy's ``reqId``, and the words of Java
exceptions. Ports need no mask: the broker's address is substituted beforehand.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from proto import PulsarApi_pb2 as pb
from tests.support.golden.exchange import Answer, Deviation, Silence

JAVA_EXCEPTION = "<exception>"
"""Stands for the words of a Java exception."""

_MASKED_FIELDS = frozenset({"server_version", "producer_name", "address", "connectedSince"})
_LEFT_OUT_FIELDS = frozenset({"highest_sequence_id"})
"""A real broker sends stale values of a reused object."""
_NO_LEDGER = (1 << 64) - 1
_UNORDERED_FIELDS = frozenset({"topics", "topic", "new_topics", "deleted_topics"})
_TEXT_MASKS = (
    (re.compile(r'"reqId":-?\d+'), '"reqId":<id>'),
    # The client end's port varies from run to run. The server end is compared.
    (re.compile(r'"local":"[^"]*"'), '"local":"<address>"'),
    # A consumer's connection, in words.
    (re.compile(r"address=\[.*\]"), "address=<address>"),
    (re.compile(r"\bstandalone-\d+-\d+\b"), "<producer_name>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?"), "<date>"),
)
_PROXY_ERROR = re.compile(r'^(?P<head>\{"errorMsg":")(?P<text>.*)(?P<tail>","reqId":.*\})$', re.S)
_JAVA_NAME = re.compile(
    r"^(java|javax|org\.apache)\.(?!pulsar\.broker\.service\.)[\w.$]+(Exception|Error)\b"
)
"""Except exceptions of producers and schemas: their words are a broker's own answers."""


@dataclass(frozen=True)
class Difference:
    """A differing field.

    Attributes:
        step: Index of the answer among the case's recorded rows.
        field: Dotted path such as ``lookupTopicResponse.error``; ``kind`` when the kind of answer
            differs.
        recorded: The masked recorded value, ``(absent)`` when unset.
        answered: The masked received value.
    """

    step: int
    field: str
    recorded: str
    answered: str

    def __str__(self) -> str:
        was = f"row {self.step}: {self.field} was recorded as {self.recorded}"
        return f"{was}, came as {self.answered}"


def differences(step: int, recorded: Answer, answered: Answer) -> list[Difference]:
    """Return every field in which two answers differ after the masks.

    Presence counts: a field sent with its default value differs from an absent field.
    """
    if _kind(recorded) != _kind(answered):
        return [Difference(step, "kind", _kind(recorded), _kind(answered))]
    if isinstance(recorded, Silence) or isinstance(answered, Silence):
        return []
    left, right = masked_fields(recorded), masked_fields(answered)
    return [
        Difference(step, path, left.get(path, "(absent)"), right.get(path, "(absent)"))
        for path in sorted(left.keys() | right.keys())
        if not _agree(path, left, right)
    ]


def _agree(path: str, recorded: Mapping[str, str], answered: Mapping[str, str]) -> bool:
    left, right = recorded.get(path), answered.get(path)
    if left is not None and right and path.endswith("message") and JAVA_EXCEPTION in left:
        # The code, the frame around the text and the text's presence must agree, not Java's words.
        before, after = left.split(JAVA_EXCEPTION, 1)
        return (
            right.startswith(before) and right.endswith(after) and len(right) > len(before + after)
        )
    return left == right


def _kind(answer: Answer) -> str:
    if isinstance(answer, Silence):
        return answer.value
    return pb.BaseCommand.Type.Name(answer.type)


def masked_fields(command: pb.BaseCommand) -> dict[str, str]:
    """Return every set field by its path, with run-specific values masked."""
    return dict(_flatten("", command))


def _flatten(prefix: str, message: Message) -> Iterator[tuple[str, str]]:
    for descriptor, value in message.ListFields():
        path = f"{prefix}{descriptor.name}"
        if descriptor.name in _LEFT_OUT_FIELDS:
            continue
        if descriptor.message_type is None:
            yield path, _masked(descriptor, value)
        elif descriptor.is_repeated:
            yield f"{path}.length", str(len(value))
            for index, child in enumerate(value):
                yield from _flatten(f"{path}[{index}].", child)
        else:
            yield path, "(set)"
            yield from _flatten(f"{path}.", value)


def _masked(descriptor: FieldDescriptor, value: Any) -> str:
    if descriptor.name in _MASKED_FIELDS:
        return f"<{descriptor.name}>"
    if descriptor.name == "ledgerId":
        return "none" if value == _NO_LEDGER else "<ledgerId>"
    if descriptor.is_repeated:
        return _masked_repeated(descriptor.name, value)
    if descriptor.enum_type is not None:
        number = descriptor.enum_type.values_by_number.get(value)
        return number.name if number is not None else str(value)
    return mask_text(value) if isinstance(value, str) else repr(value)


def _masked_repeated(name: str, values: Iterable[object]) -> str:
    items = [str(value) for value in values]
    return repr(sorted(items) if name in _UNORDERED_FIELDS else items)


def mask_text(text: str) -> str:
    """Return a text with ids, dates, client addresses and the words of Java exceptions masked."""
    wrapped = _PROXY_ERROR.match(text)
    if wrapped is not None and _JAVA_NAME.match(wrapped["text"]):
        text = f"{wrapped['head']}{JAVA_EXCEPTION}{wrapped['tail']}"
    elif _JAVA_NAME.match(text):
        text = JAVA_EXCEPTION
    for pattern, replacement in _TEXT_MASKS:
        text = pattern.sub(replacement, text)
    return text


def complaint(found: Sequence[Difference], deviation: Deviation | None) -> str:
    """Return a sentence about a case's faulty differences; empty when all are intended.

    A deviation must cover exactly the differing fields: an outdated deviation is a fault too, so
    that the list of deviations stays true.
    """
    report = "\n".join(str(each) for each in found)
    if deviation is None:
        return report
    fields = {each.field for each in found}
    gone = sorted(deviation.fields - fields)
    if gone:
        return f"these no longer differ, take them off the deviations: {gone}"
    return "" if fields == deviation.fields else f"more differs than is admitted:\n{report}"
