"""Schemas of topics: ``/admin/v2/schemas``.

Source: upstream SchemasResourceBase, v2.SchemasResource.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from aiohttp import web

from broker.admin.bodies import BadBodyError, check_unicode, json_object, string_map_of
from broker.admin.openapi import schemas
from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import TOPIC_REASON, flag, namespace_name, segment
from broker.authorization.operations import Level, TopicOperation
from broker.schemas.errors import TRUNCATED_KEY_VALUE, SchemaRefusal, SchemaRefusedError
from broker.schemas.schema import (
    KEY_VALUE,
    REST_KINDS,
    Schema,
    TruncatedKeyValueError,
    as_text,
    of_text,
)
from proto.names import PERSISTENT, InvalidNameError, TopicName
from server.cross_site import check_change
from server.http import JSON_TYPE, RestError, json_response

if TYPE_CHECKING:
    from broker.admin.context import AdminContext
    from broker.policies.effective import EffectivePolicies
    from broker.stores.store import StoredSchema

SCHEMAS = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
NOT_FOUND = "Schema not found"
_INVALID, _INCOMPATIBLE, _FAILED, _ACCEPTED = 422, 409, 500, 202


class SchemaAdmin:
    """Requests about schemas; missing topics may have schemas."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context
        self._schemas = context.schemas

    @Endpoint("GET", f"{SCHEMAS}/schema", TopicOperation.GET_METADATA)
    async def get(self, request: web.Request) -> web.StreamResponse:
        """Return the newest schema."""
        return await self._answer(await self._schemas.get(schema_topic(request)))

    @Endpoint("GET", f"{SCHEMAS}/schema/{{version}}", TopicOperation.GET_METADATA)
    async def get_version(self, request: web.Request) -> web.StreamResponse:
        """Return a version."""
        topic, text = schema_topic(request), segment(request, "version")
        try:
            version = int(text[:20])
        except ValueError:
            reason = f'For input string: "{text}"'
            raise BadBodyError(reason, upstream_status=_FAILED) from None
        return await self._answer(await self._schemas.get(topic, version))

    async def _answer(self, found: StoredSchema | None) -> web.StreamResponse:
        if found is None:
            raise RestError(404, NOT_FOUND)
        return json_response(await _shown(found))

    @Endpoint("GET", f"{SCHEMAS}/schemas", TopicOperation.GET_METADATA)
    async def get_all(self, request: web.Request) -> web.StreamResponse:
        """Return all effective versions, written singly: together they may be large."""
        found = await self._schemas.in_force(schema_topic(request))
        response = web.StreamResponse(headers={"Content-Type": JSON_TYPE})
        await response.prepare(request)
        await response.write(b'{"getSchemaResponses":[')
        for index, one in enumerate(found):
            text = json.dumps(await _shown(one), ensure_ascii=False, separators=(",", ":"))
            await response.write((b"," if index else b"") + text.encode(errors="backslashreplace"))
            await asyncio.sleep(0)
        await response.write(b"]}")
        await response.write_eof()
        return response

    @Endpoint("GET", f"{SCHEMAS}/metadata", TopicOperation.GET_METADATA)
    async def metadata(self, request: web.Request) -> web.StreamResponse:
        """Return all versions, deletions included; empty without a schema.

        Ledger and entry ids of a real broker are 0 here.
        """
        known = await self._schemas.history(schema_topic(request))
        if not known:
            return web.Response(headers={"Content-Type": JSON_TYPE})
        index = [{"ledgerId": 0, "entryId": 0, "version": one.version} for one in known]
        return json_response({"info": index[-1], "index": index})

    @Endpoint(
        "POST",
        f"{SCHEMAS}/schema",
        TopicOperation.PRODUCE,
        Takes.APPLICATION_JSON,
        body=schemas.SCHEMA,
        done=(200,),
        refused=(422,),
    )
    async def post(self, request: web.Request) -> web.StreamResponse:
        """Add a version, or return the same schema's version; the policy for clients is ignored."""
        check_change(request)
        topic = schema_topic(request)
        await self._context.policies(topic.namespace)
        schema = await _schema(request)
        try:
            version = await self._schemas.offer(topic, schema, self._policies(topic), may_add=True)
        except TruncatedKeyValueError:
            raise RestError(_INVALID, TRUNCATED_KEY_VALUE.text) from None
        except SchemaRefusedError as error:
            raise _refused(error.refusal) from None
        return json_response({"version": {"version": version}})

    @Endpoint("DELETE", f"{SCHEMAS}/schema", Level.TENANT_ADMIN, query=("force",), done=(200,))
    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Mark the schemas as deleted, as a new version; with ``force`` delete all versions."""
        check_change(request)
        topic = schema_topic(request)
        if not flag(request, "force"):
            try:
                return json_response({"version": await self._schemas.remove(topic)})
            except SchemaRefusedError as error:
                raise _refused(error.refusal) from None
        await self._schemas.delete(topic)
        return json_response({"version": -1})

    @Endpoint(
        "POST",
        f"{SCHEMAS}/compatibility",
        Level.TENANT_ADMIN,
        Takes.APPLICATION_JSON,
        body=schemas.SCHEMA,
        done=(202,),
        refused=(422,),
    )
    async def compatibility(self, request: web.Request) -> web.StreamResponse:
        """Report whether a schema could become a version."""
        topic = schema_topic(request)
        schema, policies = await _schema(request), self._policies(topic)
        compatible = True
        try:
            await self._schemas.test(topic, schema, policies)
        except TruncatedKeyValueError:
            raise RestError(_INVALID, TRUNCATED_KEY_VALUE.text) from None
        except SchemaRefusedError as error:
            refusal = error.refusal
            if self._context.rules.fails_as_upstream:
                raise RestError(_FAILED, refusal.text) from None
            if refusal.invalid:
                raise _refused(refusal) from None
            compatible = False
        answer = {
            "schemaCompatibilityStrategy": policies.schema_strategy,
            "compatibility": compatible,
        }
        return json_response(answer, _ACCEPTED)

    @Endpoint(
        "POST",
        f"{SCHEMAS}/version",
        TopicOperation.GET_METADATA,
        Takes.APPLICATION_JSON,
        body=schemas.SCHEMA,
        done=(200,),
    )
    async def version_of(self, request: web.Request) -> web.StreamResponse:
        """Return the version of the same schema; -1 if missing."""
        topic = schema_topic(request)
        version = await self._schemas.version_of(topic, await _schema(request))
        return json_response({"version": -1 if version is None else version})

    def _policies(self, topic: TopicName) -> EffectivePolicies:
        return self._context.message_policies.of(topic)


def schema_topic(request: web.Request) -> TopicName:
    """Return the topic in the path, which has no domain.

    Raises:
        RestError: 412, the name is invalid.
    """
    namespace = namespace_name(request, TOPIC_REASON)
    local = segment(request, "topic")
    try:
        topic = TopicName.parse(f"{PERSISTENT}://{namespace}/{local}")
    except InvalidNameError:
        raise RestError(412, TOPIC_REASON) from None
    if "/" in local:
        raise RestError(412, TOPIC_REASON)
    return topic


async def _schema(request: web.Request) -> Schema:
    body = await json_object(request)
    if body is None:
        raise BadBodyError("the body should be a schema", upstream_status=_FAILED)
    kind = REST_KINDS.get(str(body.get("type")))
    if kind is None:
        shown = str(body.get("type"))[:100]
        reason = f"No enum constant org.apache.pulsar.common.schema.SchemaType.{shown}"
        raise BadBodyError(reason, upstream_status=_FAILED)
    text = body.get("schema")
    if not isinstance(text, str):
        raise BadBodyError("schema should be a string", upstream_status=_FAILED)
    properties = body.get("properties")
    if not isinstance(properties, dict | None):
        raise BadBodyError("properties should be an object of strings")
    check_unicode([text])
    return Schema(kind, await _data(kind, text), string_map_of(properties or {}, "properties"))


async def _data(kind: str, text: str) -> bytes:
    if kind != KEY_VALUE:
        return text.encode()
    try:
        # Parsing as many values as fit into a body would hold the event loop.
        return await asyncio.to_thread(of_text, text)
    except (ValueError, RecursionError):
        reason = "schema should be an object with key and value"
        raise BadBodyError(reason, upstream_status=_FAILED) from None


async def _shown(stored: StoredSchema) -> dict[str, object]:
    schema = Schema(stored.kind, stored.data, stored.properties)
    if stored.kind == KEY_VALUE:
        data = await asyncio.to_thread(as_text, schema)
    else:
        data = stored.data.decode(errors="replace")
    return {
        "version": stored.version,
        "type": stored.kind,
        "timestamp": stored.stored_at,
        "data": data,
        "properties": dict(stored.properties),
    }


def _refused(refusal: SchemaRefusal) -> RestError:
    return RestError(_INVALID if refusal.invalid else _INCOMPATIBLE, refusal.text)
