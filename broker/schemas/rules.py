"""The rules about schemas that differ by profile."""

from __future__ import annotations

from typing import NamedTuple


class SchemaRules(NamedTuple):
    """The rules of a profile.

    Attributes:
        refuses_by_name: A truncated KEY_VALUE schema is refused with a reason, like unreadable
            versions and names; otherwise a producer gets no answer, a consumer gets no reason, and
            the connection closes.
        checks_first_consumer: The schema of a topic's first consumer must be readable; otherwise an
            unreadable schema is ignored.
        shows_deletion: GET_SCHEMA answers a deletion with a schema without type; otherwise with no
            schema.
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
