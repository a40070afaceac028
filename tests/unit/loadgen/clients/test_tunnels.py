"""A proxy's lookups name the brokers to be tunnelled to; a broker needs no tunnel."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.clients.tunnels import tunnels_to
from loadgen.errors import LoadgenError
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.storm.scenario import StormScenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.connection import ClientConnection

SCENARIO = StormScenario(
    service_url="pulsar://127.0.0.1:1",
    namespaces=(NamespaceExpectation(name="load/a"),),
    timeout_seconds=0.01,
)
TOPICS = ["persistent://load/a/0", "persistent://load/a/1"]


class Server:
    """Answers what is sent on the one connection that is made."""

    def __init__(self, answer: Callable[[ClientConnection, int], None]) -> None:
        self.answer = answer
        self.asked = 0

    async def connect(self, client: ClientConnection, _: int) -> None:
        def send(frame: bytes) -> None:
            del frame
            self.asked += 1
            asyncio.get_running_loop().call_soon(self.answer, client, self.asked)

        client.send = send  # type: ignore[method-assign]


def named(through_proxy: bool) -> Callable[[ClientConnection, int], None]:
    def answer(client: ClientConnection, request_id: int) -> None:
        response = pb.CommandLookupTopicResponse(
            brokerServiceUrl=f"pulsar://broker-{request_id}:6650",
            response=pb.CommandLookupTopicResponse.Connect,
            request_id=request_id,
            proxy_through_service_url=through_proxy,
        )
        command = pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=response)
        client.command_received(command)

    return answer


def found(server: Server) -> dict[str, str]:
    return asyncio.run(tunnels_to(server, SCENARIO, TOPICS))  # type: ignore[arg-type]


def test_every_topic_has_the_broker_that_a_proxy_names() -> None:
    assert found(Server(named(through_proxy=True))) == {
        TOPICS[0]: "broker-2:6650",
        TOPICS[1]: "broker-3:6650",
    }


def test_a_broker_is_asked_once_and_needs_no_tunnel() -> None:
    server = Server(named(through_proxy=False))
    assert found(server) == {}
    assert server.asked == 1


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda client, number: client.refusal_received(number, "full"), "/0 cannot be .*: full"),
        (lambda client, number: client.ended("gone"), "/0 cannot be looked up: gone"),
        (lambda client, number: None, "answered no lookup within 0.01 s"),
    ],
)
def test_without_an_answer_there_is_a_sentence(answer, sentence: str) -> None:
    with pytest.raises(LoadgenError, match=sentence):
        found(Server(answer))
