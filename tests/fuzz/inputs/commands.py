"""Random commands, made from the protobuf descriptors with meaningful values.

Names, ids and positions repeat, so commands meet the objects of earlier commands; a few are odd.
"""

from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

import proto.PulsarApi_pb2 as pb
from tests.fuzz.inputs.credentials import TOKENS

TYPES: list[int] = sorted(pb.BaseCommand.Type.values())
TOPIC = "persistent://public/default/t"
NAMES: dict[str, tuple[str, ...]] = {
    "topic": (
        TOPIC,
        f"{TOPIC}2",
        "persistent://public/default/p",
        "persistent://public/default/p-partition-0",
        "non-persistent://public/default/n",
        "t",
        "public/default/t",
        "persistent://nobody/none/t",
        "persistent://public/default/t-partition-9999999999",
        "persistent://public/default/",
        "topic://x",
    ),
    "namespace": ("public/default", "public/none", "public", "a/b/c", "", "public/default/t"),
    "subscription": ("s", "s2", "e", "f", "k", "", "s/t", "__compaction"),
    "producer_name": ("p", "p2", ""),
    "consumer_name": ("c", "c2", ""),
    "topics_pattern": (
        ".*",
        "persistent://public/default/t.*",
        "public/default/[a-z]+[0-9]?",
        "(?!x)t.*",
        "(",
        "t{1,3}|p",
        "\\Qt\\E.*",
        "(a|aa)+$",
    ),
    "topics_hash": ("", "0", "DEADBEEF"),
    "client_version": ("Pulsar-Java-v4.2.4", "Pulsar-CPP-v3.7.1", "", "x" * 300),
    "proxy_to_broker_url": ("127.0.0.1:6650", "pulsar://127.0.0.1:6650", "a:1", "x", ""),
    "auth_method_name": ("token", "token", "token", "none", "tls", "basic", ""),
    "original_principal": ("admin", "somebody", ""),
    "key": ("k", "", "PULSAR.KEY"),
    "value": ("v", ""),
    "name": ("s", ""),
    "uuid": ("u", ""),
}
_SCHEMAS = (b'"string"', b'{"type":"record","name":"R","fields":[]}', b"", b"{", b"\xff")
_SMALL = (0, 1, 1, 1, 2, 2, 3, 4, 5, 10)
_ODD = (2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
_REPEATED_MOST = 3
_DEEPEST = 4


class CommandMaker:
    """Makes and mutates commands.

    Args:
        random: Source of randomness.
        likely: More frequent types.
    """

    def __init__(self, random: Random, likely: tuple[int, ...] = ()) -> None:
        self._random = random
        self._likely = likely

    def made(self) -> bytes:
        random = self._random
        kinds = self._likely if self._likely and random.random() < 0.8 else TYPES
        kind = random.choice(kinds)
        command = pb.BaseCommand(type=kind)
        field = pb.BaseCommand.DESCRIPTOR.fields_by_number.get(kind)
        if field is not None:
            body = getattr(command, field.name)
            body.SetInParent()
            self._fill(body, 0)
        return command.SerializePartialToString()

    def changed(self, data: bytes) -> bytes:
        """Return a command with a changed field; replace bytes that are no command."""
        command = pb.BaseCommand()
        try:
            command.ParseFromString(data)
        except DecodeError:
            return self.made()
        bodies = [value for _, value in command.ListFields() if hasattr(value, "DESCRIPTOR")]
        if not bodies:
            return self.made()
        message: Any = self._random.choice(bodies)
        for _ in range(_DEEPEST):
            inner = [value for _, value in message.ListFields() if hasattr(value, "DESCRIPTOR")]
            if not inner or self._random.random() < 0.5:
                break
            message = self._random.choice(inner)
        if message.DESCRIPTOR.fields:
            self._change(message, self._random.choice(message.DESCRIPTOR.fields))
        return command.SerializePartialToString()

    def _change(self, message: Any, field: FieldDescriptor) -> None:
        if not field.is_required and self._random.random() < 0.2:
            message.ClearField(field.name)
        else:
            self._set(message, field, 0)

    def _fill(self, message: Message, depth: int) -> None:
        for field in message.DESCRIPTOR.fields:
            wanted = field.is_required or self._random.random() < 0.25
            if wanted and depth < _DEEPEST:
                self._set(message, field, depth)

    def _set(self, message: Any, field: FieldDescriptor, depth: int) -> None:
        if field.is_repeated:
            values = getattr(message, field.name)
            for _ in range(self._random.randint(0, _REPEATED_MOST)):
                if field.message_type is not None:
                    self._fill(values.add(), depth + 1)
                else:
                    values.append(self._value(field))
        elif field.message_type is not None:
            inner = getattr(message, field.name)
            inner.SetInParent()
            self._fill(inner, depth + 1)
        else:
            setattr(message, field.name, self._value(field))

    def _value(self, field: FieldDescriptor) -> Any:
        random = self._random
        if field.enum_type is not None:
            return random.choice(field.enum_type.values).number
        if field.type == field.TYPE_STRING:
            return random.choice(NAMES.get(field.name, ("x", "", "ä/\U0001f600")))
        if field.type == field.TYPE_BYTES:
            return random.choice(TOKENS if field.name == "auth_data" else _SCHEMAS)
        if field.type == field.TYPE_BOOL:
            return random.random() < 0.5
        if field.type in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
            return random.choice((0.0, 1.5, float("nan"), float("inf"), -1.0))
        return self._number(field)

    def _number(self, field: FieldDescriptor) -> int:
        random = self._random
        number = random.choice(_SMALL) if random.random() < 0.85 else random.choice(_ODD)
        bits = 64 if "64" in _CPP_NAMES[field.cpp_type] else 32
        if "uint" in _CPP_NAMES[field.cpp_type]:
            return number % (1 << bits)
        half = 1 << (bits - 1)
        return (number + half) % (1 << bits) - half


_CPP_NAMES = {1: "int32", 2: "int64", 3: "uint32", 4: "uint64"}
