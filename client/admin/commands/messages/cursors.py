"""Verbs that move the cursors of subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from client.admin.commands.call import Call, Changed
from client.admin.commands.messages.options import MaybeId, Subscription  # noqa: TC001 - typer evaluates it
from client.admin.commands.options import Topic  # noqa: TC001 - typer evaluates it
from client.admin.commands.units import seconds
from limiter.clock import LoopClock

if TYPE_CHECKING:
    from collections.abc import Callable


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def skip(
    call: Call,
    topic: Topic,
    subscription: Subscription,
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="Number of entries.")],
) -> None:
    """Skip the next entries of a subscription; an entry is a message or a batch.

    Examples:
    floodgate-admin topics skip acme/orders/eu -s billing -n 10
    """
    call.change(
        f"skip messages of {subscription}",
        Changed("skipped", f"{_entries(count)} of {subscription}", topic=str(topic)),
        lambda admin: admin.calls.ask("POST", topic, "subscription", subscription, "skip", count),
    )


def clear_backlog(call: Call, topic: Topic, subscription: Subscription) -> None:
    """Skip all messages of a subscription.

    Examples:
    floodgate-admin topics clear-backlog acme/orders/eu -s billing
    """
    call.change(
        f"clear the backlog of {subscription}",
        Changed("cleared", f"the backlog of {subscription}", topic=str(topic)),
        lambda admin: admin.calls.ask("POST", topic, "subscription", subscription, "skip_all"),
    )


ExpireTime = Annotated[
    int,
    typer.Option(
        "--expireTime", "-t", parser=seconds, metavar="TIME", help="Age: 90s, 10m, 3h, ..."
    ),
]


def expire_messages(
    call: Call, topic: Topic, subscription: Subscription, expire_time: ExpireTime
) -> None:
    """Acknowledge the messages of a subscription that are older than some time.

    Examples:
    floodgate-admin topics expire-messages acme/orders/eu -s billing -t 1h
    """
    call.change(
        f"expire messages of {subscription}",
        Changed("expired", f"messages of {subscription}", topic=str(topic)),
        lambda admin: admin.calls.ask(
            "POST", topic, "subscription", subscription, "expireMessages", expire_time
        ),
    )


def expire_messages_all_subscriptions(call: Call, topic: Topic, expire_time: ExpireTime) -> None:
    """Acknowledge messages older than some time, for all subscriptions.

    Examples:
    floodgate-admin topics expire-messages-all-subscriptions acme/orders/eu -t 1h
    """
    call.change(
        f"expire messages of {topic}",
        Changed("expired", f"messages of {topic}"),
        lambda admin: admin.calls.ask(
            "POST", topic, "all_subscription", "expireMessages", expire_time
        ),
    )


def reset_cursor(
    call: Call,
    topic: Topic,
    subscription: Subscription,
    back: Annotated[
        int | None,
        typer.Option(
            "--time", "-t", parser=seconds, metavar="TIME", help="How far back: 90s, 10m, 3h, ..."
        ),
    ] = None,
    message_id: MaybeId = None,
    exclude: Annotated[
        bool, typer.Option("--exclude-reset-position", "-e", help="Start after the message.")
    ] = False,
) -> None:
    """Move a subscription back to a time, or to a message.

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
        Changed("reset", subscription, topic=str(topic)),
        lambda admin: admin.calls.ask("POST", topic, *segments, body=body),
    )


def analyze_backlog(call: Call, topic: Topic, subscription: Subscription) -> None:
    """Count the entries and messages in the backlog of a subscription.

    Examples:
    floodgate-admin topics analyze-backlog acme/orders/eu -s billing
    """
    call.table(
        f"analyze the backlog of {subscription}",
        lambda admin: admin.calls.ask(
            "POST", topic, "subscription", subscription, "analyzeBacklog"
        ),
    )


VERBS: dict[str, Callable[..., None]] = {
    "skip": skip,
    "clear-backlog": clear_backlog,
    "expire-messages": expire_messages,
    "expire-messages-all-subscriptions": expire_messages_all_subscriptions,
    "reset-cursor": reset_cursor,
    "analyze-backlog": analyze_backlog,
}
