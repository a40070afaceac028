"""Producers, consumers and watches of a role whose grants are revoked."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from proto import PulsarApi_pb2 as pb
from tests.support.golden.connection import GoldenConnection
from tests.support.golden.exchange import Rest, Send
from tests.support.golden.rest import ask
from tests.support.security.binary import ORDERS, connect, question, shown
from tests.support.security.credentials import Credential, token

_SHOP = "/admin/v2/namespaces/acme/shop"
_ON_ORDERS = "/admin/v2/persistent/acme/shop/orders/permissions"
_TENANT = "/admin/v2/tenants/acme"
_ANSWER, _SILENCE = 8.0, 1.5


@dataclass(frozen=True)
class Dialogue:
    """A connection, and changes by REST meanwhile.

    Attributes:
        name: In the recording.
        who: ``role`` or ``role for original``.
        before: Calls before it connects: method, path, body.
        opens: First request, or several.
        change: Calls after its answer.
        then: Requests after the change.
        after: Calls that restore the world.
    """

    name: str
    who: str
    opens: Sequence[pb.BaseCommand]
    change: Sequence[tuple[str, str, object]]
    before: Sequence[tuple[str, str, object]] = ()
    then: Sequence[pb.BaseCommand] = ()
    after: Sequence[tuple[str, str, object]] = ()


def _producing(initial_subscription: str = "") -> pb.BaseCommand:
    command = question("PRODUCER", ORDERS)
    if initial_subscription:
        command.producer.initial_subscription_name = initial_subscription
    return command


def _of_consumer(kind: str) -> pb.BaseCommand:
    command = pb.BaseCommand(type=pb.BaseCommand.Type.Value(kind))
    if kind == "UNSUBSCRIBE":
        command.unsubscribe.consumer_id, command.unsubscribe.request_id = 0, 9
    elif kind == "GET_LAST_MESSAGE_ID":
        asked = command.getLastMessageId
        asked.consumer_id, asked.request_id = 0, 9
    else:
        command.seek.consumer_id, command.seek.request_id = 0, 9
        command.seek.message_publish_time = 0
    return command


def _granted(role: str, *actions: str) -> tuple[str, str, object]:
    return "POST", f"{_SHOP}/permissions/{role}", list(actions)


def _revoked(role: str) -> tuple[str, str, object]:
    return "DELETE", f"{_SHOP}/permissions/{role}", None


def _subscribing(subscription: str) -> pb.BaseCommand:
    return question(f"SUBSCRIBE {subscription}", ORDERS)


_PRODUCER, _WATCH = question("PRODUCER", ORDERS), question("WATCH_TOPIC_LIST", "acme/shop")
_LISTING = question("GET_TOPICS_OF_NAMESPACE", "acme/shop")
_TEMP, _TEMP_CONSUMES = _granted("temp", "produce"), _granted("temp", "consume")
_SOMEBODY, _SOMEBODY_GONE = _granted("somebody", "consume"), _revoked("somebody")
_ADMINS = {"allowedClusters": ["standalone"], "adminRoles": ["admin"]}
_NEW_TOPIC = ("PUT", "/admin/v2/persistent/acme/shop/new-one", {})
_NEW_TOPIC_GONE = ("DELETE", "/admin/v2/persistent/acme/shop/new-one", None)
_MODE = f"{_SHOP}/subscriptionAuthMode"
DIALOGUES = (
    Dialogue("producer", "temp", [_PRODUCER], [_revoked("temp")], [_TEMP], [_PRODUCER]),
    Dialogue(
        "consumer",
        "temp",
        [_subscribing("temp")],
        [_revoked("temp")],
        [_TEMP_CONSUMES],
        [_of_consumer("GET_LAST_MESSAGE_ID"), _of_consumer("SEEK"), _of_consumer("UNSUBSCRIBE")],
    ),
    Dialogue(
        "watch",
        "temp",
        [_WATCH],
        [_revoked("temp"), _NEW_TOPIC],
        [_TEMP],
        [_LISTING],
        [_NEW_TOPIC_GONE],
    ),
    Dialogue(
        "producer of a topic's grant",
        "temp",
        [_PRODUCER],
        [("DELETE", f"{_ON_ORDERS}/temp", None)],
        [("POST", f"{_ON_ORDERS}/temp", ["produce"])],
    ),
    Dialogue(
        "producer, another's grant",
        "temp",
        [_PRODUCER],
        [_SOMEBODY],
        [_TEMP],
        after=[_SOMEBODY_GONE, _revoked("temp")],
    ),
    Dialogue(
        "producer of an admin, another's grant",
        "admin",
        [_PRODUCER],
        [_SOMEBODY],
        after=[_SOMEBODY_GONE],
    ),
    Dialogue(
        "consumer of an admin, another's grant",
        "admin",
        [_subscribing("admin")],
        [_SOMEBODY],
        after=[_SOMEBODY_GONE],
    ),
    Dialogue(
        "producer of a superuser, another's grant",
        "super",
        [_PRODUCER],
        [_SOMEBODY],
        after=[_SOMEBODY_GONE],
    ),
    Dialogue(
        "producer of an admin, no admin any more",
        "admin",
        [_PRODUCER],
        [("POST", _TENANT, {**_ADMINS, "adminRoles": []})],
        then=[_LISTING],
        after=[("POST", _TENANT, _ADMINS)],
    ),
    Dialogue("producer behind a proxy", "gate for temp", [_PRODUCER], [_revoked("temp")], [_TEMP]),
    Dialogue(
        "consumer behind a proxy, the proxy's grant",
        "proxy for temp",
        [_subscribing("temp")],
        [_revoked("proxy")],
        [_TEMP_CONSUMES],
        after=[_revoked("temp"), _granted("proxy", "consume")],
    ),
    Dialogue(
        "consumer, its subscription becomes others'",
        "temp",
        [_subscribing("temp")],
        [("POST", f"{_SHOP}/permissions/subscription/temp", ["somebody"])],
        [_TEMP_CONSUMES],
        after=[("DELETE", f"{_SHOP}/permissions/temp/somebody", None), _revoked("temp")],
    ),
    Dialogue("initial subscription, produce alone", "produce", [_producing("first")], []),
    Dialogue(
        "initial subscription of others",
        "temp",
        [_producing("owned")],
        [],
        [_granted("temp", "produce", "consume")],
        after=[_revoked("temp")],
    ),
    Dialogue(
        "initial subscription, both",
        "temp",
        [_producing("first")],
        [],
        [_granted("temp", "produce", "consume")],
        after=[_revoked("temp")],
    ),
    *(
        Dialogue(
            f"prefix: {who} as {subscription}",
            who,
            [_subscribing(subscription)],
            [],
            [("POST", _MODE, "Prefix")],
            after=[("POST", _MODE, "None")],
        )
        for who, subscription in (
            ("consume", "sub"),
            ("consume", "consume-sub"),
            ("consume", "consume"),
            ("consume", "consumesub"),
            ("admin", "sub"),
            ("admin", "admin-sub"),
            ("super", "sub"),
            ("gate for consume", "consume-sub"),
            ("proxy for consume", "consume-sub"),
            ("subscriber", "owned"),
        )
    ),
)
"""Each starts with the original world and restores it."""


def record_revoked(address: str, web: str) -> Iterator[dict[str, Any]]:
    """Yield received commands on each connection before and after the change, and later answers."""
    for one in DIALOGUES:
        before = [_call(web, *call) for call in one.before]
        with ExitStack() as exits:
            host, _, port = address.rpartition(":")
            connection = exits.enter_context(GoldenConnection(host, int(port)))
            role, _, original = one.who.partition(" for ")
            asker = Credential(role, token(role), original)
            connection.send(Send(connect(asker, flags=["supports_topic_watchers"])))
            opened = [shown(connection.receive(_ANSWER))]
            for command in one.opens:
                connection.send(Send(command))
                opened.append(shown(connection.receive(_ANSWER)))
            changes = [_call(web, *call) for call in one.change]
            came = list(_until_silence(connection)) if one.change else []
            then = []
            for command in one.then:
                connection.send(Send(command))
                then.append(shown(connection.receive(_ANSWER)))
        after = [_call(web, *call) for call in one.after]
        calls = [*before, *changes, *after]
        yield {
            "name": one.name,
            "calls": calls,
            "opened": opened,
            "came": came,
            "then": then,
        }


def _until_silence(connection: GoldenConnection) -> Iterator[str]:
    while (came := shown(connection.receive(_SILENCE))) != "(nothing)":
        yield came
        if came == "(closed)":
            return


def _call(web: str, method: str, path: str, body: object) -> int:
    headers = Credential("super", token("super")).headers | {"Content-Type": "application/json"}
    text = None if body is None else json.dumps(body)
    return ask(web, Rest(method, path, text, 0), headers).status
