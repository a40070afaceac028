"""Former superusers and admins lose open connections; no role can lock itself out."""

import json
from collections.abc import AsyncIterator

import pytest

from tests.support.golden.connection import GoldenConnection
from tests.support.golden.exchange import Rest, Send
from tests.support.golden.rest import RestAnswer, ask
from tests.support.security.binary import ORDERS, connect, question, shown
from tests.support.security.credentials import Credential, token
from tests.support.security.servers import Secured, beside_the_servers, secured

KEY = "/admin/v2/brokers/configuration/superUserRoles"
TENANT = "/admin/v2/tenants/acme"
WITH, WITHOUT = "super,gate,relay,extra", "super,gate,relay"


PROFILES = pytest.mark.parametrize("servers", ["floodgate", "pulsar"], indirect=True)


@pytest.fixture
async def servers(request: pytest.FixtureRequest) -> AsyncIterator[Secured]:
    async with secured(request.param, broker={"floodgateFaultsEnabled": "true"}) as found:
        yield found


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


@PROFILES
@beside_the_servers
def test_a_removed_superuser_loses_its_open_producer_and_consumer(servers: Secured) -> None:
    assert call(servers.web, "super", "POST", f"{KEY}/{WITH}").status == 200
    host, _, port = servers.address.rpartition(":")
    with (
        GoldenConnection(host, int(port)) as connection,
        GoldenConnection(host, int(port)) as other,
    ):
        _open(connection, "extra")
        assert call(servers.web, "super", "POST", f"{KEY}/{WITHOUT}").status == 200
        came = {shown(connection.receive(5)).split()[0] for _ in range(2)}
        assert came == {"CLOSE_PRODUCER", "CLOSE_CONSUMER"}
        _open(other, "super")  # Other roles are unaffected.


@pytest.mark.parametrize(
    ("servers", "ends"), [("floodgate", True), ("pulsar", False)], indirect=["servers"]
)
@beside_the_servers
def test_a_watch_without_permission_is_closed_except_with_profile_pulsar(
    servers: Secured, *, ends: bool
) -> None:
    assert call(servers.web, "super", "POST", f"{KEY}/{WITH}").status == 200
    host, _, port = servers.address.rpartition(":")
    with GoldenConnection(host, int(port)) as connection:
        hello = connect(Credential("extra", token("extra")), flags=["supports_topic_watchers"])
        connection.send(Send(hello))
        assert shown(connection.receive(5)) == "CONNECTED"
        connection.send(Send(question("WATCH_TOPIC_LIST", "acme/shop")))
        assert shown(connection.receive(5)).startswith("WATCH_TOPIC_LIST_SUCCESS")
        assert call(servers.web, "super", "POST", f"{KEY}/{WITHOUT}").status == 200
        assert (shown(connection.receive(1)) == "(closed)") is ends


@pytest.mark.parametrize("servers", ["floodgate"], indirect=True)
@beside_the_servers
def test_a_removed_tenant_admin_loses_its_open_producer_and_consumer(servers: Secured) -> None:
    host, _, port = servers.address.rpartition(":")
    with GoldenConnection(host, int(port)) as connection:
        _open(connection, "admin")
        assert call(servers.web, "super", "POST", TENANT, admins("another")).status == 204
        came = {shown(connection.receive(5)).split()[0] for _ in range(2)}
        assert came == {"CLOSE_PRODUCER", "CLOSE_CONSUMER"}


@PROFILES
@beside_the_servers
def test_a_role_cannot_remove_its_own_superuser_or_admin_rights(servers: Secured) -> None:
    assert call(servers.web, "super", "POST", f"{KEY}/{WITH}").status == 200
    for who, method, path, body in (
        ("super", "POST", f"{KEY}/extra", None),
        ("extra", "POST", f"{KEY}/{WITHOUT}", None),
        ("extra", "DELETE", KEY, None),
        ("extra", "POST", "/admin/v2/floodgate/reset", None),
        ("admin", "POST", TENANT, admins("another")),
        ("admin", "POST", TENANT, admins()),
    ):
        answer = call(servers.web, who, method, path, body)
        assert answer.status == 412, (who, method, path, answer)
        assert f"{who!r} would be no" in answer.body
    for who in ("super", "extra"):
        assert call(servers.web, who, "GET", "/admin/v2/brokers/configuration/values").status == 200
    assert call(servers.web, "admin", "POST", TENANT, admins("admin", "another")).status == 204
    assert call(servers.web, "super", "POST", TENANT, admins("another")).status == 204
