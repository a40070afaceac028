"""The byte format of requests to the processes that check Avro definitions, and of the results.

A job is its length, a line of JSON, and the definitions; an answer is JSON.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Job:
    """A request to parse an Avro definition and compare it with earlier definitions.

    Attributes:
        definition: The new definition.
        alike: Candidates for the same definition.
        compared: Definitions to be compatible with, the newest first.
        strategy: The compatibility strategy.
    """

    definition: bytes
    alike: Sequence[bytes]
    compared: Sequence[bytes]
    strategy: str

    def packed(self) -> bytes:
        """Encode the request as bytes, which begin with their length."""
        definitions = (self.definition, *self.alike, *self.compared)
        sizes = [len(one) for one in definitions]
        head = json.dumps([self.strategy, len(self.alike), sizes]).encode() + b"\n"
        size = LENGTH.pack(len(head) + sum(sizes))
        return b"".join((size, head, *definitions))

    @staticmethod
    def of(data: bytes) -> Job:
        """Decode a request from bytes, which do not begin with their length."""
        head, _, rest = data.partition(b"\n")
        strategy, alike, sizes = json.loads(head)
        definitions, begin = [], 0
        for size in sizes:
            definitions.append(rest[begin : begin + size])
            begin += size
        new, *others = definitions
        return Job(new, others[:alike], others[alike:], strategy)


class Answer(NamedTuple):
    """The result of checking an Avro definition.

    Attributes:
        same: Index of the same definition in ``alike``; None for a new definition.
        unreadable: Reason why the definition is unreadable; empty if readable.
        incompatible: Reason why the definition is incompatible; empty if compatible.
        is_union: True if the definition is a union.
    """

    same: int | None = None
    unreadable: str = ""
    incompatible: str = ""
    is_union: bool = False

    def packed(self) -> bytes:
        """Encode the result as bytes of JSON."""
        return json.dumps(self).encode()

    @staticmethod
    def of(data: bytes) -> Answer:
        """Decode a result from bytes of JSON."""
        return Answer(*json.loads(data))
