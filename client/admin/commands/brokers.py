"""``floodgate-admin brokers`` and ``floodgate-admin floodgate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from client.admin.commands.call import Call, Changed
from client.admin.commands.options import verb

if TYPE_CHECKING:
    from client.admin.commands.output import Output
    from client.admin.pulsar_admin import PulsarAdmin

brokers = typer.Typer(
    no_args_is_help=True,
    help="Brokers: health, version, and keys that can be changed while they run.",
    epilog="""Examples:
floodgate-admin brokers healthcheck
floodgate-admin brokers update-dynamic-config \\
  -c maxConcurrentLookupRequest -v 1000
floodgate-admin brokers get-all-dynamic-config
floodgate-admin brokers VERB --help""",
)
floodgate = typer.Typer(
    no_args_is_help=True,
    help="Functions that only a Floodgate broker has.",
    epilog="""Examples:
floodgate-admin floodgate limiter
floodgate-admin floodgate import /data/topics""",
)

Key = Annotated[str, typer.Option("--config", "-c", metavar="KEY", help="Name of the key.")]


@verb(brokers, "list")
def list_brokers(
    call: Call,
    cluster: Annotated[
        str | None, typer.Argument(metavar="CLUSTER", help="Name of the cluster; without it any.")
    ] = None,
) -> None:
    """List the brokers by the addresses of their web ports.

    Examples:
    floodgate-admin brokers list
    """
    call.few("list the brokers", lambda admin: admin.brokers.active(cluster))


@verb(brokers, "leader-broker")
def leader_broker(call: Call) -> None:
    """Show the broker that leads the cluster.

    Examples:
    floodgate-admin brokers leader-broker
    """
    call.table("get the leading broker", lambda admin: admin.brokers.leader())


@verb(brokers, "version")
def version(call: Call) -> None:
    """Show the version of the broker.

    Examples:
    floodgate-admin brokers version
    """
    call.text("get the version", "version", lambda admin: admin.brokers.version())


@verb(brokers, "healthcheck")
def healthcheck(
    call: Call,
    topic_version: Annotated[
        str | None,
        typer.Option("--topic-version", "-tv", metavar="V1|V2", help="Passed on to the broker."),
    ] = None,
) -> None:
    """Check the health of the broker: prints ok, or exits with status 1.

    Examples:
    floodgate-admin brokers healthcheck && echo up
    """
    call.text("check the health", "health", lambda admin: admin.brokers.health(topic_version))


@verb(brokers, "list-dynamic-config")
def list_dynamic_config(call: Call) -> None:
    """List the keys that can be changed while the broker runs.

    Examples:
    floodgate-admin brokers list-dynamic-config
    """
    call.few("list the dynamic keys", lambda admin: admin.brokers.dynamic_keys())


@verb(brokers, "get-all-dynamic-config")
def get_all_dynamic_config(call: Call) -> None:
    """Show the keys that were changed while the broker ran, with their values.

    Examples:
    floodgate-admin brokers get-all-dynamic-config
    """
    call.table("get the dynamic configuration", lambda admin: admin.brokers.dynamic_values())


@verb(brokers, "get-runtime-config")
def get_runtime_config(call: Call) -> None:
    """Show all keys with their current values.

    Examples:
    floodgate-admin brokers get-runtime-config | grep TopicList
    """
    call.table("get the runtime configuration", lambda admin: admin.brokers.runtime_configuration())


@verb(brokers, "update-dynamic-config")
def update_dynamic_config(
    call: Call,
    key: Key,
    value: Annotated[
        str, typer.Option("--value", "-v", metavar="VALUE", help="New value of the key.")
    ],
) -> None:
    """Change a key while the broker runs.

    Examples:
    floodgate-admin brokers update-dynamic-config -c maxConcurrentLookupRequest -v 1000
    """
    call.change(
        f"set {key} to {value!r}",
        Changed("set", f"{key} to {value}", key=key, value=value),
        lambda admin: admin.brokers.update_dynamic(key, value),
    )


@verb(brokers, "delete-dynamic-config")
def delete_dynamic_config(call: Call, key: Key) -> None:
    """Undo a change: the key gets its value from the configuration file again.

    Examples:
    floodgate-admin brokers delete-dynamic-config -c maxConcurrentLookupRequest
    """
    call.change(
        f"undo the change of {key}",
        Changed("reset", key),
        lambda admin: admin.brokers.delete_dynamic(key),
    )


@verb(floodgate, "limiter")
def limiter(call: Call) -> None:
    """Show the owners of topic-list memory, and the requests that wait for it.

    Examples:
    floodgate-admin floodgate limiter
    floodgate-admin floodgate limiter --json
    """

    async def write(admin: PulsarAdmin, output: Output) -> None:
        if output.as_json:
            output.json(await admin.floodgate.limiter())
        else:
            output.lines(await admin.floodgate.limiter_table())

    call.run("show the limiter", write)


@verb(floodgate, "import")
def import_topics(
    call: Call,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="Text file with one full name a line, Parquet file, or directory of Parquet "
            "files, on the broker's machine and inside its floodgateImportDirectory.",
        ),
    ],
    skip_invalid: Annotated[
        bool,
        typer.Option(
            "--skip-invalid",
            help="Skip invalid topics (default: import nothing if any is invalid).",
        ),
    ] = False,
) -> None:
    """Create the topics of a file in the running broker; existing topics are not changed.

    Examples:
    floodgate-admin floodgate import /data/topics
    floodgate-admin floodgate import /data/topics.txt --skip-invalid
    """

    async def write(admin: PulsarAdmin, output: Output) -> None:
        found = await admin.floodgate.import_topics(path, skip_invalid=skip_invalid)
        if output.as_json:
            output.json(found)
        else:
            topics = count(found.get("topics", 0), "topic")
            namespaces = count(found.get("namespaces", 0), "namespace")
            output.say(f"Imported {topics} of {namespaces} in {found.get('seconds', 0):.1f} s.")
            if found.get("skipped"):
                output.say(f"Left out {count(found['skipped'], 'invalid topic')}.")

    call.run(f"import {path}", write)


@verb(floodgate, "reset")
def reset(call: Call) -> None:
    """Delete all data of the broker: it is empty then, as when it was new.

    Examples:
    floodgate-admin floodgate reset
    """
    call.change("reset the broker", Changed("reset", "the broker"), _reset)


async def _reset(admin: PulsarAdmin) -> None:
    await admin.floodgate.reset()


def count(number: int, thing: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
