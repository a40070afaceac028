"""``floodgate-admin request``: any call of the admin REST, even without a verb."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import typer

from client.admin.commands.options import Option
from client.admin.commands.values import document, one_of
from client.admin.commands.verbs import Function

if TYPE_CHECKING:
    from client.admin.commands.call import Call
    from client.admin.commands.output import Output
    from client.admin.rest import AdminRest, Body

_AS_WRITTEN = "/%?=&:@!$'()*+,;~"
"""Characters of a path sent unencoded; all others are percent-encoded."""


def _body(text: str) -> Body:
    from client.admin.rest import Body

    return Body(document(text))


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise typer.BadParameter(f"{text[:50]!r} is no key=value")
    return key, value


_OPTIONS = {
    "method": Option(str, "", "GET, PUT, POST or DELETE.", "METHOD",
                     parser=one_of("GET", "PUT", "POST", "DELETE")),
    "path": Option(str, "", "Path below /admin/v2, or from its first slash on.", "PATH"),
    "body": Option(str, "--body", "Body: JSON, or @FILE with it.", "JSON", None, _body),
    "query": Option(list[str], "--query", "Member of the query. May be repeated.", "K=V", None,
                    _pair),
}  # fmt: skip


def _request(
    call: Call, method: str, path: str, body: Body | None, query: list[tuple[str, str]] | None
) -> None:
    """Send any call of the admin REST, and show the answer.

    Examples:
    floodgate-admin request GET persistent/acme/orders/eu/stats
    floodgate-admin request GET brokers/health --query topicVersion=V2
    floodgate-admin request POST namespaces/acme/orders/messageTTL --body 60
    """
    whole = quote(path if path.startswith("/") else f"/admin/v2/{path}", safe=_AS_WRITTEN)
    if query:
        whole += f"{'&' if '?' in whole else '?'}{urlencode(query, quote_via=quote, safe='')}"

    async def write(rest: AdminRest, output: Output) -> None:
        answer = await rest.text(method, whole, body)
        try:
            found = json.loads(answer or "null")
        except (ValueError, RecursionError):
            output.text(answer.strip(), "answer")
        else:
            output.value(found)

    call.ask(f"{method} {whole}", write)


REQUEST = Function("request", _request, _OPTIONS)
