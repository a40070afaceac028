"""The commands ``floodgate-admin brokers``, ``floodgate`` and ``faults``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from client.admin.commands.options import Option, flag, number, parsed
from client.admin.commands.values import document, milliseconds
from client.admin.commands.verbs import (
    Done,
    Function,
    Verb,
    add,
    group,
    lines,
    names,
    sorted_names,
    sorted_table,
    table,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from client.admin.commands.call import Call
    from client.admin.commands.output import Output
    from client.admin.commands.verbs import Asked

faults = group("faults", "Fault injection, in a broker or proxy with floodgateFaultsEnabled=true.",
               """set '{"on": ["SEND"], "do": {"action": "drop"}}'""", "list", "clear")  # fmt: skip


def clear_faults(call: Call, fault_id: str | None) -> None:
    """Remove an injected fault, or all; commands that a fault has delayed are still processed.

    Examples:
    floodgate-admin faults clear fault-1
    """
    if fault_id == "":
        raise typer.BadParameter("'' names no fault: give its ID, or leave it out to clear all")
    call.change(
        "clear the faults",
        f"cleared {fault_id or 'all faults'}",
        lambda admin: admin.floodgate.clear_faults(fault_id),
    )


def _line(fault: dict[str, Any]) -> str:
    of = {key: fault[key] for key in ("on", "direction", "where", "when", "do") if key in fault}
    counts = f"acted {fault.get('fired')} of {fault.get('seen')} times"
    return f"{fault.get('id')}: {counts}: {json.dumps(of)}"


async def _listed(asked: Asked, output: Output) -> None:
    """Write the active injected faults, one per line."""
    found = await asked.rest.value(asked.method, asked.path)
    faults = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    output.either(faults, lambda faults: map(_line, faults))


def parsed_fault(text: str) -> dict[str, Any]:
    """Parse the JSON document that describes a fault to inject.

    Raises:
        typer.BadParameter: The text does not describe a fault.
    """
    found = document(text)
    if not isinstance(found, dict):
        raise typer.BadParameter(
            f'{text[:50]!r} is not a fault: write a JSON object with a member "do"'
        )
    return found


_FAULT = {
    "fault": Option(str, "", "The fault as JSON, or @FILE with it.", "JSON", parser=parsed_fault)
}
_WAIT = {
    "fault_id": Option(str, "", "The fault's name.", "ID"),
    "hits": number("--hits", "Actions to wait for.", 1),
    "timeout": parsed(milliseconds, "--timeout", "Longest wait: 10s, 5m, ...", 10_000),
}  # fmt: skip
add(
    faults,
    Verb("set", "Inject a fault; it acts on later commands.", "POST floodgate/faults {fault}",
         "set the fault", lines(lambda found: [f"Set {found.get('id')}."]),
         """'{"on": ["SEND"], "do": {"action": "drop"}}'\n@slow-lookups.json""", _FAULT),
    Verb("wait", "Wait until a fault has acted --hits times, and print it.",
         "GET floodgate/faults/{fault_id}/wait?hits={hits}&timeoutMs={timeout}",
         "wait for {fault_id}", lines(lambda found: [_line(found)]),
         "fault-1 --hits 3 --timeout 10s", _WAIT),
    Verb("list", "List the injected faults, and how often each has acted.", "GET floodgate/faults",
         "list the faults", _listed, "--json"),
    Function("clear", clear_faults),
)  # fmt: skip


brokers = group("brokers", "Brokers: health, version, and keys that can be changed while they run.",
                "healthcheck", "update-dynamic-config -c maxConcurrentLookupRequest -v 1000",
                "get-all-dynamic-config", "VERB --help")  # fmt: skip
floodgate = group("floodgate", "Functions that only a Floodgate broker has.", "limiter",
                  "import /data/topics")  # fmt: skip


async def _limiter(asked: Asked, output: Output) -> None:
    """Write the topic-list memory limiter's state as JSON, or as the server's readable table."""
    if output.as_json:
        output.json(await asked.mapping())
    else:
        output.either(await asked.rest.text("GET", f"{asked.path}?format=table"), str.splitlines)


def _imported(found: dict[str, Any]) -> Iterator[str]:
    topics = _count(found.get("topics", 0), "topic")
    namespaces = _count(found.get("namespaces", 0), "namespace")
    yield f"Imported {topics} of {namespaces} in {found.get('seconds', 0):.1f} s."
    if found.get("skipped"):
        yield f"Left out {_count(found['skipped'], 'invalid topic')}."


def _moved(found: dict[str, Any]) -> Iterator[str]:
    yield f"The broker's time is now {found.get('time')}."


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


_IMPORT = {
    "path": Option(
        str, "",
        "Text file with one full name a line, Parquet file, or directory of Parquet files, on the "
        "broker's machine and inside its floodgateImportDirectory.", "PATH"),
    "skipInvalid": flag("--skip-invalid",
                        "Skip invalid topics (default: import nothing if any is invalid).",
                        made=lambda skip: skip or None),
}  # fmt: skip
_ADVANCE = {"advance": Option(str, "", "By how much: 90s, 5m, 1h, 2d.", "TIME")}
add(
    brokers,
    Verb("list", "List the brokers by the addresses of their web ports.",
         "GET brokers/{any_cluster}", "list the brokers", names),
    Verb("leader-broker", "Show the broker that leads the cluster.", "GET brokers/leaderBroker",
         "get the leading broker", table),
    Verb("version", "Show the version of the broker.", "GET brokers/version", "get the version",
         text("version")),
    Verb("healthcheck", "Check the health of the broker: prints ok, or exits with status 1.",
         "GET brokers/health?topicVersion={topic_version}", "check the health", text("health"),
         "&& echo up"),
    Verb("list-dynamic-config", "List the keys that can be changed while the broker runs.",
         "GET brokers/configuration", "list the dynamic keys", sorted_names),
    Verb("get-all-dynamic-config",
         "Show the keys that were changed while the broker ran, with their values.",
         "GET brokers/configuration/values", "get the dynamic configuration", sorted_table),
    Verb("get-runtime-config", "Show all keys with their current values.",
         "GET brokers/configuration/runtime", "get the runtime configuration", sorted_table,
         "| grep TopicList"),
    Verb("update-dynamic-config", "Change a key while the broker runs.",
         "POST brokers/configuration/{key}/{value}", "set {key} to {value!r}",
         Done("set {key} to {value}", "key value"), "-c maxConcurrentLookupRequest -v 1000"),
    Verb("delete-dynamic-config",
         "Undo a change: the key gets its value from the configuration file again.",
         "DELETE brokers/configuration/{key}", "undo the change of {key}", Done("reset {key}"),
         "-c maxConcurrentLookupRequest"),
)  # fmt: skip
add(
    floodgate,
    Verb("limiter", "Show the owners of topic-list memory, and the requests that wait for it.",
         "GET floodgate/limiter", "show the limiter", _limiter, "\n--json"),
    Verb("import",
         "Create the topics of a file in the running broker; existing topics are not changed.",
         "POST floodgate/import {*}", "import {path}", lines(_imported),
         "/data/topics\n/data/topics.txt --skip-invalid", _IMPORT),
    Verb("advance", "Move the broker's time ahead: expiry, delays, retention and tokens follow.",
         "POST floodgate/clock {*}", "move the clock", lines(_moved), "1h\n90s", _ADVANCE),
    Verb("reset", "Delete all data of the broker: it is empty then, as when it was new.",
         "POST floodgate/reset", "reset the broker", Done("reset the broker")),
)  # fmt: skip
