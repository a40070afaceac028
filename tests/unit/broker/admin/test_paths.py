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
def test_a_trailing_slash_and_matrix_parameters_are_ignored(path: str) -> None:
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
def test_a_path_that_matches_no_template_names_no_resource(path: str) -> None:
    assert TOPICS.find(path) == []


def test_the_template_with_more_literal_text_matches_first() -> None:
    found = TOPICS.find("/admin/v2/persistent/t/n/partitioned")
    assert [list(resource.methods) for resource in found] == [["GET"], ["PUT"]]


def test_templates_that_differ_only_in_variable_names_share_a_resource() -> None:
    [resource] = TOPICS.find("/admin/v2/non-persistent/t/n/x")
    assert set(resource.methods) == {"GET", "PUT"}
    assert resource.variables["domain"] == "non-persistent"


def test_the_rest_variable_matches_one_or_more_segments() -> None:
    assert TOPICS.find("/admin/v2/stats/a")
    assert TOPICS.find("/admin/v2/stats/a/b/c")


@pytest.mark.parametrize("text", ["%", "%1", "%zz", "%FF", "a%C3", "%C0%80"])
def test_a_malformed_percent_encoding_is_answered_400(text: str) -> None:
    with pytest.raises(RestError) as refused:
        TOPICS.find(f"/admin/v2/persistent/t/{text}")
    assert refused.value.status == 400


@pytest.mark.parametrize("text", ["%u0041", "%C3%BC", "%2F", "%25", "%0A", "%00"])
def test_an_encoded_segment_is_matched_and_kept_encoded(text: str) -> None:
    [resource] = TOPICS.find(f"/admin/v2/persistent/t/{text}")
    assert resource.variables["namespace"] == text


def test_an_endpoint_row_states_method_path_and_query_parameters() -> None:
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
def test_the_path_and_the_body_determine_the_accepted_body_type(request_, body, takes) -> None:
    assert endpoint(request_, Level.AUTHENTICATED, body=body).takes is takes


@pytest.mark.parametrize(
    ("method", "done", "status"), [("GET", (), 200), ("PUT", (), 204), ("PUT", (202,), 202)]
)
def test_a_success_has_the_status_of_its_method_unless_the_endpoint_states_another(
    method, done, status
) -> None:
    assert endpoint(f"{method} x", Level.AUTHENTICATED, done=done).statuses[0] == status
