"""Verbs that show statistics of topics and their insides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from client.admin.commands.call import Call  # noqa: TC001 - typer evaluates it
from client.admin.commands.options import Topic  # noqa: TC001 - typer evaluates it

if TYPE_CHECKING:
    from collections.abc import Callable


def stats(
    call: Call,
    topic: Topic,
    earliest: Annotated[
        bool,
        typer.Option(
            "--get-earliest-time-in-backlog",
            "-etb",
            help="Include the publish time of the oldest message of each backlog.",
        ),
    ] = False,
) -> None:
    """Show the statistics of a topic: backlogs, rates, producers and consumers.

    Examples:
    floodgate-admin topics stats acme/orders/eu
    """
    parameters = {"getEarliestTimeInBacklog": earliest}
    call.table(
        f"get the statistics of {topic}",
        lambda admin: admin.calls.ask("GET", topic, "stats", parameters=parameters),
    )


def partitioned_stats(
    call: Call,
    topic: Topic,
    per_partition: Annotated[
        bool, typer.Option("--per-partition", help="Show each partition too.")
    ] = False,
) -> None:
    """Show the statistics of a partitioned topic, summed over its partitions.

    Examples:
    floodgate-admin topics partitioned-stats acme/orders/us --per-partition
    """
    parameters = {"perPartition": str(per_partition).lower()}
    call.table(
        f"get the statistics of {topic}",
        lambda admin: admin.calls.ask("GET", topic, "partitioned-stats", parameters=parameters),
    )


def stats_internal(call: Call, topic: Topic) -> None:
    """Show the ledgers and cursors of a topic.

    Examples:
    floodgate-admin topics stats-internal acme/orders/eu
    """
    call.table(
        f"get the ledgers of {topic}",
        lambda admin: admin.calls.ask("GET", topic, "internalStats"),
    )


def partitioned_stats_internal(call: Call, topic: Topic) -> None:
    """Show the ledgers and cursors of a topic's partitions.

    Examples:
    floodgate-admin topics partitioned-stats-internal acme/orders/us
    """
    call.table(
        f"get the ledgers of {topic}",
        lambda admin: admin.calls.ask("GET", topic, "partitioned-internalStats"),
    )


def info_internal(call: Call, topic: Topic) -> None:
    """Show the ledgers and cursors of a topic as they are stored.

    Examples:
    floodgate-admin topics info-internal acme/orders/eu
    """
    call.table(
        f"get the ledgers of {topic}",
        lambda admin: admin.calls.ask("GET", topic, "internal-info"),
    )


VERBS: dict[str, Callable[..., None]] = {
    "stats": stats,
    "partitioned-stats": partitioned_stats,
    "stats-internal": stats_internal,
    "partitioned-stats-internal": partitioned_stats_internal,
    "info-internal": info_internal,
}
