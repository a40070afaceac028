"""Path matching, as upstream's JAX-RS does."""

import pytest
from aiohttp import web

from broker.admin.paths import Endpoint, PathTable, Takes, endpoint
from broker.authorization.operations import Level
from server.http import RestError


async def _handler(_: web.Request) -> web.StreamResponse:
    raise NotImplementedError


def _table(*endpoints: tuple[str, str]) -> PathTable:
    return PathTable(
        Endpoint(method, path, _handler, Level.AUTHENTICATED) for method, path in endpoints
    )


TOPICS = _table(
    ("GET", "/admin/v2/{domain}/{tenant}/{namespace}"),
    ("GET", "/admin/v2/{domain}/{tenant}/{namespace}/partitioned"),
    ("PUT", "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"),
    ("GET", "/admin/v2/non-persistent/{tenant}/{namespace}/{bundle}"),
    ("GET", "/admin/v2/stats/{rest}"),
)


@pytest.mark.parametrize(
    "path",
    [
        "/admin/v2/persistent/t/n",
        "/admin/v2/persistent/t/n/",
        "/admin/v2/persistent/t/n/;a=b",
        "/admin/v2/persistent;a=b/t/n;c",
    ],
)
def test_a_slash_at_the_end_and_parameters_of_a_segment_say_nothing(path: str) -> None:
    [resource] = TOPICS.find(path)
    assert resource.variables == {"domain": "persistent", "tenant": "t", "namespace": "n"}


@pytest.mark.parametrize(
    "path",
    [
        "/admin/v2/persistent//t/n",
        "/admin/v2/persistent/t/n//",
        "/admin/v2/persistent/t",
        "/admin/v2/PERSISTENT/t/n",
        "/admin/v2/%70ersistent/t/n",
        "/admin;a=b/v2/persistent/t/n",
        "/admin/v2/stats",
        "/",
        "",
    ],
)
def test_what_is_written_otherwise_names_nothing(path: str) -> None:
    assert TOPICS.find(path) == []


def test_the_template_with_more_literal_text_is_meant_first() -> None:
    found = TOPICS.find("/admin/v2/persistent/t/n/partitioned")
    assert [list(resource.methods) for resource in found] == [["GET"], ["PUT"]]


def test_templates_that_differ_in_names_only_are_one_path() -> None:
    [resource] = TOPICS.find("/admin/v2/non-persistent/t/n/x")
    assert set(resource.methods) == {"GET", "PUT"}
    assert resource.variables["domain"] == "non-persistent"


def test_the_rest_of_a_path_is_one_segment_or_more() -> None:
    assert TOPICS.find("/admin/v2/stats/a")
    assert TOPICS.find("/admin/v2/stats/a/b/c")


@pytest.mark.parametrize("text", ["%", "%1", "%zz", "%FF", "a%C3", "%C0%80"])
def test_what_is_no_encoded_text_is_400(text: str) -> None:
    with pytest.raises(RestError) as refused:
        TOPICS.find(f"/admin/v2/persistent/t/{text}")
    assert refused.value.status == 400


@pytest.mark.parametrize("text", ["%u0041", "%C3%BC", "%2F", "%25", "%0A", "%00"])
def test_what_is_encoded_text_is_found(text: str) -> None:
    [resource] = TOPICS.find(f"/admin/v2/persistent/t/{text}")
    assert resource.variables["namespace"] == text


def test_a_request_states_method_path_and_query() -> None:
    made = endpoint("GET {topic}/stats?metadata&applied", Level.AUTHENTICATED)
    assert made.method == "GET"
    assert made.path == "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/stats"
    assert made.query == ("metadata", "applied")
    assert endpoint("GET /lookup/v2/x", Level.AUTHENTICATED).path == "/lookup/v2/x"


@pytest.mark.parametrize(
    ("request_", "body", "takes"),
    [
        ("GET {topic}/stats", None, Takes.NOTHING),
        ("PUT {topic}/properties", {}, Takes.JSON),
        ("GET namespaces/{namespace}/bundles", None, Takes.APPLICATION_JSON),
        ("DELETE tenants/{tenant}", None, Takes.APPLICATION_JSON),
        ("GET schemas/{topic}/schema", None, Takes.NOTHING),
        ("POST schemas/{topic}/schema", {}, Takes.APPLICATION_JSON),
    ],
)
def test_the_path_and_the_body_decide_the_kind_of_body(request_, body, takes) -> None:
    assert endpoint(request_, Level.AUTHENTICATED, body=body).takes is takes


@pytest.mark.parametrize(
    ("method", "done", "status"), [("GET", (), 200), ("PUT", (), 204), ("PUT", (202,), 202)]
)
def test_a_success_has_the_status_of_its_row(method, done, status) -> None:
    assert endpoint(f"{method} x", Level.AUTHENTICATED, done=done).statuses[0] == status
