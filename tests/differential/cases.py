"""Cases: requests for both servers, with tokens for values that differ by server.

A token is as long as its replacement, so tokens work in raw bytes without new length fields.
"""

from dataclasses import dataclass

from proto import PulsarApi_pb2 as pb
from tests.support.golden.exchange import RECORDED_BROKER, Rest, Send, with_address
from tests.support.peers.frames import frame

NAMESPACE_TOKEN = "diff-ns-0000"
"""Placeholder for the local name of the case's namespace, in requests, paths and answers."""
NAMESPACE = f"public/{NAMESPACE_TOKEN}"
HASH_TOKEN = "h0h0h0h0"
"""Placeholder for the last topics hash that this connection received."""
NO_HASH = "00000000"


@dataclass(frozen=True)
class Step:
    """Step of a case.

    Attributes:
        kind: Class in the report: the command and its mode.
        does: The action.
        request_id: Request id of the answer that ends the step; None without an id.
        answer_type: Type of the answer that ends the step; without id and type, quiet ends a step.
    """

    kind: str
    does: Send | Rest
    request_id: int | None = None
    answer_type: pb.BaseCommand.Type.ValueType | None = None

    @property
    def ends_quietly(self) -> bool:
        """True if only silence ends the step."""
        return self.request_id is None and self.answer_type is None

    def __str__(self) -> str:
        if isinstance(self.does, Rest):
            return f"{self.does.method} {self.does.path} {self.does.body or ''}".rstrip()
        command = self.does.command
        return f"raw {self.does.raw.hex()}" if command is None else " ".join(str(command).split())


@dataclass(frozen=True)
class World:
    """Contents of a namespace, created by REST on both sides.

    Attributes:
        topics: Local names of persistent topics.
        partitioned: Local names of persistent topics, with numbers of partitions.
        non_persistent: Local names of non-persistent topics.
    """

    topics: tuple[str, ...] = ()
    partitioned: tuple[tuple[str, int], ...] = ()
    non_persistent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """Conversation on a connection.

    Attributes:
        name: ``seed-number``.
        world: Initial contents of the namespace.
        shared: Number of a namespace shared with other read-only cases; None for a private
            namespace.
        steps: Steps in order.
        connects: Whether a CONNECT comes before the steps.
    """

    name: str
    world: World
    shared: int | None
    steps: tuple[Step, ...]
    connects: bool = True


def wire_bytes(send: Send, namespace: str, last_hash: str, broker: str) -> bytes:
    """Return the bytes to send.

    Args:
        send: Request with tokens.
        namespace: Local name of the case's namespace, as long as its token.
        last_hash: Eight digits.
        broker: ``host:port`` of the broker, for commands that name a broker.
    """
    data = send.raw
    if send.command is not None:
        command = pb.BaseCommand()
        command.CopyFrom(send.command)
        with_address(command, RECORDED_BROKER, broker)
        data = frame(command)
    data = data.replace(NAMESPACE_TOKEN.encode(), namespace.encode())
    return data.replace(HASH_TOKEN.encode(), last_hash.encode())
