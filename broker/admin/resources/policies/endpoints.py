"""Endpoints of the table's policies, for namespaces and topics."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from broker.admin.bodies import given_body, json_body
from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done, flag
from broker.admin.resources.policies.checks import Asked
from broker.admin.resources.policies.row import Empty, Null
from broker.admin.resources.policies.rows import ROWS
from broker.admin.resources.policies.subjects import (
    NAMESPACE_PATH,
    TOPIC_PATH,
    existing_namespace,
    topic_with_policies,
)
from broker.admin.resources.policies.values import PRIMITIVES, schema_of
from broker.authorization.operations import Level
from server.http import RestError, json_response

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

    from broker.admin.context import AdminContext
    from broker.admin.resources.policies.row import Place, PolicyRow
    from proto.names import NamespaceName, TopicName


def policy_endpoints(context: AdminContext) -> Iterator[Endpoint]:
    """Yield the endpoints of all policies in the table."""
    for row in ROWS:
        if row.namespace is not None:
            of_namespaces = _OfNamespaces(context, row, row.namespace)
            yield from of_namespaces.endpoints(NAMESPACE_PATH, Takes.APPLICATION_JSON)
        if row.topic is not None:
            of_topics = _OfTopics(context, row, row.topic)
            yield from of_topics.endpoints(TOPIC_PATH, Takes.JSON)


def shown(value: object, unset: object) -> web.Response:
    """Return the response with a policy.

    Args:
        value: The policy, if set.
        unset: The response for a policy not set.
    """
    value = unset if value is None else value
    return done(value.value) if isinstance(value, Empty) else json_response(value)


_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


class _Calls(ABC):
    """The requests about a policy."""

    _shown_by: tuple[str, ...] = ()
    """Names of GET's parameters."""

    def __init__(self, context: AdminContext, row: PolicyRow, place: Place) -> None:
        self._context = context
        self._row = row
        self._place = place

    def endpoints(self, below: str, takes: Takes) -> Iterator[Endpoint]:
        """Yield the endpoints below the path of a namespace or topic."""
        path, needs = f"{below}/{self._place.path}", self._row.needs
        of_superusers = below == NAMESPACE_PATH and self._row.of_superusers
        changes = Level.SUPERUSER if of_superusers else needs
        nothing = takes if takes is Takes.APPLICATION_JSON else Takes.NOTHING
        yield Endpoint(
            "GET", path, needs, nothing, self._shown_by, done=(200, 204), handler=self.get
        )
        parameter = self._place.parameter
        yield Endpoint(
            self._place.verb,
            path,
            changes,
            takes,
            (parameter,) if parameter else (),
            None if parameter else schema_of(self._row.read),
            body_required=False,
            done=(204, 200),
            handler=self.set,
        )
        if self._place.removable:
            yield Endpoint("DELETE", path, changes, nothing, handler=self.remove)

    @abstractmethod
    async def _subject(self, request: web.Request, *, changes: bool) -> NamespaceName | TopicName:
        """Return the existing namespace or topic in the path."""

    def _set(self, of: NamespaceName | TopicName) -> object:
        """Return the policy as set, or None."""
        return self._context.message_policies.document(of).get(self._row.key)

    async def get(self, request: web.Request) -> web.Response:
        """Return the policy."""
        subject = await self._subject(request, changes=False)
        return shown(self._set(subject), self._place.unset)

    async def set(self, request: web.Request) -> web.Response:
        """Set the policy."""
        body = await self._body(request)
        value = self._row.read(body)
        subject = await self._subject(request, changes=True)
        if body is None and self._place.null is Null.KEEPS:
            return done()
        policies = self._context.message_policies
        if body is None and self._place.null is Null.REMOVES:
            value = None
        else:
            document = policies.document(subject)
            asked = Asked(self._place.refusal, self._context.config, document)
            value = self._row.check(value, asked)
        await policies.set(subject, self._row.key, value)
        return done(self._place.done)

    async def _body(self, request: web.Request) -> object:
        if not self._place.parameter:
            primitive = self._place.null is Null.VALUE and self._row.read in PRIMITIVES
            return await (given_body if primitive else json_body)(request)
        text = request.query.get(self._place.parameter)
        if text is not None and not _WHOLE_NUMBER.fullmatch(text):
            raise RestError(404, f"{self._place.parameter}={text[:40]!r} should be a whole number")
        return text

    async def remove(self, request: web.Request) -> web.Response:
        """Remove the policy."""
        subject = await self._subject(request, changes=True)
        await self._context.message_policies.set(subject, self._row.key, None)
        return done()


class _OfNamespaces(_Calls):
    async def _subject(self, request: web.Request, *, changes: bool) -> NamespaceName:
        return await existing_namespace(
            self._context, request, by_policies=changes and self._place.misses_policies
        )


class _OfTopics(_Calls):
    _shown_by = ("applied",)

    async def _subject(self, request: web.Request, *, changes: bool) -> TopicName:
        return await topic_with_policies(self._context, request)

    async def get(self, request: web.Request) -> web.Response:
        """Return the policy, or the effective policy."""
        topic, value = await self._subject(request, changes=False), None
        if flag(request, "applied") and self._row.default is not None:
            value = self._set(topic.namespace)
            if value is None:
                own = self._context.message_policies.defaults
                value = self._row.default(own, self._context.config)
        of_topic = self._set(topic)
        return shown(value if of_topic is None else of_topic, self._place.unset)
