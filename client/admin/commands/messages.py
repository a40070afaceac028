"""``floodgate-admin topics``: commands for messages, subscriptions, statistics and lifecycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from client.admin.commands.options import OPTIONS
from client.admin.commands.verbs import Done, Function, Verb, message, names, table, value
from client.admin.errors import AdminRefusedError
from limiter.clock import LoopClock

if TYPE_CHECKING:
    from client.admin.commands.call import Call
    from client.admin.commands.output import Output
    from client.admin.commands.values import MessageId
    from client.admin.commands.verbs import Asked
    from proto.names import TopicName

_NOT_FOUND = 404


def reset_cursor(
    call: Call,
    topic: TopicName,
    subscription: str,
    back: int | None,
    message_id: MessageId | None = None,
    exclude: bool = False,
) -> None:
    """Move a subscription back to an earlier time, or to a message.

    Examples:
    floodgate-admin topics reset-cursor acme/orders/eu -s billing -t 1h
    floodgate-admin topics reset-cursor acme/orders/eu -s billing -m 12:0
    """
    if (back is None) == (message_id is None):
        raise typer.BadParameter("give either -t or -m: where the subscription is to start")
    segments: list[object] = ["subscription", subscription, "resetcursor"]
    body: dict[str, Any] | None = None
    if message_id is not None:
        body = {**message_id, "excluded": exclude}
    elif back is not None:
        segments.append(max(0, LoopClock().wall_ms() - round(back * 1000)))
    call.change(
        f"reset {subscription}",
        f"reset {subscription}",
        lambda admin: admin.calls.ask("POST", topic, *segments, body=body),
        topic=str(topic),
    )


async def _peek(asked: Asked, output: Output) -> None:
    """Write up to ``count`` unacknowledged messages of a subscription, from the oldest on."""
    found: list[dict[str, Any]] = []
    for place in range(1, asked.values["count"] + 1):
        try:
            found.append(await asked.rest.message(f"{asked.path}/{place}"))
        except AdminRefusedError as error:
            if error.status != _NOT_FOUND or not found:
                raise
            break
    output.messages(found)


VERBS = (
    Verb("stats", "Show the statistics of a topic: backlogs, rates, producers and consumers.",
         "GET {topic}/stats?getEarliestTimeInBacklog={earliest}", "get the statistics of {topic}",
         table),
    Verb("partitioned-stats",
         "Show the statistics of a partitioned topic, summed over its partitions.",
         "GET {partitioned}/partitioned-stats?perPartition={per_partition}",
         "get the statistics of {partitioned}", table, "--per-partition"),
    Verb("stats-internal", "Show the ledgers and cursors of a topic.", "GET {topic}/internalStats",
         "get the ledgers of {topic}", table),
    Verb("partitioned-stats-internal", "Show the ledgers and cursors of a topic's partitions.",
         "GET {partitioned}/partitioned-internalStats", "get the ledgers of {partitioned}", table),
    Verb("info-internal", "Show the ledgers and cursors of a topic as they are stored.",
         "GET {topic}/internal-info", "get the ledgers of {topic}", table),

    Verb("subscriptions", "List the subscriptions of a topic.", "GET {topic}/subscriptions",
         "list the subscriptions of {topic}", names),
    Verb("create-subscription",
         "Create a subscription, at the end of a topic or at the message of -m.",
         "PUT {topic}/subscription/{subscription} {message_id?}",
         "create the subscription {subscription} of {topic}",
         Done("created {subscription}", "topic"), "-s billing\n-s audit -m earliest"),
    Verb("unsubscribe", "Delete a subscription.",
         "DELETE {topic}/subscription/{subscription}?force={force}",
         "delete the subscription {subscription} of {topic}",
         Done("deleted {subscription}", "topic"), "-s billing"),
    Verb("get-subscription-properties", "Show the properties of a subscription.",
         "GET {topic}/subscription/{subscription}/properties",
         "get the properties of {subscription}", table, "-s billing"),
    Verb("update-subscription-properties", "Replace the properties of a subscription.",
         "PUT {topic}/subscription/{subscription}/properties {properties}",
         "set the properties of {subscription}", Done("updated {subscription}", "properties"),
         "-s billing -p team=red"),

    Verb("skip", "Skip the next entries of a subscription; an entry is a message or a batch.",
         "POST {topic}/subscription/{subscription}/skip/{entries}",
         "skip messages of {subscription}", Done("skipped {entries} of {subscription}", "topic"),
         "-s billing -n 10"),
    Verb("clear-backlog", "Skip all messages of a subscription.",
         "POST {topic}/subscription/{subscription}/skip_all", "clear the backlog of {subscription}",
         Done("cleared the backlog of {subscription}", "topic"), "-s billing"),
    Verb("expire-messages",
         "Acknowledge the messages of a subscription that are older than some time.",
         "POST {topic}/subscription/{subscription}/expireMessages/{age}",
         "expire messages of {subscription}", Done("expired messages of {subscription}", "topic"),
         "-s billing -t 1h"),
    Verb("expire-messages-all-subscriptions",
         "Acknowledge messages older than some time, for all subscriptions.",
         "POST {topic}/all_subscription/expireMessages/{age}", "expire messages of {topic}",
         Done("expired messages of {topic}"), "-t 1h"),
    Function("reset-cursor", reset_cursor),
    Verb("analyze-backlog", "Count the entries and messages in the backlog of a subscription.",
         "POST {topic}/subscription/{subscription}/analyzeBacklog",
         "analyze the backlog of {subscription}", table, "-s billing"),

    Verb("peek-messages", "Show the next messages of a subscription, without acknowledging them.",
         "GET {topic}/subscription/{subscription}/position", "peek at {subscription}", _peek,
         "-s billing -n 3", {"count": OPTIONS["count"]}),
    Verb("examine-messages", "Show one stored message, counted from the first or the last.",
         "GET {topic}/examinemessage?initialPosition={from_end}&messagePosition={position}",
         "examine {topic}", message, "-i earliest -m 2"),
    Verb("get-message-by-id", "Show a message by its id.",
         "GET {topic}/ledger/{ledger}/entry/{entry}", "get a message of {topic}", message,
         "-l 12 -e 0"),
    Verb("get-message-id",
         "Show the id of the first message that was published at a time or later.",
         "GET {topic}/messageid/{datetime}", "get a message id of {topic}", table,
         "-d 1700000000000"),
    Verb("last-message-id", "Show the id of the last message.", "GET {topic}/lastMessageId",
         "get the last message id of {topic}", table),
    Verb("get-backlog-size", "Show how many bytes are stored after a message.",
         "PUT {topic}/backlogSize {message_id}", "get the size of the backlog of {topic}", value,
         "-m 12:0"),

    Verb("terminate",
         "Terminate a topic: it accepts no more messages. Prints the id of the last one.",
         "POST {topic}/terminate", "terminate {topic}", table),
    Verb("partitioned-terminate",
         "Terminate all partitions of a topic. Prints the id of the last message of each.",
         "POST {partitioned}/terminate/partitions", "terminate {partitioned}", table),
    Verb("truncate", "Skip all backlogs of a topic, and delete its closed ledgers.",
         "DELETE {topic}/truncate", "truncate {topic}", Done("truncated {topic}")),
    Verb("unload", "Close a topic; its clients reconnect.", "PUT {topic}/unload", "unload {topic}",
         Done("unloaded {topic}")),
    Verb("trim-topic", "Delete the ledgers of a topic that no subscription needs.",
         "POST {topic}/trim", "trim {topic}", Done("trimmed {topic}")),
    Verb("compact", "Start the compaction of a topic.", "PUT {topic}/compaction", "compact {topic}",
         Done("compacting {topic}")),
    Verb("compaction-status",
         "Show whether a topic is being compacted, and the result of the last compaction.",
         "GET {topic}/compaction", "get the compaction of {topic}", table),
    Verb("create-missed-partitions", "Create the missing partitions of a partitioned topic.",
         "POST {partitioned}/createMissedPartitions",
         "create the missing partitions of {partitioned}", Done("updated {partitioned}")),
)  # fmt: skip
