"""Cases: what is sent to both servers, with tokens for what differs between two places.

A token has the length of what takes its place, so it may stand in raw bytes, too, and no length
field has to be made anew.
"""

from dataclasses import dataclass

from proto import PulsarApi_pb2 as pb
from tests.support.golden.exchange import RECORDED_BROKER, Rest, Send, with_address
from tests.support.peers.raw_peer import frame

NAMESPACE_TOKEN = "diff-ns-0000"
"""Stands for the local name of the case's namespace, in requests, paths and answers."""
NAMESPACE = f"public/{NAMESPACE_TOKEN}"
HASH_TOKEN = "h0h0h0h0"
"""Stands for the last hash of topics that this connection was told."""
NO_HASH = "00000000"


@dataclass(frozen=True)
class Step:
    """One thing a case does.

    Attributes:
        kind: Its class in the report: the command and its mode.
        does: What.
        request_id: That of the answer that ends the step; None where another tells.
        answer_type: That of the answer that ends the step; without either, quiet ends it.
    """

    kind: str
    does: Send | Rest
    request_id: int | None = None
    answer_type: pb.BaseCommand.Type.ValueType | None = None

    @property
    def ends_quietly(self) -> bool:
        """True if nothing but time tells that the step has ended."""
        return self.request_id is None and self.answer_type is None

    def __str__(self) -> str:
        if isinstance(self.does, Rest):
            return f"{self.does.method} {self.does.path} {self.does.body or ''}".rstrip()
        command = self.does.command
        return f"raw {self.does.raw.hex()}" if command is None else " ".join(str(command).split())


@dataclass(frozen=True)
class World:
    """A namespace's contents, made by REST on both sides.

    Attributes:
        topics: Local names of persistent topics.
        partitioned: Of persistent topics with their numbers of partitions.
        non_persistent: Local names of non-persistent topics.
    """

    topics: tuple[str, ...] = ()
    partitioned: tuple[tuple[str, int], ...] = ()
    non_persistent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One conversation on one connection.

    Attributes:
        name: ``seed-number``.
        world: What its namespace holds at first.
        shared: Number of the namespace it shares with others that change nothing; None for one
            of its own.
        steps: What it does, in order.
        connects: Whether a CONNECT that is no step comes first.
    """

    name: str
    world: World
    shared: int | None
    steps: tuple[Step, ...]
    connects: bool = True


def wire_bytes(send: Send, namespace: str, last_hash: str, broker: str) -> bytes:
    """Return what goes on the wire.

    Args:
        send: With tokens.
        namespace: Local name of the case's namespace, as long as its token.
        last_hash: Eight digits.
        broker: ``host:port`` of the broker, where a command names it.
    """
    data = send.raw
    if send.command is not None:
        command = pb.BaseCommand()
        command.CopyFrom(send.command)
        with_address(command, RECORDED_BROKER, broker)
        data = frame(command)
    data = data.replace(NAMESPACE_TOKEN.encode(), namespace.encode())
    return data.replace(HASH_TOKEN.encode(), last_hash.encode())
