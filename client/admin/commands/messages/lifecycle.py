"""Verbs about the life of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.admin.commands.call import Call, Changed
from client.admin.commands.options import Topic  # noqa: TC001 - typer evaluates it

if TYPE_CHECKING:
    from collections.abc import Callable


def terminate(call: Call, topic: Topic) -> None:
    """Terminate a topic: it accepts no more messages. Prints the id of the last one.

    Examples:
    floodgate-admin topics terminate acme/orders/eu
    """
    call.table(f"terminate {topic}", lambda admin: admin.calls.ask("POST", topic, "terminate"))


def partitioned_terminate(call: Call, topic: Topic) -> None:
    """Terminate all partitions of a topic. Prints the id of the last message of each.

    Examples:
    floodgate-admin topics partitioned-terminate acme/orders/us
    """
    call.table(
        f"terminate {topic}",
        lambda admin: admin.calls.ask("POST", topic, "terminate", "partitions"),
    )


def truncate(call: Call, topic: Topic) -> None:
    """Skip all backlogs of a topic, and delete its closed ledgers.

    Examples:
    floodgate-admin topics truncate acme/orders/eu
    """
    call.change(
        f"truncate {topic}",
        Changed("truncated", topic),
        lambda admin: admin.calls.ask("DELETE", topic, "truncate"),
    )


def unload(call: Call, topic: Topic) -> None:
    """Close a topic; its clients reconnect.

    Examples:
    floodgate-admin topics unload acme/orders/eu
    """
    call.change(
        f"unload {topic}",
        Changed("unloaded", topic),
        lambda admin: admin.calls.ask("PUT", topic, "unload"),
    )


def trim_topic(call: Call, topic: Topic) -> None:
    """Delete the ledgers of a topic that no subscription needs.

    Examples:
    floodgate-admin topics trim-topic acme/orders/eu
    """
    call.change(
        f"trim {topic}",
        Changed("trimmed", topic),
        lambda admin: admin.calls.ask("POST", topic, "trim"),
    )


def compact(call: Call, topic: Topic) -> None:
    """Start the compaction of a topic.

    Examples:
    floodgate-admin topics compact acme/orders/eu
    """
    call.change(
        f"compact {topic}",
        Changed("compacting", topic),
        lambda admin: admin.calls.ask("PUT", topic, "compaction"),
    )


def compaction_status(call: Call, topic: Topic) -> None:
    """Show whether a topic is being compacted, and the result of the last compaction.

    Examples:
    floodgate-admin topics compaction-status acme/orders/eu
    """
    call.table(
        f"get the compaction of {topic}",
        lambda admin: admin.calls.ask("GET", topic, "compaction"),
    )


def create_missed_partitions(call: Call, topic: Topic) -> None:
    """Create the missing partitions of a partitioned topic.

    Examples:
    floodgate-admin topics create-missed-partitions acme/orders/us
    """
    call.change(
        f"create the missing partitions of {topic}",
        Changed("updated", topic),
        lambda admin: admin.calls.ask("POST", topic, "createMissedPartitions"),
    )


VERBS: dict[str, Callable[..., None]] = {
    "terminate": terminate,
    "partitioned-terminate": partitioned_terminate,
    "truncate": truncate,
    "unload": unload,
    "trim-topic": trim_topic,
    "compact": compact,
    "compaction-status": compaction_status,
    "create-missed-partitions": create_missed_partitions,
}
