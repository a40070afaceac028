"""docs/protocol.md describes every command, completely and truthfully."""

import ast
import re
from functools import partial
from pathlib import Path

import pytest

from broker.commands import transactions
from broker.commands.table import COMMANDS as BROKER
from client.connection import attached
from client.connection.cnx import _ANSWERS
from proto import PulsarApi_pb2 as pb
from proxy.commands.table import COMMANDS as PROXY
from server.connection.command_table import CommandTable

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(pb.BaseCommand.Type.keys())
ROW = re.compile(
    r"^\| (?P<names>`[A-Z_]+`(, `[A-Z_]+`)*) \| (?P<broker>[^|]+) \| (?P<proxy>[^|]+) "
    r"\| (?P<library>[^|]+) \|$"
)
WORDS = {
    "broker": {"handles", "refuses", "sends", "closes"},
    "proxy": {"handles", "sends", "closes"},
    "library": {"sends", "reads", "-"},
}
ALWAYS_READ = {"CONNECTED", "PING", "PONG", "ERROR", "AUTH_CHALLENGE", "PRODUCER_SUCCESS"}
FOR_ATTACHED = {pb.BaseCommand.MESSAGE, pb.BaseCommand.SEND_RECEIPT, *attached._RARE}
Table = dict[str, dict[str, set[str]]]


@pytest.fixture(scope="module")
def table() -> Table:
    """Return each column's cells by command."""
    lines = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8").splitlines()
    rows = [
        (name.strip("`"), row)
        for line in lines
        if (row := ROW.match(line))
        for name in row["names"].split(", ")
    ]
    assert len(rows) == len({name for name, _ in rows}), "a command stands there twice"
    return {
        name: {column: set(row[column].strip().split(", ")) for column in WORDS}
        for name, row in rows
    }


def handlers(commands: CommandTable) -> dict[str, object]:
    states = type(commands.handshake[0])
    tables = [legal(one) for one in states for legal in (commands.legal_in, commands.frames_in)]
    return {
        pb.BaseCommand.Type.Name(kind): handler for one in tables for kind, handler in one.items()
    }


def module_of(handler: object) -> str:
    function = handler.func if isinstance(handler, partial) else handler
    return str(getattr(function, "__module__", ""))


def mentioned_by_the_library() -> set[str]:
    """Return the commands named in the library's sources."""
    nodes = [
        node
        for path in (ROOT / "client").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)} & set(COMMANDS)


def test_every_command_has_a_row_of_known_words(table: Table) -> None:
    unknown = {
        (name, column)
        for name, cells in table.items()
        for column, words in cells.items()
        if not words <= WORDS[column]
    }
    assert sorted(table) == COMMANDS
    assert not unknown


@pytest.mark.parametrize(("column", "commands"), [("broker", BROKER), ("proxy", PROXY)])
def test_the_table_lists_exactly_the_commands_of_each_server(table, column, commands) -> None:
    taken = handlers(commands)
    said = {name for name, cells in table.items() if cells[column] & {"handles", "refuses"}}
    assert said == set(taken)


@pytest.mark.parametrize("column", ["broker", "proxy"])
def test_a_command_that_closes_is_neither_handled_nor_sent(table: Table, column: str) -> None:
    both = [name for name, cells in table.items() if {"closes"} < cells[column]]
    assert not both


def test_the_broker_refuses_exactly_the_transaction_commands(table: Table) -> None:
    taken = handlers(BROKER).items()
    refusing = {name for name, one in taken if module_of(one) == transactions.__name__}
    said = {name for name, cells in table.items() if "refuses" in cells["broker"]}
    assert said == refusing


def test_the_library_knows_and_reads_exactly_the_listed_commands(table: Table) -> None:
    answers = {pb.BaseCommand.Type.Name(kind) for kind in {*_ANSWERS, *FOR_ATTACHED}}
    known = {name for name, cells in table.items() if cells["library"] != {"-"}}
    read = {name for name, cells in table.items() if "reads" in cells["library"]}
    assert known == mentioned_by_the_library()
    assert read == answers | ALWAYS_READ
