"""The recordings replayed: every difference not listed here is a fault.

Blocking, like the recorder: servers in the same process run in another thread.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from unittest.mock import Mock

from broker.admin.paths import PathTable
from broker.admin.resources.not_implemented import NotImplementedAdmin
from broker.admin.routes import endpoints
from tests.support.golden.exchange import Rest, load_lines
from tests.support.golden.rest import ask
from tests.support.security.binary import (
    ANSWERED_BY_PROXY,
    ORDERS,
    OTHER,
    answers,
    connect,
    connect_cases,
    question,
)
from tests.support.security.credentials import (
    Credential,
    few_wrong_credentials,
    right_credentials,
    wrong_credentials,
)
from tests.support.security.rest_calls import sentence
from tests.support.security.world import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.admin.context import AdminContext

    Chosen = Callable[[int, int], bool]

DATA = Path(__file__).parents[2] / "data" / "security"
RECORDED_ID = "127.0.0.1:23011"
"""The web address of the recorded broker."""
NO_CLIENTS = ("proxy for (none)", "gate for (none)", "(no subject)")
"""Credentials with which a proxy cannot connect to a broker: it gets an error or a close."""
INVALID_ROLES = "Invalid roles."
_UNAUTHENTICATED = "401 Authentication required"
_USED = "/admin/v2/persistent/acme/shop/used"
NOT_FORWARDED = ("/metrics", "/status.html")
"""Paths that a proxy answers by itself."""
REST_DEVIATIONS = {
    ("DELETE", f"{_USED}/truncate"): "LOOKUP is asked for before: another sentence",
    ("POST", f"{_USED}/createMissedPartitions"): "of what is not partitioned LOOKUP was enough",
    ("GET", "/lookup/v2/topic/persistent/acme/missing/orders"): "all were told that it is missing",
}
"""Calls that differ for some role, with reasons."""
AT_THE_PROXY = {
    "refreshed as another": "a proxy takes fresh credentials of another role; here it closes",
}
"""Proxy dialogues that differ, with reasons."""


class Difference(NamedTuple):
    """A differing answer.

    Attributes:
        asked: The request or call.
        who: The credential.
        recorded: A real broker's answer.
        came: Floodgate's answer.
    """

    asked: str
    who: str
    recorded: str
    came: str


class Replayed(NamedTuple):
    """A replayed recording.

    Attributes:
        asked: Number of compared answers.
        differences: The differing answers.
    """

    asked: int
    differences: list[Difference]


def everything(_row: int, _who: int) -> bool:
    """Choose all."""
    return True


def one_of(count: int) -> Chosen:
    """Choose a sample that covers each row and each credential."""
    return lambda row, who: (row + who) % count == 0


def recorded(name: str) -> list[dict[str, Any]]:
    return load_lines(DATA / f"{name}.jsonl")


def replay_connects(address: str, name: str) -> Replayed:
    expected = {row["name"]: row["answers"] for row in recorded(name)}
    different, asked = [], 0
    for case, commands in connect_cases([*wrong_credentials(), *right_credentials()]):
        asked += 1
        came = answers(address, commands, last_only=False)
        if came != expected[case]:
            different.append(Difference("CONNECT", case, str(expected[case]), str(came)))
    return Replayed(asked, different)


def replay_rows(name: str, rows: Iterator[dict[str, Any]]) -> Replayed:
    """Compare a dialogue's rows with the recorded rows."""
    expected, different, asked = recorded(name), [], 0
    for row, came in zip(expected, rows, strict=True):
        asked += 1
        if row != came:
            different.append(Difference(name, row["name"], str(row), str(came)))
    return Replayed(asked, different)


def make_schemas(address: str) -> None:
    """Create the schemas that existed during the recording through the proxy."""
    superuser = next(one for one in right_credentials() if one.name == "super")
    for topic in (ORDERS, OTHER):
        asked = [connect(superuser), question("GET_OR_CREATE_SCHEMA", topic)]
        assert answers(address, asked, last_only=True) == ["GET_OR_CREATE_SCHEMA_RESPONSE"]


# -- questions of the binary protocol -------------------------------------------------------------


def replay_questions(
    address: str, name: str, chosen: Chosen = everything, *, via: str = ""
) -> Replayed:
    """Repeat requests, each with several credentials.

    Args:
        address: ``host:port`` of a broker or proxy.
        name: The recording's.
        chosen: Selected requests.
        via: The broker behind the proxy.
    """
    known = {one.name: one for one in (*right_credentials(), *wrong_credentials())}
    different, asked = [], 0
    for number, row in enumerate(recorded(name)):
        expected = {who: one["answer"] for one in row["outcomes"] for who in one["who"]}
        for place, who in enumerate(expected):
            if not chosen(number, place):
                continue
            asked += 1
            came = _answered(address, row, known[who], via)
            if not _same(expected[who], came, who, via):
                what = f"{row['asks']} {row['about']}"
                different.append(Difference(what, who, expected[who], came))
    return Replayed(asked, different)


def _answered(address: str, row: dict[str, Any], one: Credential, via: str) -> str:
    kind, name = row["asks"], one.name.replace(" ", "-").strip("()")
    fields: dict[str, Any] = {"flags": ["supports_topic_watchers"]}
    if via and kind not in ANSWERED_BY_PROXY:
        fields["proxy_to_broker_url"] = via
    asked = [connect(one, **fields), question(kind, row["about"].replace("{who}", name))]
    return " then ".join(answers(address, asked, last_only=True)).replace(name, "{who}")


def _same(expected: str, came: str, who: str, via: str) -> bool:
    if via and who in NO_CLIENTS:
        return INVALID_ROLES in came  # Or "Connection already closed": depends on timing.
    return expected == came


# -- REST -----------------------------------------------------------------------------------------


def replay_rest(web: str, chosen: Chosen = everything, *, behind: str = "") -> Replayed:
    """Repeat calls, each with several credentials.

    A selection omits changing calls, so that each finds the world intact.

    Args:
        web: ``host:port`` of a broker.
        chosen: Selected calls.
        behind: ``host:port`` of a proxy to call instead of the broker.
    """
    known = {one.name: one for one in (*few_wrong_credentials(), *right_credentials())}
    different, asked, whole = [], 0, chosen is everything
    paths = PathTable(endpoints(cast("AdminContext", Mock())))
    for number, row in enumerate(recorded("rest")):
        expected = {who: _expected(row, one, who) for one in row["outcomes"] for who in one["who"]}
        built = _is_built(paths, row)
        changes = row["method"] not in ("GET", "OPTIONS")
        order = sorted(expected, key=lambda who: ("admin" in who) + 2 * ("super" in who))
        for place, who in enumerate(order):
            harmless = not changes or expected[who] != "allowed"
            if not (chosen(number, place) and (whole or harmless)):
                continue
            if behind and (known[who].original or row["path"].startswith(NOT_FORWARDED)):
                continue
            asked += 1
            came = _outcome(web, row, known[who], behind)
            if _differs(row, expected[who], came, built=built):
                what = f"{row['method']} {row['path']}"
                different.append(Difference(what, who, expected[who], came))
        if whole and changes:
            build(web)
    return Replayed(asked, different)


def unlisted(found: Replayed) -> list[Difference]:
    listed = {f"{method} {path}" for method, path in REST_DEVIATIONS}
    return [
        one
        for one in found.differences
        if one.asked not in listed
        and not (one.asked.endswith("proxy-expiry") and one.who in AT_THE_PROXY)
    ]


def _expected(row: dict[str, Any], outcome: dict[str, Any], who: str) -> str:
    if who in ("(none)", "(wrong key)", "(expired)") and outcome["status"] == 401:
        return _UNAUTHENTICATED
    if judged_first(row) or not is_refused(outcome["status"], outcome["reason"]):
        return "allowed"
    return f"{outcome['status']} {outcome['reason'].strip()}"


def judged_first(row: dict[str, Any]) -> bool:
    """Return whether a body or a broker setting was judged before authorization."""
    nobody = next(one for one in row["outcomes"] if "nobody" in one["who"])
    return nobody["status"] in (400, 405, 412, 415, 500, 0)


def is_refused(status: int, reason: str) -> bool:
    return status in (401, 403) or reason == "Tenant does not exist"


def _is_built(paths: PathTable, row: dict[str, Any]) -> bool:
    """Return whether a call is implemented: otherwise its refusal has another sentence."""
    for resource in paths.find(row["path"]):
        for endpoint in resource.methods.get(row["method"], ()):
            return not isinstance(endpoint.handler.__self__, NotImplementedAdmin)  # type: ignore[attr-defined]
    return True


def _outcome(web: str, row: dict[str, Any], one: Credential, behind: str) -> str:
    headers = dict(one.headers)
    sends = row["method"] in ("PUT", "POST")
    if sends:
        headers["Content-Type"] = row.get("type", "application/json")
    call = Rest(row["method"], row["path"], row.get("body") if sends else None, 0)
    answer = ask(behind or web, call, headers)
    # Through a proxy every client is named as the proxy's principal.
    asker = Credential(one.name, None, one.name.partition(" for ")[0]) if behind else one
    reason = sentence(answer.body, asker) if answer.status >= 400 else ""
    if not is_refused(answer.status, reason):
        return "allowed"
    return f"{answer.status} {reason.replace(web, RECORDED_ID).strip()}"


def _differs(row: dict[str, Any], expected: str, came: str, *, built: bool) -> bool:
    if expected == came or (expected == "allowed" and judged_first(row)):
        return False
    return built or (expected == "allowed") != (came == "allowed")
