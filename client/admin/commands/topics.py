"""``floodgate-admin topics``."""

from __future__ import annotations

from typing import Annotated

import typer

from client.admin.commands.call import Call, Changed
from client.admin.commands.options import (
    Domain,
    Filter,
    Force,
    Metadata,
    Namespace,
    PartitionedMetadata,
    Partitions,
    SystemTopics,
    Topic,
    Update,
    domains_of,
    merged,
    verb,
)

app = typer.Typer(
    no_args_is_help=True,
    help="Topics: partitions, properties, messages, subscriptions, statistics.",
    epilog="""Examples:
floodgate-admin topics create acme/orders/eu -p team=red,tier=1
floodgate-admin topics create-partitioned-topic acme/orders/us -p 4
floodgate-admin topics list acme/orders
floodgate-admin topics VERB --help""",
)


@verb(app, "list")
def list_topics(
    call: Call,
    namespace: Namespace,
    domain: Domain = None,
    bundle: Annotated[
        str | None,
        typer.Option("--bundle", "-b", metavar="RANGE", help="Only this hash range (bundle)."),
    ] = None,
    include_system_topic: SystemTopics = False,
    properties: Filter = None,
) -> None:
    """List the topics of a namespace, one name a line; each partition is a name.

    Without -td persistent topics come first, then non-persistent ones.
    -p is a filter of the broker; brokers without a property plug-in ignore it.

    Examples:
    floodgate-admin topics list acme/orders
    floodgate-admin topics list acme/orders -p team=red,tier=1
    floodgate-admin topics list acme/orders -td non_persistent --json
    floodgate-admin topics list acme/orders -b 0x00000000_0x40000000
    """
    call.names(
        f"list the topics of {namespace}",
        lambda admin: admin.topics.list(
            namespace,
            domains_of(domain),
            bundle=bundle,
            include_system_topics=include_system_topic,
            properties=merged(properties),
        ),
    )


@verb(app, "list-partitioned-topics")
def list_partitioned_topics(
    call: Call, namespace: Namespace, include_system_topic: SystemTopics = False
) -> None:
    """List the partitioned topics of a namespace, without their partitions.

    Examples:
    floodgate-admin topics list-partitioned-topics acme/orders
    """
    call.names(
        f"list the partitioned topics of {namespace}",
        lambda admin: admin.topics.list_partitioned(
            namespace, include_system_topics=include_system_topic
        ),
    )


@verb(app, "create")
def create(call: Call, topic: Topic, metadata: Metadata = None) -> None:
    """Create a topic without partitions.

    Examples:
    floodgate-admin topics create acme/orders/eu
    floodgate-admin topics create acme/orders/eu -p team=red,tier=1
    floodgate-admin topics create non-persistent://acme/orders/live
    """
    call.change(
        f"create {topic}",
        Changed("created", topic),
        lambda admin: admin.topics.create(topic, merged(metadata)),
    )


@verb(app, "delete")
def delete(call: Call, topic: Topic, force: Force = False) -> None:
    """Delete a topic that is not partitioned.

    Examples:
    floodgate-admin topics delete acme/orders/eu
    """
    call.change(
        f"delete {topic}",
        Changed("deleted", topic),
        lambda admin: admin.topics.delete(topic, force=force),
    )


@verb(app, "create-partitioned-topic")
def create_partitioned_topic(
    call: Call, topic: Topic, partitions: Partitions, metadata: PartitionedMetadata = None
) -> None:
    """Create a topic and its partitions.

    Examples:
    floodgate-admin topics create-partitioned-topic acme/orders/us -p 4
    floodgate-admin topics create-partitioned-topic acme/orders/us -p 4 -m team=blue
    """
    call.change(
        f"create {topic} with {partitions} partitions",
        Changed("created", topic, partitions=partitions),
        lambda admin: admin.topics.create_partitioned(topic, partitions, merged(metadata)),
    )


@verb(app, "update-partitioned-topic")
def update_partitioned_topic(
    call: Call,
    topic: Topic,
    partitions: Partitions,
    update_local_only: Annotated[
        bool,
        typer.Option("--update-local-only", "-ulo", help="Only in the cluster of --admin-url."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Skip the check of the topic's state.")
    ] = False,
) -> None:
    """Add partitions to a partitioned topic; they never become fewer.

    Examples:
    floodgate-admin topics update-partitioned-topic acme/orders/us -p 8
    """
    call.change(
        f"give {topic} {partitions} partitions",
        Changed("updated", topic, partitions=partitions),
        lambda admin: admin.topics.update_partitioned(
            topic, partitions, force=force, local_only=update_local_only
        ),
    )


@verb(app, "delete-partitioned-topic")
def delete_partitioned_topic(call: Call, topic: Topic, force: Force = False) -> None:
    """Delete a partitioned topic with all its partitions.

    Examples:
    floodgate-admin topics delete-partitioned-topic acme/orders/us
    """
    call.change(
        f"delete {topic} and its partitions",
        Changed("deleted", topic),
        lambda admin: admin.topics.delete_partitioned(topic, force=force),
    )


@verb(app, "get-partitioned-topic-metadata")
def get_partitioned_topic_metadata(call: Call, topic: Topic) -> None:
    """Show the number of partitions of a topic (0: not partitioned) and its properties.

    Examples:
    floodgate-admin topics get-partitioned-topic-metadata acme/orders/us
    """
    call.table(
        f"get the partitions of {topic}", lambda admin: admin.topics.partitioned_metadata(topic)
    )


@verb(app, "lookup")
def lookup(call: Call, topic: Topic) -> None:
    """Show the address of the broker that serves a topic; --json shows all addresses.

    Examples:
    floodgate-admin topics lookup acme/orders/eu
    """
    call.member(f"look up {topic}", "brokerUrl", lambda admin: admin.topics.lookup(topic))


@verb(app, "bundle-range")
def bundle_range(call: Call, topic: Topic) -> None:
    """Show the hash range (bundle) of a topic.

    Examples:
    floodgate-admin topics bundle-range acme/orders/eu
    """
    call.text(
        f"get the bundle of {topic}", "bundleRange", lambda admin: admin.topics.bundle_range(topic)
    )


@verb(app, "get-properties")
def get_properties(call: Call, topic: Topic) -> None:
    """Show the properties of a topic.

    Examples:
    floodgate-admin topics get-properties acme/orders/eu
    """
    call.table(f"get the properties of {topic}", lambda admin: admin.topics.properties(topic))


@verb(app, "update-properties")
def update_properties(
    call: Call,
    topic: Topic,
    properties: Update,
) -> None:
    """Set some properties of a topic; other properties are not changed.

    Examples:
    floodgate-admin topics update-properties acme/orders/eu -p tier=2 -p owner=ann
    """
    call.change(
        f"set the properties of {topic}",
        Changed("updated", topic, properties=merged(properties)),
        lambda admin: admin.topics.update_properties(topic, merged(properties)),
    )


@verb(app, "remove-properties")
def remove_properties(
    call: Call,
    topic: Topic,
    key: Annotated[str, typer.Option("--key", "-k", help="Property to remove.")],
) -> None:
    """Remove one property of a topic.

    Examples:
    floodgate-admin topics remove-properties acme/orders/eu -k tier
    """
    call.change(
        f"remove the property {key} of {topic}",
        Changed("updated", topic, removed=key),
        lambda admin: admin.topics.remove_property(topic, key),
    )
