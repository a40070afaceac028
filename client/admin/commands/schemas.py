"""``floodgate-admin schemas``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from client.admin.commands.options import Option
from client.admin.commands.shows import Done, table
from client.admin.commands.verbs import Function, Verb, add, group

if TYPE_CHECKING:
    from client.admin.commands.call import Call
    from client.admin.commands.output import Output
    from client.admin.pulsar_admin import PulsarAdmin
    from proto.names import TopicName

app = group("schemas", "Schemas of topics, and their versions.",
            "upload acme/orders/eu -f schema.json", "get acme/orders/eu",
            "VERB --help")  # fmt: skip
MAX_FILE_BYTES = 8 * 1024 * 1024
_PATH = "schemas/{topic.namespace}/{topic.local_name}"


class SchemaFile(dict[str, object]):
    """A schema in the form of pulsar-admin's files and the admin REST."""


def parsed_file(text: str) -> SchemaFile:
    """Read a file with ``type``, ``schema`` and ``properties``.

    Raises:
        typer.BadParameter: The file is unreadable, or has another form.
    """
    try:
        with Path(text).open(encoding="utf-8") as file:
            found = json.loads(file.read(MAX_FILE_BYTES))
        properties = dict(found.get("properties") or {})
        return SchemaFile(type=found["type"], schema=found["schema"], properties=properties)
    except OSError as error:
        raise typer.BadParameter(f"{text} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise typer.BadParameter(
            f'{text} is no schema: write {{"type": "AVRO", "schema": "...", "properties": {{}}}}'
        ) from None


def get(call: Call, topic: TopicName, version: int | None, every: bool) -> None:
    """Show the schema of a topic.

    Examples:
    floodgate-admin schemas get acme/orders/eu
    floodgate-admin schemas get acme/orders/eu --version 0
    floodgate-admin schemas get acme/orders/eu --all-version --json
    """

    async def write(admin: PulsarAdmin, output: Output) -> None:
        if every:
            found = await admin.schemas.get_all(topic)
            output.table({str(one["version"]): one for one in found})
        else:
            output.table(await admin.schemas.get(topic, version))

    call.run(f"show the schema{'s' if every else ''} of {topic}", write)


_FILE = {
    "file": Option(SchemaFile, "--filename -f", "JSON with type, schema (a text) and properties.",
                   "PATH", parser=parsed_file),
}  # fmt: skip
add(
    app,
    Function("get", get),
    Verb("upload", "Upload a schema for a topic: a new version, unless it is there already.",
         f"POST {_PATH}/schema {{file}}", "give {topic} a schema", Done("uploaded {topic}"),
         "-f schema.json", _FILE),
    Verb("delete", "Delete the schema of a topic.", f"DELETE {_PATH}/schema?force={{all_versions}}",
         "delete the schema of {topic}", Done("deleted {topic}")),
    Verb("compatibility", "Check whether a topic would accept a schema.",
         f"POST {_PATH}/compatibility {{file}}", "compare a schema with that of {topic}", table,
         "-f schema.json", _FILE),
)  # fmt: skip
