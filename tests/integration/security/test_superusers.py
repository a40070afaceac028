"""Former superusers and admins lose open connections; no role can lock itself out."""

import asyncio
import json

import pytest

from tests.support.golden.connection import GoldenConnection
from tests.support.golden.exchange import Rest, Send
from tests.support.golden.rest import RestAnswer, ask
from tests.support.security.binary import ORDERS, connect, question, shown
from tests.support.security.credentials import Credential, token
from tests.support.security.servers import secured

KEY = "/admin/v2/brokers/configuration/superUserRoles"
TENANT = "/admin/v2/tenants/acme"
WITH, WITHOUT = "super,gate,relay,extra", "super,gate,relay"


def call(web: str, who: str, method: str, path: str, body: object = None) -> RestAnswer:
    headers = Credential(who, token(who)).headers | {"Content-Type": "application/json"}
    sent = None if body is None else json.dumps(body)
    return ask(web, Rest(method, path, sent, 0), headers)


def admins(*roles: str) -> object:
    return {"allowedClusters": ["standalone"], "adminRoles": list(roles)}


def _open(connection: GoldenConnection, who: str) -> None:
    connection.send(Send(connect(Credential(who, token(who)))))
    assert shown(connection.receive(5)) == "CONNECTED"
    for kind, answer in (("PRODUCER", "PRODUCER_SUCCESS"), ("SUBSCRIBE", "SUCCESS")):
        connection.send(Send(question(kind, ORDERS)))
        assert shown(connection.receive(5)) == answer


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_a_removed_superuser_loses_its_open_producer_and_consumer(profile: str) -> None:
    def work(address: str, web: str) -> None:
        assert call(web, "super", "POST", f"{KEY}/{WITH}").status == 200
        host, _, port = address.rpartition(":")
        with (
            GoldenConnection(host, int(port)) as connection,
            GoldenConnection(host, int(port)) as other,
        ):
            _open(connection, "extra")
            assert call(web, "super", "POST", f"{KEY}/{WITHOUT}").status == 200
            came = {shown(connection.receive(5)).split()[0] for _ in range(2)}
            assert came == {"CLOSE_PRODUCER", "CLOSE_CONSUMER"}
            _open(other, "super")  # Other roles are unaffected.

    async with secured(profile) as servers:
        await asyncio.to_thread(work, servers.address, servers.web)


@pytest.mark.parametrize(("profile", "ends"), [("floodgate", True), ("pulsar", False)])
async def test_a_watch_without_permission_is_closed_except_with_profile_pulsar(
    profile: str, *, ends: bool
) -> None:
    def work(address: str, web: str) -> None:
        assert call(web, "super", "POST", f"{KEY}/{WITH}").status == 200
        host, _, port = address.rpartition(":")
        with GoldenConnection(host, int(port)) as connection:
            hello = connect(Credential("extra", token("extra")), flags=["supports_topic_watchers"])
            connection.send(Send(hello))
            assert shown(connection.receive(5)) == "CONNECTED"
            connection.send(Send(question("WATCH_TOPIC_LIST", "acme/shop")))
            assert shown(connection.receive(5)).startswith("WATCH_TOPIC_LIST_SUCCESS")
            assert call(web, "super", "POST", f"{KEY}/{WITHOUT}").status == 200
            assert (shown(connection.receive(1)) == "(closed)") is ends

    async with secured(profile) as servers:
        await asyncio.to_thread(work, servers.address, servers.web)


async def test_a_removed_tenant_admin_loses_its_open_producer_and_consumer() -> None:
    def work(address: str, web: str) -> None:
        host, _, port = address.rpartition(":")
        with GoldenConnection(host, int(port)) as connection:
            _open(connection, "admin")
            assert call(web, "super", "POST", TENANT, admins("another")).status == 204
            came = {shown(connection.receive(5)).split()[0] for _ in range(2)}
            assert came == {"CLOSE_PRODUCER", "CLOSE_CONSUMER"}

    async with secured("floodgate") as servers:
        await asyncio.to_thread(work, servers.address, servers.web)


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
async def test_a_role_cannot_remove_its_own_superuser_or_admin_rights(profile: str) -> None:
    def work(web: str) -> None:
        assert call(web, "super", "POST", f"{KEY}/{WITH}").status == 200
        for who, method, path, body in (
            ("super", "POST", f"{KEY}/extra", None),
            ("extra", "POST", f"{KEY}/{WITHOUT}", None),
            ("extra", "DELETE", KEY, None),
            ("extra", "POST", "/admin/v2/floodgate/reset", None),
            ("admin", "POST", TENANT, admins("another")),
            ("admin", "POST", TENANT, admins()),
        ):
            answer = call(web, who, method, path, body)
            assert answer.status == 412, (who, method, path, answer)
            assert f"{who!r} would be no" in answer.body
        for who in ("super", "extra"):
            assert call(web, who, "GET", "/admin/v2/brokers/configuration/values").status == 200
        assert call(web, "admin", "POST", TENANT, admins("admin", "another")).status == 204
        assert call(web, "super", "POST", TENANT, admins("another")).status == 204

    async with secured(profile, broker={"floodgateFaultsEnabled": "true"}) as servers:
        await asyncio.to_thread(work, servers.web)
