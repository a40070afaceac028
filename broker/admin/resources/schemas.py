"""Admin requests about the schemas of topics: ``/admin/v2/schemas``.

Source: upstream SchemasResourceBase, v2.SchemasResource.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from aiohttp import hdrs, web

from broker.admin.bodies import json_object
from broker.admin.openapi import schemas
from broker.admin.paths import Resource, endpoint
from broker.admin.requests import TOPIC_REASON, flag, namespace_name, segment
from broker.authorization.operations import Level, TopicOperation
from broker.policies.values import BadBodyError, check_unicode, string_map_of
from broker.schemas.errors import SchemaRefusedError
from broker.schemas.schema import KEY_VALUE, REST_KINDS, Schema, as_text, of_text
from proto.names import PERSISTENT, InvalidNameError, TopicName
from server.cross_site import check_change
from server.http import JSON_TYPE, RestError

if TYPE_CHECKING:
    from broker.policies.effective import EffectivePolicies
    from broker.stores.store import StoredSchema

NOT_FOUND = "Schema not found"
_FAILED = 500


class SchemaAdmin(Resource):
    """Handlers of admin requests about schemas, even of topics that do not exist."""

    @endpoint("GET schemas/{topic}/schema", TopicOperation.GET_METADATA)
    async def get(self, request: web.Request) -> object:
        """Return the newest schema of a topic."""
        return await self._answer(await self._context.schemas.get(schema_topic(request)))

    @endpoint("GET schemas/{topic}/schema/{version}", TopicOperation.GET_METADATA)
    async def get_version(self, request: web.Request) -> object:
        """Return a version of a topic's schema."""
        topic, text = schema_topic(request), segment(request, "version")
        try:
            version = int(text[:20])
        except ValueError:
            reason = f'For input string: "{text}"'
            raise BadBodyError(reason, upstream_status=_FAILED) from None
        return await self._answer(await self._context.schemas.get(topic, version))

    async def _answer(self, found: StoredSchema | None) -> object:
        if found is None:
            raise RestError(404, NOT_FOUND)
        return await _shown(found)

    @endpoint("GET schemas/{topic}/schemas", TopicOperation.GET_METADATA)
    async def get_all(self, request: web.Request) -> web.StreamResponse:
        """Return all effective versions of a topic's schema.

        They are sent one by one, because together they may be large.
        """
        found = await self._context.schemas.in_force(schema_topic(request))
        response = web.StreamResponse(headers={"Content-Type": JSON_TYPE})
        await response.prepare(request)
        if request.method == hdrs.METH_HEAD:
            return response
        await response.write(b'{"getSchemaResponses":[')
        for index, one in enumerate(found):
            text = json.dumps(await _shown(one), ensure_ascii=False, separators=(",", ":"))
            await response.write((b"," if index else b"") + text.encode(errors="backslashreplace"))
            await asyncio.sleep(0)
        await response.write(b"]}")
        await response.write_eof()
        return response

    @endpoint("GET schemas/{topic}/metadata", TopicOperation.GET_METADATA)
    async def metadata(self, request: web.Request) -> object:
        """Return the version numbers of a topic's schema, including deletions.

        The response is empty without a schema.

        Ledger and entry ids of a real broker are 0 here.
        """
        known = await self._context.schemas.history(schema_topic(request))
        if not known:
            return web.Response(headers={"Content-Type": JSON_TYPE})
        index = [{"ledgerId": 0, "entryId": 0, "version": one.version} for one in known]
        return {"info": index[-1], "index": index}

    @endpoint(
        "POST schemas/{topic}/schema",
        TopicOperation.PRODUCE,
        body=schemas.SCHEMA,
        done=(200,),
        refused=(422,),
    )
    async def post(self, request: web.Request) -> object:
        """Add a version of a topic's schema, or return the version of an equal schema.

        The policy about schema updates by clients does not apply.
        """
        check_change(request)
        topic = schema_topic(request)
        await self._context.policies(topic.namespace)
        schema = await _schema(request)
        policies = self._policies(topic)
        version = await self._context.schemas.offer(topic, schema, policies, may_add=True)
        return {"version": {"version": version}}

    @endpoint("DELETE schemas/{topic}/schema?force", Level.TENANT_ADMIN, done=(200,))
    async def delete(self, request: web.Request) -> object:
        """Mark a topic's schema as deleted by a new version; with ``force`` delete all versions."""
        check_change(request)
        topic = schema_topic(request)
        if not flag(request, "force"):
            return {"version": await self._context.schemas.remove(topic)}
        await self._context.schemas.delete(topic)
        return {"version": -1}

    @endpoint(
        "POST schemas/{topic}/compatibility",
        Level.TENANT_ADMIN,
        body=schemas.SCHEMA,
        done=(202,),
        refused=(422,),
    )
    async def compatibility(self, request: web.Request) -> object:
        """Report whether a schema is compatible enough to become a topic's next version."""
        topic = schema_topic(request)
        await self._context.policies(topic.namespace)
        schema, policies = await _schema(request), self._policies(topic)
        compatible = True
        try:
            await self._context.schemas.test(topic, schema, policies)
        except SchemaRefusedError as error:
            if self._context.rules.fails_as_upstream:
                raise RestError(_FAILED, error.refusal.text) from None
            if error.refusal.invalid:
                raise
            compatible = False
        return {
            "schemaCompatibilityStrategy": policies.schema_strategy,
            "compatibility": compatible,
        }

    @endpoint(
        "POST schemas/{topic}/version",
        TopicOperation.GET_METADATA,
        body=schemas.SCHEMA,
        done=(200,),
    )
    async def version_of(self, request: web.Request) -> object:
        """Return the version of a topic's schema that equals the schema sent; -1 if missing."""
        topic = schema_topic(request)
        version = await self._context.schemas.version_of(topic, await _schema(request))
        return {"version": -1 if version is None else version}

    def _policies(self, topic: TopicName) -> EffectivePolicies:
        return self._context.message_policies.of(topic)


def schema_topic(request: web.Request) -> TopicName:
    """Return the persistent topic in the request's path, which names no domain.

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
