"""``floodgate-admin faults``: fault injection, for tests of clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from client.admin.commands.call import Call, Changed
from client.admin.commands.options import verb

if TYPE_CHECKING:
    from client.admin.commands.output import Output
    from client.admin.pulsar_admin import PulsarAdmin

faults = typer.Typer(
    no_args_is_help=True,
    help="Fault injection, in a broker or proxy with floodgateFaultsEnabled=true.",
    epilog="""Examples:
floodgate-admin faults set '{"on": ["SEND"], "do": {"action": "drop"}}'
floodgate-admin faults list
floodgate-admin faults clear""",
)


@verb(faults, "set")
def set_fault(
    call: Call,
    document: Annotated[
        str,
        typer.Argument(metavar="JSON", help="The fault as JSON, or @FILE with it."),
    ],
) -> None:
    """Inject a fault, from the next command on.

    Examples:
    floodgate-admin faults set '{"on": ["SEND"], "do": {"action": "drop"}}'
    floodgate-admin faults set @slow-lookups.json
    """
    fault = _fault(document)

    async def write(admin: PulsarAdmin, output: Output) -> None:
        found = await admin.floodgate.set_fault(fault)
        if output.as_json:
            output.json(found)
        else:
            output.say(f"Set {found.get('id')}.")

    call.run("set the fault", write)


@verb(faults, "list")
def list_faults(call: Call) -> None:
    """List the injected faults, and how often each has acted.

    Examples:
    floodgate-admin faults list --json
    """

    async def write(admin: PulsarAdmin, output: Output) -> None:
        found = await admin.floodgate.faults()
        if output.as_json:
            output.json(found)
        else:
            output.lines("\n".join(map(_line, found)))

    call.run("list the faults", write)


@verb(faults, "clear")
def clear_faults(
    call: Call,
    fault_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Fault to remove; without it all.")
    ] = None,
) -> None:
    """Remove a fault, or all; commands that they delay go on.

    Examples:
    floodgate-admin faults clear fault-1
    """
    if fault_id == "":
        raise typer.BadParameter("'' names no fault: give its ID, or leave it out to clear all")
    call.change(
        "clear the faults",
        Changed("cleared", fault_id or "all faults"),
        lambda admin: admin.floodgate.clear_faults(fault_id),
    )


def _line(fault: dict[str, Any]) -> str:
    of = {key: fault[key] for key in ("on", "direction", "where", "when", "do") if key in fault}
    counts = f"acted {fault.get('fired')} of {fault.get('seen')} times"
    return f"{fault.get('id')}: {counts}: {json.dumps(of)}"


def _fault(text: str) -> dict[str, Any]:
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text()
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"{text[:200]}: {error}") from None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise typer.BadParameter(
            f'{text[:50]!r} is no fault: it is a JSON object with a member "do"'
        )
    return found
