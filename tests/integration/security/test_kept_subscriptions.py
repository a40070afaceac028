"""Only a subscription's permitted roles can change it, on any path."""

import asyncio
import json
import re

import pytest

from broker.messages.metadata import digest_of
from broker.messages.topic import PersistentTopic
from proto import PulsarApi_pb2 as pb
from proto.names import TopicName
from tests.support.golden.exchange import Rest
from tests.support.golden.rest import RestAnswer, ask
from tests.support.security.binary import answers, connect
from tests.support.security.credentials import Credential, token
from tests.support.security.servers import Secured, secured

NAMESPACE, TOPIC = "/admin/v2/namespaces/acme/shop", "persistent://acme/shop/orders"
PATH = "/admin/v2/persistent/acme/shop/orders"
NAMES = {"tenant": "acme", "namespace": "shop", "topic": "orders", "domain": "persistent"}
NAMES |= {"subName": "owned", "subscription": "owned", "bundle": "0x00000000_0xffffffff"}
NAMES |= {"numMessages": "1", "expireTimeInSeconds": "1", "timestamp": "1", "role": "subscriber"}
BODIES = (None, '{"ledgerId": -1, "entryId": -1}', '["consume"]', "{}")
CHANGING = ("POST", "PUT", "DELETE")
OF_OTHERS = re.compile("floodgate|bookies|clusters")


def call(web: str, who: str, method: str, path: str, body: str | None = None) -> RestAnswer:
    headers = Credential(who, token(who)).headers | {"Content-Type": "application/json"}
    return ask(web, Rest(method, path, body, 0), headers)


def state(web: str) -> dict[str, object]:
    """The state that only its owner and admins may change."""
    stats = json.loads(call(web, "super", "GET", f"{PATH}/stats").body)
    kept = {name: stats["subscriptions"].get("owned", {}).get(name) for name in ("msgBacklog",)}
    grants = call(web, "super", "GET", f"{NAMESPACE}/permissions/subscription").body
    return {**kept, "grants": grants, "subscriptions": sorted(stats["subscriptions"])}


async def filled(servers: Secured) -> None:
    made = await asyncio.to_thread(
        call, servers.web, "super", "PUT", f"{PATH}/subscription/owned", '"earliest"'
    )
    assert made.status == 204
    topic = await servers.broker.messaging.loaded_topics.get(TopicName.parse(TOPIC))
    assert isinstance(topic, PersistentTopic)
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    for _ in range(5):
        topic.ledger.append(b"entry", digest_of(metadata))
    await topic.ledger.flushed()


def _try_all(web: str) -> list[str]:
    """Make every changing call; return the calls answered 2xx."""
    paths = json.loads(call(web, "super", "GET", "/openapi.json").body)["paths"]
    done = []
    for path, item in sorted(paths.items()):
        if OF_OTHERS.search(path):
            continue
        full = re.sub(r"\{(\w+)\}", lambda one: NAMES.get(one[1], "owned"), path)
        for method in sorted({name.upper() for name in item} & {*CHANGING}):
            for body in BODIES:
                answer = call(web, "consume", method, f"{full}?force=true", body)
                if answer.status < 300:
                    done.append(f"{method} {path}")
    return done


async def test_no_rest_call_changes_a_subscription_without_its_permission() -> None:
    async with secured("floodgate") as servers:
        await filled(servers)
        before = await asyncio.to_thread(state, servers.web)
        assert before["msgBacklog"] == 5
        done = await asyncio.to_thread(_try_all, servers.web)
        assert await asyncio.to_thread(state, servers.web) == before, done


@pytest.mark.parametrize(
    "path",
    [
        f"{NAMESPACE}/clearBacklog",
        f"{NAMESPACE}/clearBacklog/owned",
        f"{NAMESPACE}/0x00000000_0xffffffff/clearBacklog",
        f"{NAMESPACE}/0x00000000_0xffffffff/clearBacklog/owned",
        f"{NAMESPACE}/unsubscribe/owned",
        f"{NAMESPACE}/0x00000000_0xffffffff/unsubscribe/owned",
        f"{PATH}/all_subscription/expireMessages/1",
        f"{PATH}/subscription/owned/skip_all",
        f"{PATH}/subscription/owned/expireMessages/1",
    ],
)
async def test_only_the_permitted_role_and_admins_may_change_a_subscription(path: str) -> None:
    async with secured("floodgate") as servers:
        await filled(servers)
        for who, allowed in (("consume", False), ("subscriber", True), ("admin", True)):
            answer = await asyncio.to_thread(call, servers.web, who, "POST", path)
            refused = answer.status in (401, 403)
            assert refused is not allowed, f"{who}: {answer}"


async def test_a_subscription_without_permissions_may_be_cleared_by_any_consume_role() -> None:
    async with secured("floodgate") as servers:
        await filled(servers)
        path = f"{NAMESPACE}/permissions/owned/subscriber"
        assert (await asyncio.to_thread(call, servers.web, "super", "DELETE", path)).status == 204
        path = f"{NAMESPACE}/clearBacklog"
        assert (await asyncio.to_thread(call, servers.web, "consume", "POST", path)).status == 204


@pytest.mark.parametrize("kind", ["UNSUBSCRIBE", "SEEK", "ACK"])
async def test_no_command_changes_a_subscription_without_an_own_consumer(kind: str) -> None:
    subscribe = pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE)
    subscribe.subscribe.topic, subscribe.subscribe.subscription = TOPIC, "owned"
    subscribe.subscribe.subType = pb.CommandSubscribe.Shared
    subscribe.subscribe.consumer_id = subscribe.subscribe.request_id = 1
    command = pb.BaseCommand(type=pb.BaseCommand.Type.Value(kind))
    if kind == "UNSUBSCRIBE":
        command.unsubscribe.consumer_id, command.unsubscribe.request_id = 1, 2
    elif kind == "SEEK":
        command.seek.consumer_id, command.seek.request_id = 1, 2
        command.seek.message_publish_time = 1
    else:
        command.ack.consumer_id, command.ack.ack_type = 1, pb.CommandAck.Cumulative
        command.ack.message_id.add(ledgerId=1 << 40, entryId=4)
    async with secured("floodgate") as servers:
        await filled(servers)
        before = await asyncio.to_thread(state, servers.web)
        hello = connect(Credential("consume", token("consume")))
        asked = [hello, subscribe, command]
        await asyncio.to_thread(answers, servers.address, asked, last_only=False)
        assert await asyncio.to_thread(state, servers.web) == before
