"""Verbs that show messages and their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from client.admin.commands.call import Call  # noqa: TC001 - typer evaluates it
from client.admin.commands.messages.options import Id, Subscription  # noqa: TC001 - typer evaluates it
from client.admin.commands.options import Topic  # noqa: TC001 - typer evaluates it
from client.admin.errors import AdminRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.admin.commands.output import Output
    from client.admin.pulsar_admin import PulsarAdmin


_NOT_FOUND = 404


def peek_messages(
    call: Call,
    topic: Topic,
    subscription: Subscription,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of messages.")] = 1,
) -> None:
    """Show the next messages of a subscription, without acknowledging them.

    Examples:
    floodgate-admin topics peek-messages acme/orders/eu -s billing -n 3
    """

    async def write(admin: PulsarAdmin, output: Output) -> None:
        found = []
        for place in range(1, count + 1):
            segments = ("subscription", subscription, "position", place)
            try:
                found.append(await admin.calls.message(topic, *segments))
            except AdminRefusedError as error:
                if error.status != _NOT_FOUND or not found:
                    raise
                break
        _messages(output, found)

    call.run(f"peek at {subscription}", write)


def examine_messages(
    call: Call,
    topic: Topic,
    initial_position: Annotated[
        str, typer.Option("--initialPosition", "-i", help="Count from earliest or latest.")
    ] = "latest",
    message_position: Annotated[
        int,
        typer.Option("--messagePosition", "-m", min=1, help="Position from there; 1 is the first."),
    ] = 1,
) -> None:
    """Show one stored message, counted from the first or the last.

    Examples:
    floodgate-admin topics examine-messages acme/orders/eu -i earliest -m 2
    """
    parameters = {"initialPosition": initial_position, "messagePosition": str(message_position)}

    async def write(admin: PulsarAdmin, output: Output) -> None:
        _messages(
            output, [await admin.calls.message(topic, "examinemessage", parameters=parameters)]
        )

    call.run(f"examine {topic}", write)


def get_message_by_id(
    call: Call,
    topic: Topic,
    ledger: Annotated[int, typer.Option("--ledgerId", "-l", help="Ledger of the message.")],
    entry: Annotated[int, typer.Option("--entryId", "-e", help="Entry of the message.")],
) -> None:
    """Show a message by its id.

    Examples:
    floodgate-admin topics get-message-by-id acme/orders/eu -l 12 -e 0
    """

    async def write(admin: PulsarAdmin, output: Output) -> None:
        segments = ("ledger", ledger, "entry", entry)
        _messages(output, [await admin.calls.message(topic, *segments)])

    call.run(f"get a message of {topic}", write)


def _messages(output: Output, found: list[dict[str, Any]]) -> None:
    if output.as_json:
        output.json(found)
        return
    for number, message in enumerate(found):
        if number:
            output.say("")
        output.table(message)


def get_message_id(
    call: Call,
    topic: Topic,
    milliseconds: Annotated[
        int,
        typer.Option("--datetime", "-d", metavar="MS", help="Milliseconds since 1970-01-01 UTC."),
    ],
) -> None:
    """Show the id of the first message that was published at a time or later.

    Examples:
    floodgate-admin topics get-message-id acme/orders/eu -d 1700000000000
    """
    call.table(
        f"get a message id of {topic}",
        lambda admin: admin.calls.ask("GET", topic, "messageid", milliseconds),
    )


def last_message_id(call: Call, topic: Topic) -> None:
    """Show the id of the last message.

    Examples:
    floodgate-admin topics last-message-id acme/orders/eu
    """
    call.table(
        f"get the last message id of {topic}",
        lambda admin: admin.calls.ask("GET", topic, "lastMessageId"),
    )


def get_backlog_size(call: Call, topic: Topic, message_id: Id) -> None:
    """Show how many bytes are stored after a message.

    Examples:
    floodgate-admin topics get-backlog-size acme/orders/eu -m 12:0
    """
    call.value(
        f"get the size of the backlog of {topic}",
        lambda admin: admin.calls.ask("PUT", topic, "backlogSize", body=message_id),
    )


VERBS: dict[str, Callable[..., None]] = {
    "peek-messages": peek_messages,
    "examine-messages": examine_messages,
    "get-message-by-id": get_message_by_id,
    "get-message-id": get_message_id,
    "last-message-id": last_message_id,
    "get-backlog-size": get_backlog_size,
}
