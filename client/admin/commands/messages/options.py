"""Options that several verbs about messages and subscriptions have."""

from __future__ import annotations

from typing import Annotated

import typer

from client.admin.commands.units import MessageId, message_id

Subscription = Annotated[
    str, typer.Option("--subscription", "-s", metavar="NAME", help="Name of the subscription.")
]
Id = Annotated[
    MessageId,
    typer.Option(
        "--messageId",
        "--message-id",
        "-m",
        parser=message_id,
        metavar="ID",
        help="LEDGER:ENTRY, earliest or latest.",
    ),
]
MaybeId = Annotated[
    MessageId | None,
    typer.Option(
        "--messageId",
        "--message-id",
        "-m",
        parser=message_id,
        metavar="ID",
        help="LEDGER:ENTRY, earliest or latest.",
    ),
]
