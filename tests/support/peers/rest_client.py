"""An admin REST client that sends paths verbatim."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import aiohttp
from yarl import URL

from broker.service import BrokerService


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def value(self) -> Any:
        """The body's JSON."""
        return json.loads(self.text)

    @property
    def reason(self) -> str:
        """The sentence of an error."""
        return str(self.value["reason"])


class RestClient:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def ask(
        self,
        method: str,
        path: str,
        body: str | bytes | BinaryIO | None = None,
        media_type: str = "application/json",
        accept: str = "*/*",
    ) -> Answer:
        """Make a call; the path is not encoded again."""
        url = URL(f"{self._url}{path}", encoded=True)
        headers = {"Content-Type": media_type, "Accept": accept}
        async with self._session.request(
            method, url, data=body, headers=headers, allow_redirects=False
        ) as answer:
            return Answer(answer.status, await answer.text(), dict(answer.headers))

    async def done(self, method: str, path: str, body: str | None = None) -> None:
        """Make a call and check its success.

        Raises:
            AssertionError: The call failed.
        """
        answer = await self.ask(method, path, body)
        assert answer.status < 300, f"{method} {path}: {answer}"


@asynccontextmanager
async def rest_client(broker: BrokerService) -> AsyncIterator[RestClient]:
    """Open a client for the length of a block."""
    async with aiohttp.ClientSession() as session:
        yield RestClient(session, broker.web_service_url)
