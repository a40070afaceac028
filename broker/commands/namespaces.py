"""The namespace of a listing or a watch; each profile has a parser."""

from __future__ import annotations

import proto.PulsarApi_pb2 as pb
from broker.errors import TOO_MANY_LOOKUPS
from proto.commands import error_command
from proto.errors import RemoteProtocolError
from proto.names import InvalidNameError, NamespaceName
from server.connection.request_errors import ErrorForm, RequestError

NAMESPACE_ERRORS = ErrorForm(error_command, TOO_MANY_LOOKUPS)
"""Error forms of requests with a namespace."""


def named_or_refused(name: str) -> NamespaceName:
    """Return a request's namespace.

    Raises:
        RequestError: The name is malformed.
    """
    try:
        return NamespaceName.parse(name)
    except InvalidNameError as error:
        text = f"{error}; expected tenant/namespace"
        raise RequestError(pb.InvalidTopicName, text) from None


def named_or_closed(name: str) -> NamespaceName:
    """Return a request's namespace, ignoring trailing slashes as a real broker does.

    Raises:
        RemoteProtocolError: The name is malformed; the connection closes.
    """
    try:
        return NamespaceName.parse_with_slashes(name)
    except InvalidNameError as error:
        raise RemoteProtocolError(str(error)) from None
