"""The schedule of the C++ client, and so of the Python and Node.js clients built on it."""

from __future__ import annotations

from typing import ClassVar

from client.discovery.periodic import PeriodicSchedule
from client.discovery.schedule import Removal


class CppSchedule(PeriodicSchedule):
    """Lists the whole namespace, without pattern or hash, a period behind each answer."""

    family: ClassVar[str] = "cpp"
    removal: ClassVar[Removal] = Removal.UNSUBSCRIBE
