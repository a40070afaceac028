"""Follows an open connection whose token expires."""

import time
from collections.abc import Iterator
from typing import Any

from proto import PulsarApi_pb2 as pb
from tests.support.golden.connection import GoldenConnection
from tests.support.golden.exchange import Send
from tests.support.security.binary import connect, question, shown
from tests.support.security.credentials import Credential, token

_LIFE_SECONDS, _PATIENCE = 2, 6.0
_CASES = (
    # name, refresh support, answer to AUTH_CHALLENGE
    ("no refresh", False, None),
    ("refresh unanswered", True, None),
    ("refreshed", True, lambda: token("consume")),
    ("refreshed as another", True, lambda: token("nobody")),
    ("refreshed with an expired one", True, lambda: token("consume", exp=int(time.time()) - 60)),
    ("refreshed with garbage", True, lambda: "garbage"),
)


def record_expiry(address: str) -> Iterator[dict[str, Any]]:
    """Yield received commands on connections with a two-second token, without PINGs."""
    for name, refreshes, answer in _CASES:
        host, _, port = address.rpartition(":")
        expires = int(time.time()) + _LIFE_SECONDS
        one = Credential("consume", token("consume", exp=expires))
        came: list[str] = []
        with GoldenConnection(host, int(port)) as connection:
            flags = ["supports_auth_refresh"] if refreshes else []
            _send(connection, connect(one, flags=flags))
            came.append(shown(connection.receive(_PATIENCE)))
            came.append(shown(connection.receive(_PATIENCE)))
            if came[-1] == "AUTH_CHALLENGE" and answer is not None:
                command = pb.BaseCommand(type=pb.BaseCommand.AUTH_RESPONSE)
                command.authResponse.client_version = "recorder"
                command.authResponse.response.auth_method_name = "token"
                command.authResponse.response.auth_data = answer().encode()
                _send(connection, command)
            if came[-1] == "AUTH_CHALLENGE":
                came.append(shown(connection.receive(3.0)))
            if not came[-1].startswith("(closed"):
                _send(connection, question("GET_TOPICS_OF_NAMESPACE", "acme/shop"))
                came.append(shown(connection.receive(3.0)))
        yield {"name": name, "came": came}


def _send(connection: GoldenConnection, command: pb.BaseCommand) -> None:
    connection.send(Send(command))
