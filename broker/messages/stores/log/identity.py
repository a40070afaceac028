"""The identity of a log: a name that stays with its directory, whoever opens it.

Brokers that share topics note by it who has the messages of a bundle.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.messages.stores.log.files import LogFiles

IDENTITY_NAME = "identity"
_BYTES = 32


def identity_of(files: LogFiles) -> str:
    """Return the identity of a locked directory; the first time it is made, and on disk.

    Raises:
        OSError: It cannot be read or made.
    """
    if IDENTITY_NAME in files.names():
        found = _read(files)
        if len(found) == _BYTES:
            return found
        # It was being made when the machine stopped: nobody has been told of it.
        files.unlink(IDENTITY_NAME)
    made = uuid.uuid4().hex
    file = files.create(IDENTITY_NAME)
    try:
        file.append(made.encode())
        file.sync()
    finally:
        file.close()
    files.sync()
    return made


def _read(files: LogFiles) -> str:
    file = files.open(IDENTITY_NAME)
    try:
        return file.pread(_BYTES, 0).decode("ascii", "replace")
    finally:
        file.close()
