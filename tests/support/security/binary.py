"""Requests of the binary protocol, and the CONNECTs before them."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from proto import PulsarApi_pb2 as pb
from tests.support.golden.connection import GoldenConnection
from tests.support.golden.exchange import Answer, Send, Silence
from tests.support.security.credentials import Credential, token

ORDERS, OTHER = "persistent://acme/shop/orders", "persistent://acme/shop/other"
_ELSEWHERE = "persistent://rival/shop/orders"
_MISSING = "persistent://acme/missing/orders"
_NO_TENANT = "persistent://missing/shop/orders"
_SECONDS = 8.0
_TOPIC_COMMANDS = ("LOOKUP", "PARTITIONED_METADATA", "PRODUCER", "SUBSCRIBE", "GET_SCHEMA")
_TOPICS = (ORDERS, OTHER, _MISSING, _ELSEWHERE, _NO_TENANT)
QUESTIONS = (
    *((kind, topic) for kind in _TOPIC_COMMANDS for topic in _TOPICS),
    ("LOOKUP", "persistent://acme/shop/parted-partition-0"),
    ("PRODUCER", "persistent://acme/shop/parted-partition-0"),
    ("SUBSCRIBE owned", ORDERS),
    ("SUBSCRIBE owned", OTHER),
    ("SUBSCRIBE", "persistent://acme/shop/new-of-{who}"),
    ("PRODUCER", "persistent://acme/shop/made-by-{who}"),
    ("PARTITIONED_METADATA", "persistent://acme/shop/asked-by-{who}"),
    ("GET_OR_CREATE_SCHEMA", ORDERS),
    ("GET_OR_CREATE_SCHEMA", OTHER),
    *(
        (kind, namespace)
        for kind in ("GET_TOPICS_OF_NAMESPACE", "WATCH_TOPIC_LIST")
        for namespace in ("acme/shop", "acme/missing", "missing/shop")
    ),
)
"""Commands, each with its topic or namespace."""
_IN_SHOP = (
    "orders-partition-0",
    "orders-partition-00",
    "orders-partition-0-partition-1",
    "parted-partition-7",
    "__change_events",
    "ORDERS",
    "orders ",
    "orders%20",
    "or/ders",
)
_ELSEWHERE_NAMED = (
    "persistent://acme/standalone/shop/orders",
    "orders",
    "acme/shop/orders",
    "non-persistent://acme/shop/orders",
    "acme/standalone/shop/orders",
    "public/default/x",
    "persistent://pulsar/system/x",
)
_NAMESPACES = ("acme/shop/", "acme/standalone/shop", "acme", "/acme/shop", "ACME/shop")
QUESTIONS_OF_NAMES = (
    *(
        (kind, f"persistent://acme/shop/{name}")
        for name in _IN_SHOP
        for kind in ("LOOKUP", "PARTITIONED_METADATA")
    ),
    *((kind, name) for name in _ELSEWHERE_NAMED for kind in ("LOOKUP", "SUBSCRIBE")),
    *(
        (kind, name)
        for name in _NAMESPACES
        for kind in ("GET_TOPICS_OF_NAMESPACE", "WATCH_TOPIC_LIST")
    ),
)
"""Commands with odd names of topics and namespaces."""
ASKERS_OF_NAMES = ("super", "topic-produce", "consume", "nobody")
ANSWERED_BY_PROXY = ("LOOKUP", "PARTITIONED_METADATA", "GET_SCHEMA", "GET_TOPICS_OF_NAMESPACE")
"""Commands for the proxy itself; the rest go through a tunnel."""


def connect(credential: Credential | None, **fields: Any) -> pb.BaseCommand:
    """Return a CONNECT with the given fields."""
    command = pb.BaseCommand(type=pb.BaseCommand.CONNECT)
    body = command.connect
    body.client_version, body.protocol_version = "recorder", 21
    if credential is not None and credential.token is not None:
        body.auth_method_name, body.auth_data = "token", credential.token.encode()
    if credential is not None and credential.original:
        body.original_principal = credential.original
    for name, value in fields.items():
        if name == "flags":
            for flag in value:
                setattr(body.feature_flags, flag, True)
        else:
            setattr(body, name, value)
    return command


def question(kind: str, subject: str) -> pb.BaseCommand:
    name, _, subscription = kind.partition(" ")
    command = pb.BaseCommand(type=pb.BaseCommand.Type.Value(name))
    if name == "LOOKUP":
        command.lookupTopic.topic, command.lookupTopic.request_id = subject, 1
    elif name == "PARTITIONED_METADATA":
        asked = command.partitionMetadata
        asked.topic, asked.request_id = subject, 1
    elif name == "PRODUCER":
        command.producer.topic = subject
        command.producer.producer_id, command.producer.request_id = 0, 1
    elif name == "SUBSCRIBE":
        body = command.subscribe
        body.topic, body.subscription = subject, subscription or "sub"
        body.subType, body.consumer_id, body.request_id = pb.CommandSubscribe.Shared, 0, 1
    elif name == "GET_SCHEMA":
        command.getSchema.topic, command.getSchema.request_id = subject, 1
    elif name == "GET_OR_CREATE_SCHEMA":
        created = command.getOrCreateSchema
        created.topic, created.request_id = subject, 1
        created.schema.name, created.schema.type = "s", pb.Schema.String
        created.schema.schema_data = b""
    elif name == "GET_TOPICS_OF_NAMESPACE":
        listing = command.getTopicsOfNamespace
        listing.namespace, listing.request_id = subject, 1
    else:
        watch = command.watchTopicList
        watch.namespace, watch.request_id, watch.watcher_id = subject, 1, 0
        watch.topics_pattern = f"persistent://{subject}/.*"
    return command


_OF_THE_MOMENT = re.compile(r"(?<=127\.0\.0\.1:)\d+|(?<=\"reqId\":)\d+")
"""Ports and request ids within sentences."""


def shown(answer: Answer) -> str:
    """Return an answer's recorded form: type, error and sentence."""
    if isinstance(answer, Silence):
        return answer.value
    kind = pb.BaseCommand.Type.Name(answer.type)
    for _, body in answer.ListFields()[1:]:
        for error_field in ("error", "error_code"):
            with suppress(ValueError):
                if body.HasField(error_field):
                    name = pb.ServerError.Name(getattr(body, error_field))
                    text = body.message if "message" in body.DESCRIPTOR.fields_by_name else ""
                    text = text or getattr(body, "error_message", "")
                    request = getattr(body, "request_id", 0)
                    at = " to the connection" if request > 1 else ""
                    sentence = _OF_THE_MOMENT.sub("N", text.splitlines()[0]) if text else ""
                    return f"{kind}{at} {name}: {sentence}"
    if answer.type == pb.BaseCommand.LOOKUP_RESPONSE:
        response = answer.lookupTopicResponse.response
        return f"{kind} {pb.CommandLookupTopicResponse.LookupType.Name(response)}"
    return kind


def answers(address: str, commands: Sequence[pb.BaseCommand], *, last_only: bool) -> list[str]:
    """Send commands on a new connection; return each command's answers.

    Args:
        address: ``host:port``.
        commands: Each sent after its predecessor's answer.
        last_only: Whether to drop all but the last answer after the handshake.
    """
    host, _, port = address.rpartition(":")
    found: list[str] = []
    with GoldenConnection(host, int(port)) as connection:
        for command in commands:
            connection.send(Send(command))
            found.append(shown(connection.receive(_SECONDS)))
            if found[-1] != "CONNECTED" and command is not commands[-1]:
                break
            if found[-1].startswith("ERROR") and command.type == pb.BaseCommand.CONNECT:
                found.append(shown(connection.receive(_SECONDS)))
    return found[-1:] if last_only and found[0] == "CONNECTED" else found


def connect_cases(who: Sequence[Credential]) -> Iterator[tuple[str, list[pb.BaseCommand]]]:
    """Yield every recorded CONNECT by name."""
    for one in who:
        yield one.name, [connect(one)]
    nobody, gate = Credential("nobody", token("nobody")), Credential("gate", token("gate"))
    for_nobody = Credential("gate", token("gate"), "nobody")
    other = nobody.token.encode() if nobody.token else b""
    yield "nobody, method none", [connect(nobody, auth_method_name="none")]
    yield "nobody, method basic", [connect(nobody, auth_method_name="basic")]
    yield "nobody, method unknown", [connect(nobody, auth_method_name="unknown")]
    yield (
        "nobody, method by number",
        [connect(None, auth_data=other, auth_method=pb.AuthMethodNone)],
    )
    yield "nobody, no method", [connect(None, auth_data=other)]
    yield "nobody, proxy version", [connect(nobody, proxy_version="4.0.8")]
    yield "gate, proxy version", [connect(gate, proxy_version="4.0.8")]
    yield "gate for nobody, proxy version", [connect(for_nobody, proxy_version="4.0.8")]
    yield (
        "gate for nobody, original data",
        [connect(for_nobody, original_auth_data=other.decode(), original_auth_method="token")],
    )
    yield (
        "gate for nobody, wrong original data",
        [connect(for_nobody, original_auth_data="garbage", original_auth_method="token")],
    )
    yield (
        "gate, original data alone",
        [connect(gate, original_auth_data=other.decode(), original_auth_method="token")],
    )
    yield "nobody asks before CONNECT", [question("GET_TOPICS_OF_NAMESPACE", "acme/shop")]
