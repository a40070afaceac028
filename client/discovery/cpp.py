"""The schedule of the C++ client, and of its derived Python and Node.js clients."""

from __future__ import annotations

from typing import ClassVar

from client.discovery.periodic import PeriodicSchedule
from client.discovery.schedule import Removal


class CppSchedule(PeriodicSchedule):
    """Lists the whole namespace, without pattern or hash, a period after each answer."""

    family: ClassVar[str] = "cpp"
    removal: ClassVar[Removal] = Removal.UNSUBSCRIBE
