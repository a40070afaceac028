"""Table of the commands that a server accepts, each with its handler and the legal states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

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
HandlerT = TypeVar("HandlerT")


class HasState(Protocol):
    """A connection that is in a state, which decides which commands are legal."""

    @property
    def state(self) -> Enum:
        """The stage of the connection's lifecycle."""


class Row(NamedTuple, Generic[HandlerT]):
    """A command, with its handler and the states of a connection in which it is legal.

    Attributes:
        kind: The type of the command.
        handler: Handles the command.
        states: The states of a connection in which the command is legal.
    """

    kind: pb.BaseCommand.Type.ValueType
    handler: HandlerT
    states: Collection[Enum]


FrameRow = Row[FrameHandler]
"""A command with a payload, whose handler receives the unparsed frame."""


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
        rows: Iterable[Row[Handler]],
        handshake: tuple[Enum, ...],
        refuse: Callable[[Any, int, Frame], object] | None = None,
        frame_rows: Iterable[FrameRow] = (),
    ) -> None:
        self.handshake = handshake
        self.refuse = refuse or close_for_illegal
        self._legal = _by_state(rows, handshake)
        self._legal_frames = _by_state(frame_rows, handshake)

    def legal_in(self, state: Enum) -> Mapping[int, Handler]:
        """Return a dict of the commands that are legal in a state, with their handlers."""
        return self._legal[state]

    def frames_in(self, state: Enum) -> Mapping[int, FrameHandler]:
        """Return a dict of the commands with a payload legal in a state, with their handlers."""
        return self._legal_frames[state]


def _by_state(
    rows: Iterable[Row[HandlerT]], handshake: tuple[Enum, ...]
) -> dict[Enum, dict[int, HandlerT]]:
    rows = tuple(rows)
    return {
        state: {row.kind: row.handler for row in rows if state in row.states}
        for state in type(handshake[0])
    }


def close_for_illegal(cnx: HasState, kind: int, _: Frame) -> None:
    """Raise the error that closes a connection after a command that is illegal in its state.

    Raises:
        RemoteProtocolError: Always.
    """
    raise RemoteProtocolError(f"{type_name(kind)} is not legal {cnx.state.value}")
