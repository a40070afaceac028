"""Plays exchanges of REST calls to a server, and removes the created objects."""

import http.client
import json
from urllib.parse import quote

from tests.differential.rest.calls import JSON_TYPE, RestCall, RestExchange
from tests.support.golden.exchange import Rest
from tests.support.golden.rest import RestAnswer
from tests.support.golden.rest import ask as send

ANSWER_SECONDS = 20.0
SET_KEYS = "/admin/v2/brokers/configuration/values"


class NoAnswerError(Exception):
    """A server cannot be reached."""


class UnpreparedError(Exception):
    """A server refuses an exchange's tenant: an existing tenant of the name cannot be removed."""


def play(web_address: str, exchange: RestExchange) -> tuple[RestAnswer, ...]:
    """Create an exchange's tenant, make its calls in order, and clean up.

    Args:
        web_address: ``host:port``.
        exchange: The calls.

    Raises:
        NoAnswerError: The server cannot be reached.
        UnpreparedError: The server refuses the tenant.
    """
    remove(web_address, exchange.tenant)
    try:
        for call in exchange.preparation:
            answer = ask(web_address, call)
            if answer.status != 204:
                raise UnpreparedError(f"{call.method} {call.path}: {answer.status} {answer.body}")
        return tuple(ask(web_address, call) for call in exchange.calls)
    finally:
        if exchange.changes_all:
            _reset_configuration(web_address)
        remove(web_address, exchange.tenant)


def ask(web_address: str, call: RestCall) -> RestAnswer:
    """Make a call on a new connection; status 0 without an answer. Redirects are not followed.

    Raises:
        NoAnswerError: The server cannot be reached.
    """
    sent = Rest(call.method, call.path, call.body, 0)
    try:
        return send(web_address, sent, dict(call.headers), ANSWER_SECONDS)
    except ConnectionRefusedError as error:
        raise NoAnswerError(f"{web_address} cannot be reached: {error}") from None
    except (http.client.HTTPException, OSError):
        return RestAnswer(0, "")


# -- removing -------------------------------------------------------------------------------------


def remove(web_address: str, tenant: str) -> None:
    """Remove every tenant whose name begins with ``tenant``, with its contents.

    Raises:
        NoAnswerError: The server cannot be reached.
    """
    for name in _names(web_address, "/admin/v2/tenants"):
        if name.startswith(tenant):
            for namespace in _names(web_address, f"/admin/v2/namespaces/{name}"):
                _remove_namespace(web_address, namespace)
            _delete(web_address, f"/admin/v2/tenants/{name}")


def _remove_namespace(web_address: str, namespace: str) -> None:
    for domain in ("persistent", "non-persistent"):
        topics = f"/admin/v2/{domain}/{namespace}"
        for topic in _names(web_address, f"{topics}/partitioned"):
            _delete(web_address, f"{topics}/{_segment(topic)}/partitions?force=true")
        for topic in _names(web_address, topics):
            _delete(web_address, f"{topics}/{_segment(topic)}?force=true")
    _delete(web_address, f"/admin/v2/namespaces/{namespace}")


def _segment(topic: str) -> str:
    return quote(topic.split("/", 4)[-1], safe="")


def _reset_configuration(web_address: str) -> None:
    for key in _names(web_address, SET_KEYS):
        _delete(web_address, f"/admin/v2/brokers/configuration/{quote(key, safe='')}")


def _names(web_address: str, path: str) -> list[str]:
    answer = ask(web_address, RestCall("removal", "plain", "GET", path))
    return (
        list(json.loads(answer.body))
        if answer.content_type == JSON_TYPE and (answer.status == 200)
        else []
    )


def _delete(web_address: str, path: str) -> None:
    ask(web_address, RestCall("removal", "plain", "DELETE", path))
