"""Reasons of refusals without the parts that differ by request, so that they can be counted.

A thousand refusals for one cause carry a thousand request ids, ports and sizes. Masked, they are
one reason with a count.
"""

from __future__ import annotations

import json
import re

import proto.PulsarApi_pb2 as pb

_LONGEST_REASON = 300
# What the proxy answers with: JSON text with errorMsg, reqId, remote and local, at times behind
# the name of a Java exception. The rest of it names one request only.
_JSON_ERROR_MESSAGE = re.compile(r'"errorMsg"\s*:\s*("(?:[^"\\]|\\.)*")')
# localhost/127.0.0.1:6650, /10.0.0.7:41220, [::1]:6650, broker-7.internal:6650
_ADDRESS = re.compile(
    r"(?:[\w.-]*/)?(?:\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|\[[0-9a-fA-F:.]+\](?::\d+)?)"
    r"|\b[A-Za-z][\w-]*(?:\.[\w-]+)*:\d{2,5}\b"
)
_HEXADECIMAL = re.compile(
    r"\b(?:0x[0-9a-fA-F]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\b"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def refusal_reason(error: int, message: str) -> str:
    """Return ``<ServerError name>: <message>`` with the parts masked that differ by request.

    Of a message that is JSON only ``errorMsg`` is kept.
    """
    known = pb.ServerError.DESCRIPTOR.values_by_number.get(error)
    # Codes that are newer than us keep their number.
    name = f"ServerError {error}" if known is None else known.name
    return f"{name}: {masked(_essence(message))}"[:_LONGEST_REASON]


def masked(text: str) -> str:
    """Replace addresses, identifiers and numbers by placeholders."""
    text = _ADDRESS.sub("<address>", text)
    text = _HEXADECIMAL.sub("<id>", text)
    return _NUMBER.sub("<n>", text)


def _essence(message: str) -> str:
    found = _JSON_ERROR_MESSAGE.search(message)
    if found is None:
        return message.strip()
    try:
        return str(json.loads(found.group(1), strict=False)).strip()
    except json.JSONDecodeError:
        return found.group(1).strip('"')
