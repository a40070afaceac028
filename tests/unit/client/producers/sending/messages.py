"""Messages handed to a producer by a program."""

import asyncio
from typing import Any

from client.producers.sending.pending_message import PendingMessage


def pending(payload: bytes = b"x", *, waits: bool = True, **parts: Any) -> PendingMessage:
    """Return an untaken message with the given parts."""
    result = asyncio.get_running_loop().create_future()
    message = PendingMessage(payload, 0, result=result, waits=waits)
    for name, value in parts.items():
        setattr(message, name, value)
    return message
