"""``floodgate-admin topics`` and ``schemas``: commands for topics, partitions and schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from client.admin.commands.options import Option
from client.admin.commands.verbs import Done, Function, Verb, add, group, lines, table, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from client.admin.commands.call import Call
    from client.admin.commands.output import Output
    from client.admin.commands.values import Pairs
    from client.admin.pulsar_admin import PulsarAdmin
    from proto.names import NamespaceName, TopicName

schemas = group("schemas", "Schemas of topics, and their versions.",
            "upload acme/orders/eu -f schema.json", "get acme/orders/eu",
            "VERB --help")  # fmt: skip
MAX_FILE_BYTES = 8 * 1024 * 1024
_PATH = "schemas/{topic.namespace}/{topic.local_name}"


class SchemaFile(dict[str, object]):
    """A schema as JSON: the format of pulsar-admin's files and of the admin REST API."""


def parsed_file(text: str) -> SchemaFile:
    """Read a schema from a JSON file with ``type``, ``schema`` and ``properties``.

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


def get_schema(call: Call, topic: TopicName, version: int | None, every: bool) -> None:
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
    schemas,
    Function("get", get_schema),
    Verb("upload", "Upload a schema for a topic: a new version, unless it is there already.",
         f"POST {_PATH}/schema {{file}}", "give {topic} a schema", Done("uploaded {topic}"),
         "-f schema.json", _FILE),
    Verb("delete", "Delete the schema of a topic.", f"DELETE {_PATH}/schema?force={{all_versions}}",
         "delete the schema of {topic}", Done("deleted {topic}")),
    Verb("compatibility", "Check whether a topic would accept a schema.",
         f"POST {_PATH}/compatibility {{file}}", "compare a schema with that of {topic}", table,
         "-f schema.json", _FILE),
)  # fmt: skip


app = group("topics", "Topics: partitions, properties, messages, subscriptions, statistics.",
            "create acme/orders/eu -p team=red,tier=1",
            "create-partitioned-topic acme/orders/us -p 4", "list acme/orders",
            "VERB --help")  # fmt: skip


def list_topics(
    call: Call,
    namespace: NamespaceName,
    domain: Sequence[str],
    bundle: str | None,
    include_system_topic: bool,
    with_properties: Pairs,
) -> None:
    """List the topics of a namespace, one name per line; each partition has its own name.

    Without -td persistent topics come first, then non-persistent ones.
    -p is a filter of the broker; brokers without a property plug-in ignore it.

    Examples:
    floodgate-admin topics list acme/orders
    floodgate-admin topics list acme/orders -p team=red,tier=1
    floodgate-admin topics list acme/orders -td non_persistent --json
    floodgate-admin topics list acme/orders -b 0x00000000_0x40000000
    """
    call.run(
        f"list the topics of {namespace}",
        lambda admin, output: output.stream(
            admin.topics.list(
                namespace,
                domain,
                bundle=bundle,
                include_system_topics=include_system_topic,
                properties=with_properties,
            )
        ),
    )


def list_partitioned_topics(
    call: Call, namespace: NamespaceName, include_system_topic: bool
) -> None:
    """List the partitioned topics of a namespace, without their partitions.

    Examples:
    floodgate-admin topics list-partitioned-topics acme/orders
    """
    call.run(
        f"list the partitioned topics of {namespace}",
        lambda admin, output: output.stream(
            admin.topics.list_partitioned(namespace, include_system_topics=include_system_topic)
        ),
    )


def create_partitioned_topic(
    call: Call, topic: TopicName, partitions: int, partitioned_metadata: Pairs
) -> None:
    """Create a partitioned topic, and all its partitions.

    Examples:
    floodgate-admin topics create-partitioned-topic acme/orders/us -p 4
    floodgate-admin topics create-partitioned-topic acme/orders/us -p 4 -m team=blue
    """
    call.change(
        f"create {topic} with {partitions} partitions",
        f"created {topic}",
        lambda admin: admin.topics.create_partitioned(topic, partitions, partitioned_metadata),
        partitions=partitions,
    )


add(
    app,
    Function("list", list_topics),
    Function("list-partitioned-topics", list_partitioned_topics),
    Verb("create", "Create a topic without partitions.", "PUT {topic} {metadata}", "create {topic}",
         Done("created {topic}"), "\n-p team=red,tier=1\nnon-persistent://acme/orders/live"),
    Verb("delete", "Delete a topic that is not partitioned.", "DELETE {topic}?force={force}",
         "delete {topic}", Done("deleted {topic}")),
    Function("create-partitioned-topic", create_partitioned_topic),
    Verb("update-partitioned-topic",
         "Add partitions to a partitioned topic; they never become fewer.",
         "POST {partitioned}/partitions?updateLocalTopicOnly={local}&force={unchecked}"
         " {partitions}",
         "give {partitioned} {partitions} partitions", Done("updated {partitioned}", "partitions"),
         "-p 8"),
    Verb("delete-partitioned-topic", "Delete a partitioned topic with all its partitions.",
         "DELETE {partitioned}/partitions?force={force}", "delete {partitioned} and its partitions",
         Done("deleted {partitioned}")),
    Verb("get-partitioned-topic-metadata",
         "Show the number of partitions of a topic (0: not partitioned) and its properties.",
         "GET {partitioned}/partitions", "get the partitions of {partitioned}", table),
    Verb("lookup",
         "Show the address of the broker that serves a topic; --json shows all addresses.",
         "GET /lookup/v2/topic/{topic}", "look up {topic}",
         lines(lambda found: [str(found.get("brokerUrl"))])),
    Verb("bundle-range", "Show the hash range (bundle) of a topic.",
         "GET /lookup/v2/topic/{topic}/bundle", "get the bundle of {topic}", text("bundleRange")),
    Verb("get-properties", "Show the properties of a topic.", "GET {topic}/properties",
         "get the properties of {topic}", table),
    Verb("update-properties", "Set some properties of a topic; other properties are not changed.",
         "PUT {topic}/properties {properties}", "set the properties of {topic}",
         Done("updated {topic}", "properties"), "-p tier=2 -p owner=ann"),
    Verb("remove-properties", "Remove one property of a topic.",
         "DELETE {topic}/properties?key={property}", "remove the property {property} of {topic}",
         Done("updated {topic}", "removed=property"), "-k tier"),
)  # fmt: skip
