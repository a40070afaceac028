"""The frames that clients send."""

from __future__ import annotations

from functools import lru_cache

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_command

PROTOCOL_VERSION = 20
CLIENT_VERSION = "floodgate-loadgen"
PONG = encode_command(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))


@lru_cache(maxsize=1)
def connect_frame() -> bytes:
    """Return CONNECT without authentication."""
    return encode_command(
        pb.BaseCommand(
            type=pb.BaseCommand.CONNECT,
            connect=pb.CommandConnect(
                client_version=CLIENT_VERSION,
                protocol_version=PROTOCOL_VERSION,
                auth_method_name="none",
            ),
        )
    )


@lru_cache(maxsize=1024)
def listing_frame(namespace: str, pattern: str | None, request_id: int) -> bytes:
    """Return GET_TOPICS_OF_NAMESPACE for persistent topics."""
    return encode_command(
        pb.BaseCommand(
            type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE,
            getTopicsOfNamespace=pb.CommandGetTopicsOfNamespace(
                request_id=request_id,
                namespace=namespace,
                mode=pb.CommandGetTopicsOfNamespace.PERSISTENT,
                topics_pattern=pattern,
            ),
        )
    )
