"""Jobs and answers of the processes that judge definitions, as bytes.

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
    """A definition to judge.

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
        """Return the job's bytes, with their length in front."""
        definitions = (self.definition, *self.alike, *self.compared)
        sizes = [len(one) for one in definitions]
        head = json.dumps([self.strategy, len(self.alike), sizes]).encode() + b"\n"
        size = LENGTH.pack(len(head) + sum(sizes))
        return b"".join((size, head, *definitions))

    @staticmethod
    def of(data: bytes) -> Job:
        """Parse a job, without its length."""
        head, _, rest = data.partition(b"\n")
        strategy, alike, sizes = json.loads(head)
        definitions, begin = [], 0
        for size in sizes:
            definitions.append(rest[begin : begin + size])
            begin += size
        new, *others = definitions
        return Job(new, others[:alike], others[alike:], strategy)


class Answer(NamedTuple):
    """The judgement of a definition.

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
        """Return the answer's bytes."""
        return json.dumps(self).encode()

    @staticmethod
    def of(data: bytes) -> Answer:
        """Parse an answer."""
        return Answer(*json.loads(data))
