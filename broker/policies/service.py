"""The effective policies of topics: stored, cached in memory, and applied immediately.

A topic's policies override its namespace's, which override the broker's configuration. Brokers of a
shared store follow each other's changes. Objects that depend on policies register with
``on_change``.
"""

from __future__ import annotations

import asyncio
import json
import logging
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from broker.errors import Refusal, RefusedError
from broker.policies.documents import in_force
from broker.stores.changes import StoreError
from limiter.clock import clock_sleep
from limiter.tasks import ended
from proto.names import NamespaceName, TopicName, namespace_of
from server.tasks.cooperative import in_parts, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from broker.policies.effective import EffectivePolicies
    from broker.stores.store import MetadataStore, NamespacePolicies
    from limiter.clock import Clock

    Changed: TypeAlias = NamespaceName | TopicName | None
    Change: TypeAlias = Callable[[Mapping[str, Any]], object | None]

logger = logging.getLogger(__name__)

MAX_DOCUMENTS = 100_000
"""Most namespaces and topics with policies of their own."""
MAX_POLICY_BYTES = 512 * 1024
"""Most bytes of a policy as JSON: a larger one would hold the loop at each change."""
READ_AGAIN_SECONDS = 1.0
"""Delay before policies are read again after a failure."""
MOST_TRIES = 100
"""Most attempts of a change while other brokers change the same policy."""
MOST_TOLD = 1_000
"""Most changed names whose policies are read singly; above, all policies are read."""
_NONE: Mapping[str, Any] = {}


class PolicyService:
    """Stores, caches and applies the policies of namespaces and topics.

    Bound: MAX_DOCUMENTS, of policies of MAX_POLICY_BYTES each.
    """

    def __init__(
        self, store: MetadataStore, defaults: Callable[[], EffectivePolicies], clock: Clock
    ) -> None:
        self._store = store
        self._defaults = defaults
        self._clock = clock
        self._documents: dict[str, dict[str, object]] = {}
        # Effective policies by name, of names with a document only.
        self._in_force: dict[str, EffectivePolicies] = {}
        self._callbacks: list[Callable[[Changed], None]] = []
        self._reading = asyncio.Lock()
        self._told: set[str] = set()
        self._told_something = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._documents)

    async def start(self) -> None:
        """Read the stored policies, and begin to follow changes by other brokers.

        Raises:
            StoreError: The store failed.
        """
        self._store.on_policies(self._changed_elsewhere)
        await self._read("")
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Stop following the policy changes of other brokers."""
        await ended(self._following)

    # -- effective policies --------------------------------------------------------------------

    def of(self, topic: TopicName) -> EffectivePolicies:
        """Return a topic's effective policies; a partition's are those of its partitioned topic."""
        base = self.of_namespace(topic.namespace)
        return self._on_top(str(topic.partitioned_name), base) if self._documents else base

    def of_namespace(self, namespace: NamespaceName) -> EffectivePolicies:
        """Return the effective policies of a namespace's topics that set none themselves."""
        return self._on_top(str(namespace), self._defaults())

    def _on_top(self, name: str, base: EffectivePolicies) -> EffectivePolicies:
        document = self._documents.get(name)
        if document is None:
            return base
        found = self._in_force.get(name)
        if found is None:
            found = self._in_force[name] = in_force(base, document)
        return found

    @property
    def defaults(self) -> EffectivePolicies:
        """The broker's own policies, effective unless a topic or its namespace sets others."""
        return self._defaults()

    def document(self, of: NamespaceName | TopicName) -> Mapping[str, Any]:
        """Return the policies that a namespace or topic itself sets, by policy key."""
        return self._documents.get(str(of), _NONE)

    # -- changes ------------------------------------------------------------------------------

    def on_change(self, callback: Callable[[Changed], None]) -> None:
        """Register a callback, called when effective policies change.

        Its argument is the changed namespace or topic (never a partition), or None if all may have
        changed.
        """
        self._callbacks.append(callback)

    def configuration_changed(self) -> None:
        """Apply the broker's own policies, as its configuration changed at run time."""
        self._in_force.clear()
        self._tell(None)

    async def set(self, of: NamespaceName | TopicName, key: str, value: object | None) -> None:
        """Set a policy of a namespace or topic; the value None removes the policy.

        Raises as ``change``.
        """
        await self.change(of, key, lambda _: value)

    async def change(
        self, of: NamespaceName | TopicName, key: str, changed: Change
    ) -> Mapping[str, Any]:
        """Set a policy to the value that ``changed`` returns; return the policies stored before.

        Args:
            of: The namespace or topic.
            key: The policy's key.
            changed: Returns the new policy, or None to remove the policy, given all stored policies
                by key. Called again if another broker changes the policy meanwhile.

        Raises:
            RefusedError: Too many namespaces and topics have policies, the policy would be too
                large, or other brokers change it all the time.
            StoreError: The store failed.
        """
        name = str(of)
        async with self._reading:
            for _ in range(MOST_TRIES):
                stored = (await self._store.policy_documents(name)).get(name, {})
                before, value = stored.get(key), changed(stored)
                if value is not None:
                    self._check_room(name)
                    _check_size(key, value, before)
                if value == before or await self._write(name, key, value, before):
                    after = {**stored, key: value}
                    self._show(name, {one: kept for one, kept in after.items() if kept is not None})
                    return stored
        raise RefusedError(
            Refusal.CONFLICT, f"{key} of {name} is being changed by other brokers: try again"
        )

    async def _write(self, name: str, *values: Any) -> bool:  # noqa: ANN401 - JSON
        try:
            return await self._store.set_policy(name, *values)
        except BaseException:
            self._changed_elsewhere(name)  # Stored or not: read again.
            raise

    async def create_namespace(
        self, namespace: NamespaceName, policies: NamespacePolicies, document: Mapping[str, object]
    ) -> bool:
        """Create a namespace and its policies atomically; return False if it already exists.

        Raises:
            RefusedError: Too many namespaces and topics have policies, or a policy is too large.
            StoreError: The store failed, and nothing is changed.
        """
        if document:
            self._check_room(str(namespace))
        for key, value in document.items():
            _check_size(key, value)
        created = await self._store.create_namespace(namespace, policies, document)
        if created:
            await self._read(str(namespace))
        return created

    def _check_room(self, name: str) -> None:
        if name not in self._documents and len(self) >= MAX_DOCUMENTS:
            raise RefusedError(
                Refusal.PRECONDITION_FAILED,
                f"{MAX_DOCUMENTS} namespaces and topics have policies of their own already; "
                "remove some, or set the policy for the namespace",
            )

    async def forget(self, of: NamespaceName | TopicName) -> None:
        """Delete the policies of a deleted topic, or those that a deleted namespace itself had.

        The policies of the namespace's topics remain.

        Raises:
            StoreError: The store failed.
        """
        await self._forget([str(of)])

    async def forget_namespaces(self, namespaces: Sequence[NamespaceName]) -> None:
        """Delete all policies of deleted namespaces and their topics.

        Raises:
            StoreError: The store failed.
        """
        gone = frozenset(map(str, namespaces))
        known = in_turns(tuple(self._documents))
        await self._forget([*gone, *[name async for name in known if namespace_of(name) in gone]])

    async def _forget(self, names: Sequence[str]) -> None:
        for part in in_parts(names, 100):
            async with self._reading:
                # Also names unknown here: another broker may have set a policy a moment ago.
                await self._store.delete_policies(part)
                for name in part:
                    self._show(name, {})
            await asyncio.sleep(0)

    # -- changes by peers ---------------------------------------------------------------------

    def _changed_elsewhere(self, name: str) -> None:
        self._told.add(name)
        if len(self._told) > MOST_TOLD:
            self._told = {""}  # Read all.
        self._told_something.set()

    async def _follow(self) -> None:
        while True:
            await self._told_something.wait()
            self._told_something.clear()
            told, self._told = self._told, set()
            left = [""] if "" in told else sorted(told)
            try:
                while left:
                    await self._read(left[-1])
                    left.pop()
            except StoreError as error:
                logger.warning("policies that another broker set cannot be read: %s", error)
                self._told.update(left)
                self._told_something.set()
                await clock_sleep(self._clock, READ_AGAIN_SECONDS)

    async def _read(self, name: str) -> None:
        """Read and apply the stored policies of a namespace or topic; all policies for the name "".

        Reads are sequential, so the policies stored last become effective.
        """
        async with self._reading:
            stored = await self._store.policy_documents(name or None)
            if name:
                self._show(name, stored.get(name, {}))
                return
            gone = self._documents.keys() - stored.keys()
            for one in (*gone, *stored):
                self._show(one, stored.get(one, {}))

    def _show(self, name: str, document: dict[str, object]) -> None:
        if document == self._documents.get(name, {}):
            return
        if document:
            self._documents[name] = document
        else:
            self._documents.pop(name, None)
        topic = "://" in name
        if topic:
            self._in_force.pop(name, None)
        else:
            # The effective policies of its topics include the namespace's.
            self._in_force.clear()
        self._tell(TopicName.parse(name) if topic else NamespaceName.parse(name))

    def _tell(self, changed: Changed) -> None:
        for callback in self._callbacks:
            callback(changed)


AT_ONCE = 50
"""Topics notified of changed policies in one turn."""


class Follower(Protocol):
    """An interface of a loaded topic, which is notified when its policies change."""

    closing: bool

    def policies_changed(self) -> None:
        """Apply the topic's effective policies, which have changed."""


class PolicyFollowers:
    """Notifies loaded topics that their policies changed, a batch per event-loop iteration.

    A namespace may have 10,000 topics.

    Bound: one entry a loaded topic, however often policies change.
    """

    def __init__(self) -> None:
        self._waiting: dict[Follower, None] = {}
        self._following: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def follow(self, topics: Sequence[Follower]) -> None:
        """Notify topics of changed policies: a batch now, more in later event-loop iterations."""
        for topic in topics[:AT_ONCE]:
            _follow_one(topic)
        self._waiting.update(dict.fromkeys(topics[AT_ONCE:]))
        if self._waiting and self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._follow_waiting())

    async def _follow_waiting(self) -> None:
        while self._waiting:
            await asyncio.sleep(0)
            for topic in list(islice(self._waiting, AT_ONCE)):
                del self._waiting[topic]
                _follow_one(topic)
        self._following = None


def _follow_one(topic: Follower) -> None:
    """Notify a topic of changed policies; a failure is logged and does not affect other topics."""
    if topic.closing:
        return
    try:
        topic.policies_changed()
    except Exception:
        logger.exception("a topic does not follow its policies")


def _check_size(key: str, value: object, before: object | None = None) -> None:
    size = len(json.dumps(value))
    # A policy of an earlier version may be larger: it can be made smaller step by step.
    if size > MAX_POLICY_BYTES and size >= len(json.dumps(before)):
        raise RefusedError(
            Refusal.PRECONDITION_FAILED,
            f"{key} would have {size} bytes, of {MAX_POLICY_BYTES} at most: remove some first",
        )
