"""Makes the objects of the description's examples repeatedly: a tenant, topics, subscriptions."""

import json
import re
from collections.abc import Mapping

import requests

NAMESPACE = "public/default"
TOPIC = f"persistent://{NAMESPACE}/orders"
KNOWN: Mapping[str, tuple[object, ...]] = {
    "topic": ("orders", "invoices"),
    "version": (0, 1),
    "number": (1, 2),
    "id": ("fault-2",),
    "rest": ("one",),
    "name": ("one",),
    "group": ("one",),
    "resourcegroup": ("one",),
    "broker": ("one",),
}
"""Values of parameters, by name: ``orders`` has no partitions, ``invoices`` has three."""
_SCHEMA = {"type": "STRING", "schema": "", "properties": {}}
_MADE = (
    ("PUT", "tenants/public", {"allowedClusters": ["standalone"], "adminRoles": []}),
    ("PUT", f"namespaces/{NAMESPACE}", {"bundles": {"numBundles": 4}}),
    *(
        one
        for domain in ("persistent", "non-persistent")
        for one in (
            ("PUT", f"{domain}/{NAMESPACE}/orders", None),
            ("PUT", f"{domain}/{NAMESPACE}/invoices/partitions", 3),
        )
    ),
    ("PUT", f"persistent/{NAMESPACE}/orders/subscription/billing", "earliest"),
    ("PUT", f"persistent/{NAMESPACE}/invoices/subscription/billing", "earliest"),
    ("POST", f"schemas/{NAMESPACE}/orders/schema", _SCHEMA),
)
_THERE = (204, 409, 200)
_TAKES_AWAY = re.compile(
    r"DELETE .*(/\{(tenant|namespace|topic|subName|bundle|id)\}|/partitions|/schema)$"
    r"|POST .*/(reset|unload|truncate)$|DELETE .*/faults$"
)


def takes_away(label: str) -> bool:
    """Return whether an operation can delete objects of the examples."""
    return bool(_TAKES_AWAY.match(label))


def make_examples(session: requests.Session, url: str, *, anew: bool = False) -> list[str]:
    """Make missing objects; return the refusals.

    Args:
        session: Of the server.
        url: Of the server.
        anew: Empty the server first.
    """
    if anew:
        session.post(f"{url}/admin/v2/floodgate/reset").raise_for_status()
    refused = []
    for method, path, body in _MADE:
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if data else {}
        answer = session.request(method, f"{url}/admin/v2/{path}", data=data, headers=headers)
        if answer.status_code not in _THERE:
            refused.append(f"{method} {path}: {answer.status_code} {answer.text[:100]}")
    return refused
