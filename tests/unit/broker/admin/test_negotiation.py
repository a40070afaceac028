"""Methods, media types and Accept headers, as recorded of a real broker."""

import pytest

from broker.admin.negotiation import METADATA_TYPE, accepted_type, allowed, taking
from broker.admin.paths import Endpoint, Takes
from broker.authorization.operations import Level
from server.http import RestError


def _one(takes: Takes) -> list[Endpoint]:
    return [Endpoint("PUT", "/p", Level.AUTHENTICATED, takes)]


def _status(takes: Takes, media_type: str | None, *, has_body: bool = True) -> int:
    try:
        taking(_one(takes), media_type, has_body=has_body)
    except RestError as error:
        return error.status
    return 200


@pytest.mark.parametrize(
    ("media_type", "only_json", "any_json", "number"),
    [
        ("application/json", 200, 200, 200),
        ("APPLICATION/JSON", 200, 200, 200),
        ("application/json; charset=utf-8", 200, 200, 200),
        ("text/json", 415, 200, 200),
        ("application/hal+json", 415, 200, 200),
        ("text/plain", 415, 415, 200),
        ("application/xml", 415, 415, 415),
        ("application/x-www-form-urlencoded", 415, 415, 415),
        ("application/*", 415, 415, 415),
        ("text/*", 415, 415, 200),
        ("*/*", 415, 415, 200),
        (None, 415, 415, 415),
        ("", 400, 400, 400),
        ("bogus", 400, 400, 400),
        ("application/json;x", 400, 400, 400),
    ],
)
def test_a_body_of_a_media_type_that_its_endpoint_does_not_take_is_refused(
    media_type, only_json, any_json, number
) -> None:
    kinds = (Takes.APPLICATION_JSON, Takes.JSON, Takes.NUMBER)
    assert [_status(takes, media_type) for takes in kinds] == [only_json, any_json, number]


@pytest.mark.parametrize("takes", list(Takes))
def test_a_request_without_body_and_content_type_is_accepted(takes: Takes) -> None:
    assert _status(takes, None, has_body=False) == 200


@pytest.mark.parametrize(("media_type", "status"), [("text/html", 200), (None, 200), ("x", 400)])
def test_an_endpoint_that_reads_no_body_accepts_any_well_formed_media_type(
    media_type: str | None, status: int
) -> None:
    assert _status(Takes.NOTHING, media_type) == status


def test_the_media_type_of_the_body_selects_the_endpoint() -> None:
    both = [*_one(Takes.METADATA), *_one(Takes.NUMBER)]
    assert taking(both, METADATA_TYPE, has_body=True).takes is Takes.METADATA
    assert taking(both, "application/json", has_body=True).takes is Takes.NUMBER


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "*",
        "application/*",
        "application/json;q=0",
        "text/html, */*;q=0.1",
        "image/png,*/*",
    ],
)
def test_an_accept_header_that_admits_json_is_answered_with_json(accept: str) -> None:
    assert accepted_type(accept) == "application/json"


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        ("application/json; charset=UTF-8", "application/json;charset=utf-8"),
        ('application/json;charset="utf-8";q=0.4', "application/json;charset=utf-8"),
        ("application/json;version=1;a=B", "application/json;a=B;version=1"),
        ("application/json;x=y;charset=UTF-8", "application/json;charset=UTF-8;x=y"),
        ("text/html,*/*, application/json;x=y", "application/json;x=y"),
        ("application/json, application/json;x=y", "application/json"),
        ("application/json;charset=utf-8;q=0.1, */*", "application/json"),
        ("*/*;charset=utf-8", "application/json"),
        ("application/json;q=much", "application/json"),
    ],
)
def test_the_content_type_repeats_the_json_parameters_of_the_accept_header(
    accept: str, answered: str
) -> None:
    assert accepted_type(accept) == answered


@pytest.mark.parametrize("accept", ["text/html", "text/*", "bogus", "application/xml, text/plain"])
def test_an_accept_header_without_json_is_answered_406(accept: str) -> None:
    with pytest.raises(RestError) as refused:
        accepted_type(accept)
    assert refused.value.status == 406


def test_allowed_methods_include_options_and_with_get_also_head() -> None:
    endpoints = _one(Takes.NOTHING)
    assert allowed({"GET": endpoints, "PUT": endpoints}) == ["HEAD", "GET", "OPTIONS", "PUT"]
    assert allowed({"POST": endpoints}) == ["POST", "OPTIONS"]
