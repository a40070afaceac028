"""The schedule of the C++ client, and of its derived Python and Node.js clients."""

from __future__ import annotations

from typing import ClassVar

from client.discovery.periodic import PeriodicSchedule
from client.discovery.schedule import Removal


class CppSchedule(PeriodicSchedule):
    """A schedule listing the whole namespace, a period after each answer, without a hash."""

    family: ClassVar[str] = "cpp"
    removal: ClassVar[Removal] = Removal.UNSUBSCRIBE
