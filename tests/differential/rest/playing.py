"""Plays exchanges of REST calls to a server, and removes the created objects."""

import http.client
import json
from dataclasses import dataclass
from urllib.parse import quote

from tests.differential.rest.calls import JSON_TYPE, RestCall, RestExchange

ANSWER_SECONDS = 20.0
SET_KEYS = "/admin/v2/brokers/configuration/values"


class NoAnswerError(Exception):
    """A server cannot be reached."""


class UnpreparedError(Exception):
    """A server refuses an exchange's tenant: an existing tenant of the name cannot be removed."""


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """Answer; absent headers are None.

    Attributes:
        status: 0 without an answer within 20 s, or after a connection error.
        content_type: As received.
        location: Of a redirect.
        allow: The methods of ``Allow``, sorted.
        body: As text.
    """

    status: int
    content_type: str | None
    location: str | None
    allow: tuple[str, ...] | None
    body: str


class _PlainConnection(http.client.HTTPConnection):
    """Sends a path unmodified, even an invalid path."""

    def _validate_path(self, url: str) -> None:
        pass

    def _encode_request(self, request: str) -> bytes:
        return request.encode("utf-8")


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
    """Make a call on a new connection; redirects are not followed.

    Raises:
        NoAnswerError: The server cannot be reached.
    """
    connection = _PlainConnection(web_address, timeout=ANSWER_SECONDS)
    try:
        connection.connect()
    except OSError as error:
        raise NoAnswerError(f"{web_address} cannot be reached: {error}") from None
    try:
        _send(connection, call)
        answer = connection.getresponse()
        allow = answer.getheader("Allow")
        return RestAnswer(
            answer.status,
            answer.getheader("Content-Type"),
            answer.getheader("Location"),
            None if allow is None else tuple(sorted(allow.replace(" ", "").split(","))),
            answer.read().decode("utf-8", "replace"),
        )
    except (http.client.HTTPException, OSError):
        return RestAnswer(0, None, None, None, "")
    finally:
        connection.close()


def _send(connection: http.client.HTTPConnection, call: RestCall) -> None:
    connection.putrequest(call.method, call.path, skip_accept_encoding=True)
    for name, value in call.headers:
        connection.putheader(name, value)
    body = None if call.body is None else call.body.encode("utf-8", "surrogatepass")
    if body is not None or call.method in ("PUT", "POST", "PATCH"):
        connection.putheader("Content-Length", str(len(body or b"")))
    connection.endheaders(body)


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
