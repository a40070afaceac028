"""The configuration keys of property listings (PIP-452): the plug-in, bounds of properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.configuration.property_bounds import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_PROPERTIES,
    MAX_BYTES_KEY,
    MAX_PROPERTIES_KEY,
    PropertyBounds,
)
from server.configuration.common import Profile

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

CLASS_KEY = "pulsarResourcesExtendedClassName"
DEFAULT_CLASS_NAME = "org.apache.pulsar.broker.DefaultPulsarResourcesExtended"


def class_name_problem(name: str) -> str | None:
    """Return the problem of a class name's form, or None; nothing is imported for it."""
    module, colon, cls = name.partition(":")
    parts = [*module.split("."), cls]
    if name == DEFAULT_CLASS_NAME or (colon and all(map(str.isidentifier, parts))):
        return None
    return (
        f"{CLASS_KEY}={name!r}: expected module:Class of Python, as "
        f"broker.property_index:PropertyIndex, or {DEFAULT_CLASS_NAME}; Java's classes cannot be "
        "loaded"
    )


WATCHER_KEY = "enableBrokerTopicListWatcher"


def resources_class_name(checked: CheckedKeys) -> str:
    """Return the plug-in's name; nothing is imported before the broker starts."""
    name = checked.text(CLASS_KEY) or DEFAULT_CLASS_NAME
    problem = class_name_problem(name)
    if problem is not None:
        checked.refuse(problem)
    elif (
        name != DEFAULT_CLASS_NAME and not _pulsar_compatible(checked) and checked.flag(WATCHER_KEY)
    ):
        checked.warn(
            f"{CLASS_KEY}={name} and {WATCHER_KEY}=true: watches know nothing of properties, so "
            "clients are told to poll instead (supports_topic_watchers=false); set "
            f"{WATCHER_KEY}=false to say so yourself"
        )
    return name


def property_bounds(checked: CheckedKeys) -> PropertyBounds:
    """Return the bounds of a listing request's properties; profile pulsar has none."""
    unbounded = _pulsar_compatible(checked)
    return PropertyBounds(
        _bound(checked, MAX_PROPERTIES_KEY, 0 if unbounded else DEFAULT_MAX_PROPERTIES),
        _bound(checked, MAX_BYTES_KEY, 0 if unbounded else DEFAULT_MAX_BYTES),
    )


def _bound(checked: CheckedKeys, key: str, default: int) -> int:
    return checked.integer(key) if checked.is_set(key) else default


def _pulsar_compatible(checked: CheckedKeys) -> bool:
    return checked.text("floodgateProfile") == Profile.PULSAR.value
