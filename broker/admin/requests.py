"""Parsing of the names and flags in the path and query of an admin request.

Names are decoded from the path as sent: a client encodes each segment separately, and a slash
within a topic's name would otherwise look like a separator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from aiohttp import web

from broker.bundles import BundleRange, bundle_named
from broker.configuration.plugin_keys import PropertyBounds, TooManyPropertiesError
from broker.errors import RefusedError
from broker.messages.errors import MessageStoreError
from broker.policies.values import BadBodyError
from broker.schemas.errors import TRUNCATED_KEY_VALUE, SchemaRefusedError
from broker.schemas.schema import TruncatedKeyValueError
from broker.stores.changes import StoreError
from proto.names import InvalidNameError, NamespaceName, TopicName
from server.http import JSON_TYPE, RestError, json_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.admin.context import AdminRules
    from broker.admin.paths import Endpoint

TOPIC_REASON = "Topic name is not valid"
NAMESPACE_REASON = "Namespace name is not valid"
TENANT_REASON = "Tenant name is not valid"


class FailsUpstreamError(Exception):
    """A request that upstream's server answers with 500, and profile floodgate with a 4xx status.

    Attributes:
        status: The HTTP status in profile floodgate.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


async def answered(
    endpoint: Endpoint, request: web.Request, rules: AdminRules
) -> web.StreamResponse:
    """Call an endpoint's handler, and return the response with its result or its error.

    Raises:
        RestError: The request is refused, or the store failed.
    """
    try:
        found = await endpoint.handler(request)
    except RefusedError as error:
        raise RestError(error.refusal.value, error.reason) from None
    except (StoreError, MessageStoreError) as error:
        raise RestError(500, str(error)) from None
    except (SchemaRefusedError, TruncatedKeyValueError) as error:
        refusal = error.refusal if isinstance(error, SchemaRefusedError) else TRUNCATED_KEY_VALUE
        raise RestError(422 if refusal.invalid else 409, refusal.text) from None
    except FailsUpstreamError as error:
        status = 500 if rules.fails_as_upstream else error.status
        raise RestError(status, str(error)) from None
    except BadBodyError as error:
        if rules.fails_as_upstream and error.upstream_status != 400:
            raise RestError(error.upstream_status, str(error)) from None
        text = str(error).encode(errors="backslashreplace")
        return web.Response(body=text, status=400, headers={"Content-Type": error.media_type})
    if isinstance(found, web.StreamResponse):
        return found
    status = endpoint.statuses[0]
    return web.Response(status=status) if found is None else json_response(found, status)


def plain(text: str | None) -> web.Response | None:
    """Return a plain-text response labelled as JSON (recorded); return None if the text is None."""
    if text is None:
        return None
    return web.Response(body=text.encode(), headers={"Content-Type": JSON_TYPE})


# -- names ----------------------------------------------------------------------------------------


def segment(request: web.Request, name: str) -> str:
    """Return a decoded variable of the path; ``+`` is a space, as Java's clients encode it.

    Raises:
        RestError: 400, the variable is not UTF-8.
    """
    raw = request.match_info[name]
    try:
        return unquote_plus(raw, errors="strict")
    except UnicodeDecodeError:
        raise RestError(400, f"{raw[:100]!r} in the path is not UTF-8") from None


def tenant_name(request: web.Request) -> str:
    """Return the tenant in the request's path.

    Raises:
        RestError: 412, the name has forbidden characters.
    """
    try:
        return NamespaceName.parse(f"{segment(request, 'tenant')}/x").tenant
    except InvalidNameError:
        raise RestError(412, TENANT_REASON) from None


def namespace_name(request: web.Request, reason: str = NAMESPACE_REASON) -> NamespaceName:
    """Return the namespace in the request's path.

    Raises:
        RestError: 412 with ``reason``, the name has forbidden characters.
    """
    text = f"{segment(request, 'tenant')}/{segment(request, 'namespace')}"
    try:
        return NamespaceName.parse(text)
    except InvalidNameError:
        raise RestError(412, reason) from None


def topic_name(request: web.Request, namespace_reason: str = TOPIC_REASON) -> TopicName:
    """Return the topic in the request's path.

    Args:
        request: A request with a domain, a tenant, a namespace and a topic in the path.
        namespace_reason: The error text for an invalid namespace.

    Raises:
        RestError: 412, the name is invalid.
    """
    namespace = namespace_name(request, namespace_reason)
    text = f"{segment(request, 'domain')}://{namespace}/{segment(request, 'topic')}"
    try:
        return TopicName.parse(text)
    except InvalidNameError:
        raise RestError(412, TOPIC_REASON) from None


def asked_bundle(request: web.Request, bundles: int, variable: str = "bundle") -> BundleRange:
    """Return the bundle in the request's path, which must be one of the namespace's bundles.

    Raises:
        RestError: 412, the namespace has no such bundle.
    """
    text = segment(request, variable)
    found = bundle_named(text, bundles)
    if found is None:
        raise RestError(412, f"Invalid bundle range: {text[:100]}")
    return found


def flag(request: web.Request, name: str, *, default: bool = False) -> bool:
    """Return a boolean query parameter; as in Java, only ``true`` counts as true.

    An empty parameter has the default value, too.
    """
    return (request.query.get(name) or str(default)).lower() == "true"


def parse_properties(
    text: str, bounds: PropertyBounds, *, skip_unreadable: bool
) -> Mapping[str, str]:
    """Parse the query parameter ``properties``, a list ``key=value,key=value``.

    Empty parts are skipped. Of a repeated key the last value counts, as in the binary protocol.

    Args:
        text: The parameter.
        bounds: The limits on the properties.
        skip_unreadable: Whether unreadable parts are left out; otherwise they are refused.

    Raises:
        RestError: 412, a part is unreadable, or the properties are too many or too large.
    """
    properties: dict[str, str] = {}
    for part in filter(str.strip, text.split(",")):
        key, separator, value = part.partition("=")
        name = unquote_plus(key.strip())
        if separator and name:
            properties[name] = unquote_plus(value.strip())
        elif not skip_unreadable:
            raise RestError(412, f"properties={part[:40]!r} should be key=value,key=value")
    try:
        bounds.check(properties)
    except TooManyPropertiesError as error:
        raise RestError(412, str(error)) from None
    return properties
