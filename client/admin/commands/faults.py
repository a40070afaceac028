"""``floodgate-admin faults``: fault injection, for tests of clients."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from client.admin.commands.options import Option, number, parsed
from client.admin.commands.shows import lines
from client.admin.commands.values import document, milliseconds
from client.admin.commands.verbs import Function, Verb, add, group

if TYPE_CHECKING:
    from client.admin.commands.call import Call
    from client.admin.commands.output import Output
    from client.admin.commands.shows import Asked

faults = group("faults", "Fault injection, in a broker or proxy with floodgateFaultsEnabled=true.",
               """set '{"on": ["SEND"], "do": {"action": "drop"}}'""", "list", "clear")  # fmt: skip


def clear_faults(call: Call, fault_id: str | None) -> None:
    """Remove a fault, or all; delayed commands continue.

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
    """Show the faults, a line each."""
    found = await asked.rest.value(asked.method, asked.path)
    faults = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    output.either(faults, lambda faults: map(_line, faults))


def parsed_fault(text: str) -> dict[str, Any]:
    """Parse a fault.

    Raises:
        typer.BadParameter: The text is not a fault.
    """
    found = document(text)
    if not isinstance(found, dict):
        raise typer.BadParameter(
            f'{text[:50]!r} is no fault: it is a JSON object with a member "do"'
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
    Verb("set", "Inject a fault, from the next command on.", "POST floodgate/faults {fault}",
         "set the fault", lines(lambda found: [f"Set {found.get('id')}."]),
         """'{"on": ["SEND"], "do": {"action": "drop"}}'\n@slow-lookups.json""", _FAULT),
    Verb("wait", "Wait until a fault has acted so often; print it.",
         "GET floodgate/faults/{fault_id}/wait?hits={hits}&timeoutMs={timeout}",
         "wait for {fault_id}", lines(lambda found: [_line(found)]),
         "fault-1 --hits 3 --timeout 10s", _WAIT),
    Verb("list", "List the injected faults, and how often each has acted.", "GET floodgate/faults",
         "list the faults", _listed, "--json"),
    Function("clear", clear_faults),
)  # fmt: skip
