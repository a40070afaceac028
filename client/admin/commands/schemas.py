"""``floodgate-admin schemas``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from client.admin.commands.call import Call, Changed
from client.admin.commands.options import Topic, verb

if TYPE_CHECKING:
    from client.admin.pulsar_admin import PulsarAdmin
    from proto.names import TopicName

app = typer.Typer(
    no_args_is_help=True,
    help="Schemas of topics, and their versions.",
    epilog="""Examples:
floodgate-admin schemas upload acme/orders/eu -f schema.json
floodgate-admin schemas get acme/orders/eu
floodgate-admin schemas VERB --help""",
)
MAX_FILE_BYTES = 8 * 1024 * 1024


class SchemaFile(NamedTuple):
    """A schema as pulsar-admin's files have it."""

    kind: str
    definition: str
    properties: dict[str, str]


def parsed_file(text: str) -> SchemaFile:
    """Read a file with ``type``, ``schema`` and ``properties``.

    Raises:
        typer.BadParameter: It cannot be read, or is of another form.
    """
    try:
        with Path(text).open(encoding="utf-8") as file:
            found = json.loads(file.read(MAX_FILE_BYTES))
        return SchemaFile(found["type"], found["schema"], dict(found.get("properties") or {}))
    except OSError as error:
        raise typer.BadParameter(f"{text} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise typer.BadParameter(
            f'{text} is no schema: write {{"type": "AVRO", "schema": "...", "properties": {{}}}}'
        ) from None


File = Annotated[
    SchemaFile,
    typer.Option(
        "--filename",
        "-f",
        metavar="PATH",
        parser=parsed_file,
        help="JSON with type, schema (a text) and properties.",
    ),
]


@verb(app, "get")
def get(
    call: Call,
    topic: Topic,
    version: Annotated[
        int | None, typer.Option("--version", "-v", help="Version to show; without it the newest.")
    ] = None,
    every: Annotated[bool, typer.Option("--all-version", "-a", help="Show all versions.")] = False,
) -> None:
    """Show the schema of a topic.

    Examples:
    floodgate-admin schemas get acme/orders/eu
    floodgate-admin schemas get acme/orders/eu --version 0
    floodgate-admin schemas get acme/orders/eu --all-version --json
    """
    if every:
        call.table(f"show the schemas of {topic}", lambda admin: _all(admin, topic))
    else:
        call.table(f"show the schema of {topic}", lambda admin: admin.schemas.get(topic, version))


async def _all(admin: PulsarAdmin, topic: TopicName) -> dict[str, Any]:
    return {str(one["version"]): one for one in await admin.schemas.get_all(topic)}


@verb(app, "upload")
def upload(call: Call, topic: Topic, file: File) -> None:
    """Upload a schema for a topic: a new version, unless it is there already.

    Examples:
    floodgate-admin schemas upload acme/orders/eu -f schema.json
    """
    call.change(
        f"give {topic} a schema",
        Changed("uploaded", topic),
        lambda admin: admin.schemas.upload(topic, *file),
    )


@verb(app, "delete")
def delete(
    call: Call,
    topic: Topic,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Delete all versions: the next one is version 0.")
    ] = False,
) -> None:
    """Delete the schema of a topic.

    Examples:
    floodgate-admin schemas delete acme/orders/eu
    """
    call.change(
        f"delete the schema of {topic}",
        Changed("deleted", topic),
        lambda admin: admin.schemas.delete(topic, force=force),
    )


@verb(app, "compatibility")
def compatibility(call: Call, topic: Topic, file: File) -> None:
    """Check whether a topic would accept a schema.

    Examples:
    floodgate-admin schemas compatibility acme/orders/eu -f schema.json
    """
    call.table(
        f"compare a schema with that of {topic}",
        lambda admin: admin.schemas.compatibility(topic, *file),
    )
