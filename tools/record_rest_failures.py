"""Record which requests a real broker answers with 500: ``record_rest_failures.py WEB_PORT``.

Start a local broker first. Prints JSON lines, stored in tests/data/rest_failures.jsonl, about the
requests that profile pulsar answers with 500; random calls found them. One case is left out: a
request to set properties with null values on a topic in use is never answered, and after it no
request is.
"""

from __future__ import annotations

import http.client
import json
import sys

_N, _P = "non-persistent/public/default/orders", "persistent/public/default/orders"
_ID = '{"ledgerId":1,"entryId":1}'
_SCHEMA = '{"type":"none such","schema":"","properties":{}}'
_LARGE = "1" + "0" * 30


def _tenant(roles: str) -> str:
    return f'{{"allowedClusters":["standalone"],"adminRoles":{roles}}}'


MADE = (
    ("PUT", _N, ""),
    ("PUT", _P, ""),
    ("PUT", "non-persistent/public/default/invoices/partitions", "3"),
    ("PUT", "persistent/public/default/invoices/partitions", "3"),
    ("PUT", f"{_P}/subscription/billing", '"earliest"'),
)
"""Subjects of the requests."""
REQUESTS = (
    ("GET", f"{_N}/compaction", ""),
    ("GET", f"{_N}/examinemessage", ""),
    ("GET", f"{_N}/internal-info", ""),
    ("GET", f"{_N}/lastMessageId", ""),
    ("GET", f"{_N}/ledger/0/entry/0", ""),
    ("GET", f"{_N}/messageid/0", ""),
    ("GET", f"{_N}/offload", ""),
    ("GET", f"{_N}/subscription/billing/position/1", ""),
    ("POST", f"{_N}/subscription/billing/analyzeBacklog", _ID),
    ("POST", f"{_N}/subscription/billing/expireMessages", _ID),
    ("POST", f"{_N}/subscription/billing/resetcursor", _ID),
    ("POST", f"{_N}/subscription/billing/skip/1", ""),
    ("POST", f"{_N}/subscription/billing/skip_all", ""),
    ("POST", f"{_N}/trim", ""),
    ("PUT", f"{_N}/backlogSize", _ID),
    ("PUT", f"{_N}/compaction", ""),
    ("PUT", f"{_N}/offload", _ID),
    ("POST", f"{_N}/terminate", ""),
    ("PUT", "tenants/odd", _tenant('[""]')),
    ("POST", "tenants/public", _tenant('[""]')),
    ("PUT", "tenants/odd-0", _tenant('["a",""]')),
    ("POST", "tenants/public", _tenant('["a",""]')),
    ("PUT", "tenants/odd-2", _tenant('[" "]')),
    ("POST", "tenants/public", _tenant('[" "]')),
    ("PUT", "tenants/odd-4", _tenant('[" a"]')),
    ("POST", "tenants/public", _tenant('[" a"]')),
    ("PUT", "tenants/odd-6", _tenant("[null]")),
    ("POST", "tenants/public", _tenant("[null]")),
    ("POST", "namespaces/public/default/subscriptionTypesEnabled", '["x"]'),
    ("POST", f"{_N}/subscriptionTypesEnabled", '["x"]'),
    ("POST", f"{_P}/subscriptionTypesEnabled", '["x"]'),
    ("POST", "namespaces/public/default/backlogQuota", "\n"),
    ("POST", "namespaces/public/default/clearBacklog/none", ""),
    ("PUT", "namespaces/public/default/properties", '{"k":null}'),
    ("PUT", "persistent/public/default/odd", '{"a":null}'),
    ("PUT", "non-persistent/public/default/odd", '{"a":null}'),
    ("PUT", f"{_P}/subscription/billing/properties", '{"a":null}'),
    ("PUT", f"{_P}/subscription/odd", '{"ledgerId":1,"entryId":1,"properties":{"a":null}}'),
    ("DELETE", f"{_P}/properties", ""),
    ("PUT", f"{_N}/properties", '{"a":null}'),
    ("PUT", f"{_P}/backlogSize", "7"),
    ("PUT", f"{_P}/offload", "7"),
    ("PUT", "persistent/public/default/new/partitions", _LARGE),
    ("PUT", "non-persistent/public/default/new/partitions", _LARGE),
    ("POST", "persistent/public/default/invoices/partitions", _LARGE),
    ("POST", "non-persistent/public/default/invoices/partitions", _LARGE),
    ("GET", "schemas/public/default/orders/schema/1.5", ""),
    ("POST", "schemas/public/default/orders/schema", _SCHEMA),
    ("POST", "schemas/public/default/orders/compatibility", _SCHEMA),
    ("POST", "schemas/public/default/orders/version", _SCHEMA),
)


def main() -> None:
    """Print a JSON line with the broker's status for each request."""
    port = int(sys.argv[1])
    for method, path, body in MADE:
        print("made:", _asked(port, method, path, body), path, file=sys.stderr)
    for method, path, body in REQUESTS:
        status = _asked(port, method, path, body)
        print(json.dumps({"method": method, "path": path, "body": body, "status": status}))


def _asked(port: int, method: str, path: str, body: str) -> int | None:
    """Send a request, and return the status of the broker's answer; None if it does not answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Content-Type": "application/json"} if body else {}
    connection.request(method, f"/admin/v2/{path}", body or None, headers)
    try:
        return connection.getresponse().status
    except TimeoutError:
        return None


if __name__ == "__main__":
    main()
