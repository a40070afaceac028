"""Configuration changes at run time: stored in the metadata store, applied immediately.

A value set at run time overrides the file's, also after a restart; its removal restores the file's
value. Brokers of a shared store follow each other's changes.

Source: upstream BrokerService.updateDynamicServiceConfiguration and BrokersBase. Differs: profile
``floodgate`` refuses unusable values, and can change the limiter's keys and the watermarks; as
shipped an unusable value is stored without effect.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from broker.configuration.config import BrokerConfig, known_keys
from broker.errors import Refusal, RefusedError
from broker.stores.changes import StoreError
from broker.stores.store_url import OUR_STORES, without_password
from limiter.tasks import ended
from server.configuration.authentication import SECRET_KEY
from server.configuration.common import Profile
from server.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.stores.store import MetadataStore

    Check = Callable[[BrokerConfig], object]

logger = logging.getLogger(__name__)

MASK = "******"
_SECRET_IN_URL = re.compile(r"(://[^/?#]*?:)[^/?#]*@")


def runtime_values(config: BrokerConfig, dynamic: Mapping[str, str]) -> dict[str, str]:
    """Return every known configuration key with its effective value.

    Args:
        config: The configuration at the start.
        dynamic: The effective values set at run time.
    """

    def value(key: str) -> str:
        text = dynamic.get(key, "").strip()
        return text if text not in ("", "null") else config.keys.as_given(key)

    return {known.key: masked(known.key, value(known.key)) for known in known_keys()}


def masked(key: str, text: str) -> str:
    """Return a configuration value with its passwords replaced by asterisks."""
    if text and SECRET_KEY.search(key):
        return MASK
    if text.lower().startswith(OUR_STORES):
        return without_password(text, MASK)
    return _SECRET_IN_URL.sub(rf"\1{MASK}@", text)


FLOODGATE_DYNAMIC_KEYS = tuple(BrokerConfig.dynamic_keys())
"""Keys that are dynamic here, but not in Pulsar as shipped."""
_LOAD_MANAGER, _LOOKUPS = "loadManagerClassName", "maxConcurrentLookupRequest"
LOAD_MANAGERS = tuple(
    f"org.apache.pulsar.broker.loadbalance.{name}"
    for name in (
        "impl.ModularLoadManagerImpl",
        "impl.ModularLoadManagerWrapper",
        "impl.SimpleLoadManagerImpl",
        "extensions.ExtensibleLoadManagerImpl",
        "extensions.ExtensibleLoadManagerWrapper",
        "NoopLoadManager",
    )
)
"""Upstream's classes of load managers, which have no effect here; a real broker refuses unknown
classes."""
_JAVA_SIZES = {"int": 32, "long": 64}


def _anything(_: BrokerConfig) -> None:
    pass


class DynamicConfiguration:
    """The effective configuration: the file's values, overridden by values set at run time.

    Args:
        config: The configuration of the file and the command line. Changes are made in this object,
            and so reach everything that refers to it or to one of its groups.
        store: Stores the values set at run time.
        apply: Called after each change, with the previous configuration.
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: MetadataStore,
        apply: Callable[[BrokerConfig], None],
    ) -> None:
        self.config = config
        self._started_with = started_with = config.copied()
        self._store = store
        self._apply = apply
        self._pulsar_compatible = started_with.profile is Profile.PULSAR
        self._fitting: Mapping[str, str] = {}
        self._numbers: Mapping[str, str] = {}
        # Changes are sequential: the value stored last is applied last.
        self._changing = asyncio.Lock()
        self._changed_elsewhere = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @property
    def names(self) -> list[str]:
        """The keys that can be changed at run time."""
        upstream = [known.key for known in known_keys() if known.dynamic]
        return upstream if self._pulsar_compatible else [*upstream, *FLOODGATE_DYNAMIC_KEYS]

    def runtime(self) -> dict[str, str]:
        """Return the effective value of every known key; secrets are masked.

        In profile pulsar the result shows every number set at run time, even if it has no effect.
        """
        return runtime_values(self._started_with, {**self._fitting, **self._numbers})

    async def values(self) -> dict[str, str]:
        """Return all values set at run time, including those without effect; secrets are masked.

        Raises:
            StoreError: The store failed.
        """
        return {key: masked(key, text) for key, text in (await self._store.configuration()).items()}

    async def start(self) -> None:
        """Apply the stored values, and begin to follow changes by other brokers.

        Raises:
            StoreError: The store failed.
        """
        await self._take_stored()
        self._store.on_configuration(self._changed_elsewhere.set)
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Stop following changes by other brokers."""
        await ended(self._following)

    async def set(self, key: str, value: str, check: Check = _anything) -> None:
        """Set the value of a key at run time: store the value and apply it.

        Args:
            key: The key.
            value: The value.
            check: Refuses a configuration that the requester may not apply.

        Raises:
            RefusedError: The key is not dynamic, or the value is unusable.
            StoreError: The store failed, and nothing was applied.
        """
        self._check_dynamic(key, "update")
        if key == _LOAD_MANAGER and value not in LOAD_MANAGERS:
            raise self._no_such_class(value)
        async with self._changing:
            if not self._pulsar_compatible:
                self._usable({**self._fitting, key: value})
            # The new value comes first, should it conflict with one that has no effect yet.
            stored = {key: value} | {**await self._store.configuration(), key: value}
            config, fitting = await self._fit(stored, self._fitting)
            check(config)
            await self._store.set_configuration(key, value)
            self._put_in_force(config, fitting, stored)

    async def delete(self, key: str, check: Check = _anything) -> None:
        """Remove the value set for a key at run time, and apply the file's value again.

        A no-op for a key not set.

        Raises:
            RefusedError: The key is not dynamic, or the file's value conflicts with the remaining
                values.
            StoreError: The store failed, and nothing was applied.
        """
        self._check_dynamic(key, "delete")
        async with self._changing:
            rest = {name: value for name, value in self._fitting.items() if name != key}
            self._usable(rest)
            stored = dict(await self._store.configuration())
            stored.pop(key, None)
            config, fitting = await self._fit(stored, rest)
            check(config)
            await self._store.set_configuration(key, None)
            self._put_in_force(config, fitting, stored)

    async def clear(self, check: Check = _anything) -> None:
        """Remove all values set at run time together, and apply the file's values again.

        If the values were removed one by one, a remaining value might conflict with the file's
        values.

        Raises:
            RefusedError: The file's values are unusable by now.
            StoreError: The store failed, and nothing was applied.
        """
        async with self._changing:
            config = self._usable({})
            check(config)
            for key in dict(await self._store.configuration()):
                await self._store.set_configuration(key, None)
            self._put_in_force(config, {}, {})

    # -- stored values ------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            await self._changed_elsewhere.wait()
            self._changed_elsewhere.clear()
            try:
                await self._take_stored()
            except (StoreError, ConfigError) as error:
                logger.warning("the configuration set at run time cannot be read: %s", error)

    async def _take_stored(self) -> None:
        async with self._changing:
            stored = dict(await self._store.configuration())
            config, fitting = await self._fit(stored, {})
            self._put_in_force(config, fitting, stored)

    async def _fit(
        self, stored: Mapping[str, str], held: Mapping[str, str]
    ) -> tuple[BrokerConfig, Mapping[str, str]]:
        """Return the configuration with all usable stored values, and these values by key.

        A warning is logged for each unusable value. The values in ``held`` are usable together;
        each applies unless a stored value replaces it.
        """
        names = frozenset(self.names)
        waiting = {
            key: value for key, value in stored.items() if key in names and held.get(key) != value
        }
        fitting = {**held, **waiting}
        try:
            return self._with(fitting) if fitting else self._started_with, fitting
        except ConfigError:
            fitting = dict(held)
        # A value may depend on another, as the low watermark on the high: repeat while some fit.
        problems = await self._take_fitting(waiting, fitting)
        while 0 < len(problems) < len(waiting):
            waiting = {key: stored[key] for key in problems}
            problems = await self._take_fitting(waiting, fitting)
        for problem in problems.values():
            logger.warning("set at run time, and without effect: %s", problem)
        return self._with(fitting), fitting

    async def _take_fitting(
        self, waiting: Mapping[str, str], fitting: dict[str, str]
    ) -> Mapping[str, str]:
        """Move usable values to ``fitting``; return the problems of unusable values by key."""
        problems: dict[str, str] = {}
        for key, value in waiting.items():
            try:
                self._with({**fitting, key: value})
                fitting[key] = value
            except ConfigError as error:
                problems[key] = "; ".join(error.problems)
            await asyncio.sleep(0)
        return problems

    def _with(self, values: Mapping[str, str]) -> BrokerConfig:
        """Return the configuration of the broker's start with the given values replaced.

        Raises:
            ConfigError: The values are unusable.
        """
        if self._pulsar_compatible and (places := _java_number(values.get(_LOOKUPS, ""), 32)):
            values = {**values, _LOOKUPS: str(max(0, places))}  # No lookup is admitted (recorded).
        for key, value in values.items():
            _check_not_blank(key, value)
        given = self._started_with.settled
        before = BrokerConfig.from_properties(given)
        after = BrokerConfig.from_properties({**given, **values})
        names = [field.name for field in fields(BrokerConfig) if field.name != "notices"]
        changed = {name: getattr(after, name) for name in names}
        return replace(
            self._started_with,
            **{name: value for name, value in changed.items() if value != getattr(before, name)},
        )

    def _usable(self, values: Mapping[str, str]) -> BrokerConfig:
        try:
            return self._with(values)
        except ConfigError as error:
            reason = "; ".join(error.problems)
            raise RefusedError(Refusal.PRECONDITION_FAILED, reason) from None

    def _put_in_force(
        self, config: BrokerConfig, fitting: Mapping[str, str], stored: Mapping[str, str]
    ) -> None:
        before = self.config.copied()
        self.config.become(config)
        self._fitting = fitting
        others = ((key, text) for key, text in stored.items() if fitting.get(key) != text)
        self._numbers = {key: text for key, text in others if self._is_number(key, text)}
        self._apply(before)

    def _is_number(self, key: str, value: str) -> bool:
        """Return True for a number that a real broker applies and this broker cannot use."""
        known = next((one for one in known_keys() if one.key == key), None)
        size = _JAVA_SIZES.get(known.type) if known is not None and known.dynamic else None
        fits = size is not None and _java_number(value, size) is not None
        return fits and self._pulsar_compatible

    def _no_such_class(self, value: str) -> RefusedError:
        reason = " Invalid dynamic-config value"
        if not self._pulsar_compatible:
            known = ", ".join(LOAD_MANAGERS)
            reason = f"{_LOAD_MANAGER}={value[:100]!r}: no such class; known are {known}"
        return RefusedError(Refusal.PRECONDITION_FAILED, reason)

    def _check_dynamic(self, key: str, verb: str) -> None:
        if key not in self.names:
            reason = f"Can't {verb} non-dynamic configuration"
            if not self._pulsar_compatible:
                reason += f": {key[:100]} is not one of those at /admin/v2/brokers/configuration"
            raise RefusedError(Refusal.PRECONDITION_FAILED, reason)


def _java_number(value: str, bits: int) -> int | None:
    """Return the integer in a text, as Java parses it, or None if it exceeds ``bits`` bits.

    None also for a text without an integer.
    """
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", value):
        return None
    number = int(value)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def _check_not_blank(key: str, value: str) -> None:
    """Refuse to set a blank value: it would mean Pulsar's default rather than the file's value."""
    if value.strip() in ("", "null"):
        raise ConfigError([f"{key}={value!r}: give a value; deleting it brings the file's back"])
