"""Calls of a listing plug-in: time-limited, with checked results; a failure affects one request."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import proto.PulsarApi_pb2 as pb
from broker.configuration.plugin_keys import CLASS_KEY
from broker.topic_lists.block import Block
from broker.topic_lists.sequence import TopicListing, TopicSequence
from broker.topic_lists.tree import BLOCK_BYTES
from limiter.clock import Clock, LoopClock, deadline
from proto.names import (
    JAVA_WHITESPACE,
    MAX_NAME_BYTES,
    MAX_PARTITION_INDEX,
    PARTITION_SEPARATOR,
    is_system_topic,
)
from proto.topic_hash import java_order
from server.configuration.loaded_class import told
from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from broker.plugins.plugin import PulsarResourcesExtended
    from broker.stores.store import Mode
    from proto.names import NamespaceName

logger = logging.getLogger(__name__)

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


class UnusableAnswerError(Exception):
    """A list that cannot be used; the text continues the word "answered".

    The list is untrusted. Long lists are converted in steps, and sorted by Arrow in a thread
    without the interpreter's lock, so that other connections proceed.
    """


async def listing_of_names(
    answer: object, namespace: NamespaceName, mode: Mode, steps: Steps
) -> TopicListing:
    """Build a listing of full topic names in any order; duplicates count once.

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
    """Return the RE2 pattern of full names: a local name has no slash and is not blank."""
    inside = re.escape(str(namespace))
    return rf"\A{_DOMAINS[mode]}://{inside}/[^/]*[^/{JAVA_WHITESPACE}][^/]*\z"


def _checked(
    names: Sequence[object], valid_name: str, where: str
) -> Generator[None, None, list[pa.LargeBinaryArray]]:
    """Return the names as columns, without system topics."""
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
    """Return distinct names in Java's order, in runs of a block each.

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
    """Return texts whose bytewise order is Java's order of the names."""
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
    blocks = []
    for run in runs:
        blocks.append(Block.of_names(run.to_pylist()))
        yield
    return TopicSequence.from_blocks(blocks)


TIMEOUT_KEY = "floodgateResourcesTimeoutMs"
MAX_OVERDUE_CALLS = 100
"""Most abandoned calls still running; above, requests fail without a call."""


class ResourcesError(Exception):
    """A plug-in failed a request: no answer, or an unusable answer; the text names the plug-in."""


class _NotAwaitable:
    """A plug-in's return value that is no coroutine."""

    def __init__(self, value: object) -> None:
        self._type = type(value).__name__

    def __str__(self) -> str:
        return self._type


class ResourceCalls:
    """The calls of a plug-in, each with a time limit.

    Attributes:
        under_way: Calls in flight.
        failures_total: Calls that raised, timed out, or returned an unusable answer.
    """

    def __init__(
        self,
        resources: PulsarResourcesExtended,
        name: str,
        timeout_seconds: float,
        clock: Clock | None = None,
    ) -> None:
        self._resources = resources
        self._name = f"{CLASS_KEY}={name}"
        self._timeout_seconds = timeout_seconds
        self._clock: Clock = clock or LoopClock()
        self._given_up: set[asyncio.Task[object]] = set()
        self._logged: set[str] = set()
        self._steps = Steps()
        self.under_way = 0
        self.failures_total = 0

    @property
    def overdue(self) -> int:
        """Number of abandoned calls still running."""
        return sum(not call.done() for call in self._given_up)

    async def list_topics(
        self, namespace: NamespaceName, mode: Mode, properties: Mapping[str, str]
    ) -> TopicListing:
        """Return the plug-in's listing.

        Raises:
            ResourcesError: The plug-in raised, timed out, or returned no list of topics of the
                namespace and mode.
        """
        self.under_way += 1
        try:
            answer = await self._answer(namespace, mode, dict(properties))
            return await self._listing(answer, namespace, mode)
        finally:
            self.under_way -= 1

    async def _listing(self, answer: object, namespace: NamespaceName, mode: Mode) -> TopicListing:
        if isinstance(answer, TopicListing):
            return answer
        if isinstance(answer, _NotAwaitable):
            raise self._failed(f"answered with {answer} at once; write it as async def")
        try:
            return await listing_of_names(answer, namespace, mode, self._steps)
        except UnusableAnswerError as error:
            raise self._failed(f"answered {error}") from None
        except Exception as error:
            # The plug-in's own list class may raise anything on access.
            raise self._failed(f"answered what cannot be read: {told(error)}", error) from error

    async def _answer(
        self, namespace: NamespaceName, mode: Mode, properties: dict[str, str]
    ) -> object:
        await self._refuse_if_stuck()
        # In a separate task, a call that ignores cancellation delays no request.
        call = asyncio.get_running_loop().create_task(self._call(namespace, mode, properties))
        try:
            async with deadline(self._clock, self._timeout_seconds):
                await asyncio.wait((call,))
        except TimeoutError:
            limit = f"{self._timeout_seconds:g} s ({TIMEOUT_KEY})"
            raise self._failed(f"did not answer within {limit}") from None
        finally:
            self._give_up(call)
        if call.cancelled():
            raise self._failed("was cancelled by itself")
        return call.result()

    async def _call(
        self, namespace: NamespaceName, mode: Mode, properties: dict[str, str]
    ) -> object:
        try:
            answer: object = self._resources.list_topics_of_namespace(namespace, mode, properties)
            return await answer if inspect.isawaitable(answer) else _NotAwaitable(answer)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            raise self._failed(f"failed: {told(error)}", error) from error

    async def _refuse_if_stuck(self) -> None:
        if self.overdue >= MAX_OVERDUE_CALLS:
            await asyncio.sleep(0)  # Calls abandoned just now end in this turn.
        if self.overdue >= MAX_OVERDUE_CALLS:
            raise self._failed(f"is stuck: {self.overdue} calls still run after their time")

    def _give_up(self, call: asyncio.Task[object]) -> None:
        if not call.done():
            self._given_up.add(call)
            call.add_done_callback(self._ended)
            call.cancel()

    def _ended(self, call: asyncio.Task[object]) -> None:
        self._given_up.discard(call)
        if not call.cancelled():
            call.exception()  # no request waits for the call any more

    def _failed(self, what: str, error: BaseException | None = None) -> ResourcesError:
        """Count a failure; the first of each kind is logged with its stack."""
        self.failures_total += 1
        kind = type(error).__name__ if error is not None else what[:20]
        if kind not in self._logged and len(self._logged) < MAX_OVERDUE_CALLS:
            self._logged.add(kind)
            logger.warning("%s %s", self._name, what, exc_info=error)
        return ResourcesError(f"{self._name} {what}")
