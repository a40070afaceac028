"""Checks of policies' values, which refuse values with upstream's error texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from broker.policies.effective import ALL_TYPES
from broker.policies.table import UNDEFINED
from broker.policies.values import BadBodyError, one_of
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from broker.configuration.config import BrokerConfig
    from broker.policies.policy import Policy

    Check: TypeAlias = Callable[[Any, "Asked"], object]
    """Checks a parsed value; returns the value to store."""

_MEGABYTE = 1024 * 1024
_MOST_BOOKIES = 5
_TYPE = one_of(("Exclusive", "Shared", "Failover", "Key_Shared"))


class Asked(NamedTuple):
    """Facts about a request to set a policy, by which the policy's value is checked.

    Attributes:
        refusal: The error text for a refused value.
        config: The effective configuration.
        quotas: The backlog quotas that a retention must exceed.
    """

    refusal: str
    config: BrokerConfig
    quotas: Sequence[Mapping[str, Any]] = ()


def checked(policy: Policy, value: Any, asked: Asked) -> object:  # noqa: ANN401 - JSON
    """Check a policy's value, and return the value to store.

    Raises:
        RestError, BadBodyError: The value is refused.
    """
    check = _CHECKS.get(policy.key)
    if check is not None:
        return check(value, asked)
    if asked.refusal and value < 0:
        raise RestError(412, asked.refusal)
    return value


def _message_size(value: int, asked: Asked) -> int:
    if not 0 <= value <= asked.config.max_message_size:
        raise RestError(412, asked.refusal)
    return value


def _undefined_removes(value: str, _asked: Asked) -> str | None:
    return None if value == UNDEFINED else value


def _subscription_types(value: list[str] | None, _asked: Asked) -> list[object]:
    types = [_TYPE(one) for one in value or ()]
    if value is None or None in types:
        expected = ", ".join(sorted(ALL_TYPES))
        raise BadBodyError(f"the body should be an array of: {expected}", upstream_status=500)
    return list(dict.fromkeys(types))


def _auto_topic_creation(value: Mapping[str, Any], asked: Asked) -> Mapping[str, Any]:
    """Refuse an unknown type of topic, and an impossible number of partitions."""
    if value["allowAutoTopicCreation"]:
        problem = _auto_topic_problem(value)
        if problem:
            text = "Invalid configuration for autoTopicCreationOverride. the detail is"
            raise RestError(412, f"{text} {problem}")
    most = asked.config.max_num_partitions_per_partitioned_topic
    if value.get("topicType") == "partitioned" and 0 < most < value.get("defaultNumPartitions", 0):
        raise RestError(406, f"Number of partitions should be less than or equal to {most}")
    return value


def _auto_topic_problem(value: Mapping[str, Any]) -> str:
    kind, partitions = value.get("topicType"), value.get("defaultNumPartitions")
    if kind == "partitioned":
        if partitions is None:
            return "[defaultNumPartitions] cannot be null when the type is partitioned."
        if partitions < 1:
            return "[defaultNumPartitions] cannot be less than 1 for partition type."
    elif kind != "non-partitioned":
        return f"Unknown topic type [{'null' if kind is None else kind[:100]}]"
    elif partitions is not None:
        return "[defaultNumPartitions] is not allowed to be set when the type is non-partition."
    return ""


def _retention(value: Mapping[str, int], asked: Asked) -> Mapping[str, int]:
    """Refuse limits below -1, a single limit of 0, and a retention below a backlog quota."""
    minutes, megabytes = value["retentionTimeInMinutes"], value["retentionSizeInMB"]
    problem = ""
    if megabytes < -1:
        problem = "size limit must be >= -1"
    elif minutes < -1:
        problem = "time limit must be >= -1"
    elif (minutes == 0) != (megabytes == 0):
        problem = (
            "Setting a single time or size limit to 0 is invalid when one of the limits has a "
            "non-zero value. Use the value of -1 instead of 0 to ignore a specific limit. To "
            "disable retention both limits must be set to 0."
        )
    if problem:
        raise RestError(400, f"Invalid retention policy: {problem}")
    if any(exceeds_retention(quota, value) for quota in asked.quotas):
        raise RestError(412, asked.refusal)
    return value


def exceeds_retention(quota: Mapping[str, Any], kept: Mapping[str, int]) -> bool:
    """Return True if a backlog quota is not below the retention, by size or by age.

    Such a quota would have no effect.
    """
    megabytes, minutes = kept.get("retentionSizeInMB", 0), kept.get("retentionTimeInMinutes", 0)
    by_size = 0 < megabytes * _MEGABYTE <= quota["limitSize"]
    return bool(by_size or 0 < minutes * 60 <= quota["limitTime"])


def _persistence(value: Mapping[str, Any] | None, _asked: Asked) -> Mapping[str, Any]:
    if not value:
        raise RestError(400, "persistence policies should not be null")
    ensemble, write, ack = list(value.values())[:3]
    for name, one in (("Ensemble", ensemble), ("WriteQuorum", write), ("AckQuorum", ack)):
        if not 0 < one <= _MOST_BOOKIES:
            raise RestError(400, f"Bookkeeper-{name} must be <= {_MOST_BOOKIES} and > 0.")
    if not ensemble >= write >= ack:
        order = f"Bookkeeper Ensemble ({ensemble}) >= WriteQuorum ({write}) >= AckQuorum ({ack})"
        raise RestError(400, order)
    return value


def _entry_filters(value: Mapping[str, str], _asked: Asked) -> None:
    """Refuse all entry filters, because none can be loaded here."""
    names = [name.strip() for name in value["entryFilterNames"].split(",") if name.strip()]
    if not names:
        text = "entryFilterNames can't be empty. To remove entry filters use the remove method."
        raise RestError(400, text)
    raise RestError(400, f"Entry filter '{names[0][:100]}' not found")


_CHECKS: Mapping[str, Check] = {
    "autoTopicCreationOverride": _auto_topic_creation,
    "entryFilters": _entry_filters,
    "max_message_size": _message_size,
    "persistence": _persistence,
    "retention_policies": _retention,
    "schema_compatibility_strategy": _undefined_removes,
    "subscription_types_enabled": _subscription_types,
}
"""The checks of policies by key; other numbers with a refusal are not negative."""
