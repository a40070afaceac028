"""The rules about schemas in which the profiles differ."""

from __future__ import annotations

from typing import NamedTuple


class SchemaRules(NamedTuple):
    """The rules of one profile.

    Attributes:
        refuses_by_name: A KEY_VALUE schema whose data ends too early is refused by name, as are
            versions and names that cannot be read; else a producer never hears of it, a consumer
            hears no reason, and the connection closes.
        checks_first_consumer: The schema of a topic's first consumer has to be readable; else an
            unreadable one is left out.
        shows_deletion: GET_SCHEMA answers a deletion with a schema without type; else with none.
    """

    refuses_by_name: bool
    checks_first_consumer: bool
    shows_deletion: bool


PULSAR_SCHEMAS = SchemaRules(
    refuses_by_name=False, checks_first_consumer=False, shows_deletion=True
)
FLOODGATE_SCHEMAS = SchemaRules(
    refuses_by_name=True, checks_first_consumer=True, shows_deletion=False
)
