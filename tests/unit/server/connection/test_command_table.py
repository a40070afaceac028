"""The table of commands: legal commands per state, and the fate of the rest."""

from enum import Enum
from types import SimpleNamespace

import pytest

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from server.connection.command_table import CommandTable, Row

Type = pb.BaseCommand


class State(Enum):
    """Two stages."""

    FIRST = "before it"
    SECOND = "after it"


def handle(*_: object) -> None:
    """No-op."""


TABLE = CommandTable(
    [Row(Type.CONNECT, handle, (State.FIRST,)), Row(Type.PING, handle, State)], (State.FIRST,)
)


def test_a_command_is_legal_in_the_states_of_its_row() -> None:
    assert set(TABLE.legal_in(State.FIRST)) == {Type.CONNECT, Type.PING}
    assert set(TABLE.legal_in(State.SECOND)) == {Type.PING}


def test_an_illegal_command_closes_the_connection_by_default() -> None:
    with pytest.raises(RemoteProtocolError, match=r"^LOOKUP is not legal after it$"):
        TABLE.refuse(SimpleNamespace(state=State.SECOND), Type.LOOKUP, None)
