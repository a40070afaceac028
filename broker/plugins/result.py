"""Conversion of the topic names that a plug-in returns into a checked and sorted topic list.

The list is untrusted. Long lists are converted in steps, and sorted by Arrow in a thread without
the interpreter's lock, so that other connections proceed.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import proto.PulsarApi_pb2 as pb
from broker.plugins.errors import UnusableAnswerError
from broker.topic_lists.block import Block
from broker.topic_lists.sequence import TopicListing, TopicSequence
from broker.topic_lists.tree import BLOCK_BYTES
from proto.names import (
    JAVA_WHITESPACE,
    MAX_NAME_BYTES,
    MAX_PARTITION_INDEX,
    PARTITION_SEPARATOR,
    is_system_topic,
)
from proto.topic_hash import java_order

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from broker.stores.store import Mode
    from proto.names import NamespaceName
    from server.tasks.cooperative import Steps

NAMES_PER_STEP = 2_048
"""Names processed in one step of about 1 ms."""
MAX_LISTED_NAME_BYTES = MAX_NAME_BYTES + len(f"{PARTITION_SEPARATOR}{MAX_PARTITION_INDEX}")
"""Most UTF-8 bytes of a listed name: the longest topic name, with a partition."""
_PREFIX_BYTES = 2
"""Bytes before most names on the wire: tag and length."""
SHOWN_CHARACTERS = 200
_DOMAINS = {
    pb.CommandGetTopicsOfNamespace.PERSISTENT: "persistent",
    pb.CommandGetTopicsOfNamespace.NON_PERSISTENT: "non-persistent",
    pb.CommandGetTopicsOfNamespace.ALL: "(?:non-)?persistent",
}
_MAY_BE_SYSTEM = "__|transaction_coordinator_assign"


async def listing_of_names(
    answer: object, namespace: NamespaceName, mode: Mode, steps: Steps
) -> TopicListing:
    """Convert a plug-in's full topic names, in any order, to a sorted list without duplicates.

    System topics are left out, as upstream does.

    Raises:
        UnusableAnswerError: The answer is no list of names of the namespace and mode.
    """
    if not isinstance(answer, (list, tuple)):
        raise UnusableAnswerError(f"{type(answer).__name__} where a list of names was expected")
    where = f"{namespace}, mode {pb.CommandGetTopicsOfNamespace.Mode.Name(mode)}"
    parts = await steps.take(_checked(answer, _valid_name(namespace, mode), where))
    if len(parts) < 2:
        runs = _runs_in_java_order(parts)
    else:
        runs = await asyncio.to_thread(_runs_in_java_order, parts)
    return TopicListing(await steps.take(_sequence(runs)))


def _valid_name(namespace: NamespaceName, mode: Mode) -> str:
    """Return an RE2 pattern that matches the valid full names of a namespace's topics.

    A local name has no slash and is not blank.
    """
    inside = re.escape(str(namespace))
    return rf"\A{_DOMAINS[mode]}://{inside}/[^/]*[^/{JAVA_WHITESPACE}][^/]*\z"


def _checked(
    names: Sequence[object], valid_name: str, where: str
) -> Generator[None, None, list[pa.LargeBinaryArray]]:
    """Check a plug-in's names; return those of user topics as Arrow columns."""
    parts = []
    for start in range(0, len(names), NAMES_PER_STEP):
        part = _column(names[start : start + NAMES_PER_STEP])
        _check_lengths(part)
        valid = pc.match_substring_regex(part, valid_name)
        if not pc.all(valid, min_count=0).as_py():
            wrong = part.filter(pc.invert(valid))[0].as_py()
            raise UnusableAnswerError(f"{_shown(wrong)}, which is no topic of {where}")
        parts.append(_without_system_topics(part).cast(pa.large_binary()))
        yield
    return parts


def _column(names: Sequence[object]) -> pa.LargeStringArray:
    for name in names:
        if not isinstance(name, str):
            raise UnusableAnswerError(f"a list that holds {type(name).__name__}, not only str")
    try:
        return pa.array(names, pa.large_string())
    except UnicodeEncodeError as error:
        raise UnusableAnswerError(f"{_shown(error.object)}, which is no Unicode") from None


def _check_lengths(names: pa.LargeStringArray) -> None:
    lengths = pc.binary_length(names)
    longest = pc.max(lengths).as_py() or 0
    if longest > MAX_LISTED_NAME_BYTES:
        wrong = names[lengths.index(longest).as_py()].as_py()
        raise UnusableAnswerError(
            f"{_shown(wrong)}, which has {longest} bytes: a topic's name has at most "
            f"{MAX_LISTED_NAME_BYTES}"
        )


def _shown(name: str) -> str:
    return f"{name[:SHOWN_CHARACTERS]!a}{'...' if len(name) > SHOWN_CHARACTERS else ''}"


def _without_system_topics(names: pa.LargeStringArray) -> pa.LargeStringArray:
    suspects = pc.match_substring_regex(names, _MAY_BE_SYSTEM)
    if not pc.any(suspects).as_py():
        return names
    hidden = [name for name in names.filter(suspects).to_pylist() if is_system_topic(name)]
    return names.filter(pc.invert(pc.is_in(names, pa.array(hidden, pa.large_string()))))


def _runs_in_java_order(parts: Sequence[pa.LargeBinaryArray]) -> list[pa.LargeBinaryArray]:
    """Return the distinct names, sorted as Java sorts strings, in one run for each block.

    Arrow does nearly all the work, without the interpreter's lock.
    """
    names = pa.concat_arrays([pa.array([], pa.large_binary()), *parts])
    names = names.take(pc.sort_indices(_sorting_as_java(names)))
    if len(names) > 1:
        new = pc.not_equal(names.slice(1), names.slice(0, len(names) - 1))
        names = names.filter(pa.concat_arrays([pa.array([True]), new]))
    ends = np.cumsum(pc.binary_length(names).to_numpy() + _PREFIX_BYTES)
    cuts = np.flatnonzero(np.diff((ends - 1) // BLOCK_BYTES)) + 1
    bounds = itertools.pairwise([0, *cuts.tolist(), len(names)])
    return [names.slice(start, end - start) for start, end in bounds if end > start]


def _sorting_as_java(names: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Return a key for each name; the keys' bytewise order is Java's order of the names."""
    ascii_only = pc.string_is_ascii(names.cast(pa.large_string()))
    if pc.all(ascii_only, min_count=0).as_py():
        return names
    _, offsets, data = names.buffers()
    lifted = np.empty(data.size, np.uint8)
    for start in range(0, data.size, BLOCK_BYTES):  # each step holds the interpreter's lock
        part = data.slice(start, min(BLOCK_BYTES, data.size - start))
        lifted[start : start + part.size] = np.frombuffer(java_order(part.to_pybytes()), np.uint8)
    buffers = [None, offsets, pa.py_buffer(lifted)]
    return pa.Array.from_buffers(names.type, len(names), buffers, 0, names.offset)


def _sequence(runs: Sequence[pa.LargeBinaryArray]) -> Generator[None, None, TopicSequence]:
    """Pack sorted names into a TopicSequence, one block per step of this generator."""
    blocks = []
    for run in runs:
        blocks.append(Block.of_names(run.to_pylist()))
        yield
    return TopicSequence.from_blocks(blocks)
