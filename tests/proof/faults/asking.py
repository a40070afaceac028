"""REST of a server with enabled faults."""

import json
import urllib.request
from typing import Any

from loadgen.places.server_process import ServerProcess

ON = {"floodgateFaultsEnabled": "true"}
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def rest(
    server: ServerProcess, method: str, document: object = None, path: str = "floodgate/faults"
) -> Any:
    """Send a request below ``/admin/v2``, and return the answer."""
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(
        f"{server.web_url}/admin/v2/{path}",
        body,
        {"Content-Type": "application/json"},
        method=method,
    )
    with _OPENER.open(request, timeout=10) as response:
        return json.loads(response.read() or b"null")
