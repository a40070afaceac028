"""Table of the commands that a server accepts, each with its handler and the legal states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.parsing.command_bounds import type_name

if TYPE_CHECKING:
    from enum import Enum

    from proto.frames import Frame

Handler = Callable[[Any, pb.BaseCommand], object]
"""Handles a command of a connection, in the turn of its arrival."""
FrameHandler = Callable[[Any, "Frame"], object]
"""Handles a command with its payload, unparsed."""


class HasState(Protocol):
    """A connection that is in a state, which decides which commands are legal."""

    @property
    def state(self) -> Enum:
        """The stage of the connection's lifecycle."""


class Row(NamedTuple):
    """A command, with its handler and the states of a connection in which it is legal.

    Attributes:
        kind: The type of the command.
        handler: Handles the command.
        states: The states of a connection in which the command is legal.
    """

    kind: pb.BaseCommand.Type.ValueType
    handler: Handler
    states: Collection[Enum]


class FrameRow(NamedTuple):
    """A command with a payload, whose handler receives the unparsed frame.

    Attributes:
        kind: The type of the command.
        handler: Handles the command.
        states: The states of a connection in which the command is legal.
    """

    kind: pb.BaseCommand.Type.ValueType
    handler: FrameHandler
    states: Collection[Enum]


class CommandTable:
    """The commands that are legal in each state of a connection.

    Args:
        rows: The commands.
        frame_rows: The commands with a payload.
        handshake: The states before CONNECT is answered, beginning with a connection's first.
        refuse: Answers an illegal, unparsed command; by default closes the connection.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        handshake: tuple[Enum, ...],
        refuse: Callable[[Any, int, Frame], object] | None = None,
        frame_rows: Iterable[FrameRow] = (),
    ) -> None:
        self.handshake = handshake
        self.refuse = refuse or close_for_illegal
        self._rows = tuple(rows)
        self._frame_rows = tuple(frame_rows)
        self._legal = {state: self._legal_in(state) for state in type(handshake[0])}
        self._legal_frames = {state: self._frames_in(state) for state in type(handshake[0])}

    def legal_in(self, state: Enum) -> Mapping[int, Handler]:
        """Return a dict of the commands that are legal in a state, with their handlers."""
        return self._legal[state]

    def frames_in(self, state: Enum) -> Mapping[int, FrameHandler]:
        """Return a dict of the commands with a payload legal in a state, with their handlers."""
        return self._legal_frames[state]

    def _frames_in(self, state: Enum) -> dict[int, FrameHandler]:
        return {row.kind: row.handler for row in self._frame_rows if state in row.states}

    def _legal_in(self, state: Enum) -> dict[int, Handler]:
        return {row.kind: row.handler for row in self._rows if state in row.states}


def close_for_illegal(cnx: HasState, kind: int, _: Frame) -> None:
    """Raise the error that closes a connection after a command that is illegal in its state.

    Raises:
        RemoteProtocolError: Always.
    """
    raise RemoteProtocolError(f"{type_name(kind)} is not legal {cnx.state.value}")
