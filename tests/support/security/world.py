"""Tenants, namespaces, topics and grants of the recorded requests."""

import json
from collections.abc import Sequence

from tests.support.golden.exchange import Rest
from tests.support.golden.rest import ask
from tests.support.security.credentials import Credential, token

TENANT, NAMESPACE = "acme", "acme/shop"
TOPICS = ("orders", "other", "used")
"""``orders`` has its own grants; recorded REST calls use up ``used``."""
_AT = f"/admin/v2/namespaces/{NAMESPACE}"
GRANTS = {
    "produce": ["produce"],
    "consume": ["consume"],
    "functions": ["functions"],
    "packages": ["packages"],
    "wild-*": ["consume"],
    "*-wild": ["produce"],
    "subscriber": ["consume"],
    "proxy": ["consume"],
}
TOPIC_GRANTS = {"topic-produce": ["produce"], "topic-consume": ["consume"]}


def build(web: str) -> None:
    superuser = Credential("super", token("super")).headers
    for method, path, body in _calls():
        headers = superuser | {"Content-Type": "application/json"}
        answer = ask(web, Rest(method, path, json.dumps(body), 0), headers)
        assert answer.status in (200, 204, 409), f"{method} {path}: {answer}"


def _calls() -> Sequence[tuple[str, str, object]]:
    cluster = {"allowedClusters": ["standalone"]}
    topics = f"/admin/v2/persistent/{NAMESPACE}"
    return [
        ("PUT", f"/admin/v2/tenants/{TENANT}", {"adminRoles": ["admin"]} | cluster),
        ("PUT", "/admin/v2/tenants/rival", {"adminRoles": ["rival-admin"]} | cluster),
        ("PUT", _AT, {"bundles": {"numBundles": 4}}),
        *(("PUT", f"{topics}/{topic}", {}) for topic in TOPICS),
        ("PUT", f"{topics}/parted/partitions", 2),
        *(("POST", f"{_AT}/permissions/{role}", actions) for role, actions in GRANTS.items()),
        ("POST", f"{_AT}/permissions/subscription/owned", ["subscriber"]),
        *(
            ("POST", f"{topics}/{topic}/permissions/{role}", actions)
            for topic in ("orders", "parted")
            for role, actions in TOPIC_GRANTS.items()
        ),
    ]
