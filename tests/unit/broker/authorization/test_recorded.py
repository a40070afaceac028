"""Permissions of each role over the binary port, as recorded of a real broker."""

import json
from pathlib import Path

import pytest

from broker.authorization.operations import NamespaceOperation, TopicOperation
from broker.authorization.service import AuthorizationService
from broker.authorization.tenant_admins import TenantMissingError
from proto.names import NamespaceName, TopicName
from tests.support.security.granted import granted_world, session_named

DATA = Path(__file__).parents[4] / "tests" / "data" / "security"
OPERATIONS = {
    "LOOKUP": TopicOperation.LOOKUP,
    "PARTITIONED_METADATA": TopicOperation.LOOKUP,
    "PRODUCER": TopicOperation.PRODUCE,
    "SUBSCRIBE": TopicOperation.SUBSCRIBE,
}
UNCHECKED = ("GET_SCHEMA", "GET_OR_CREATE_SCHEMA")
"""A real broker authorizes no schema command on the binary path."""
INVALID_ROLES = "Invalid roles."
REFUSED = ("AuthorizationError", "Tenant or namespace or topic does not exist")
"""Refusals; the second is for a tenant that does not exist."""


def recorded() -> list[tuple[str, str, str, bool]]:
    """Return every recorded question with role and outcome."""
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        (row["asks"], row["about"], who, not any(one in outcome["answer"] for one in REFUSED))
        for row in map(json.loads, lines)
        for outcome in row["outcomes"]
        for who in outcome["who"]
        if INVALID_ROLES not in outcome["answer"]
    ]


async def allows(service: AuthorizationService, asks: str, about: str, who: str) -> bool:
    kind, _, subscription = asks.partition(" ")
    session = session_named(who)
    try:
        if kind in OPERATIONS:
            topic = TopicName.parse(about.replace("{who}", "x"))
            return await service.allows(session, topic, OPERATIONS[kind], subscription)
        namespace = NamespaceName.parse(about)
        return await service.allows(session, namespace, NamespaceOperation.GET_TOPICS)
    except TenantMissingError:
        return False


async def test_each_role_is_allowed_or_refused_as_recorded_of_a_real_broker() -> None:
    service = await granted_world()
    questions = [one for one in recorded() if one[0] not in UNCHECKED]
    different = [
        (asks, about, who)
        for asks, about, who, allowed in questions
        if await allows(service, asks, about, who) is not allowed
    ]
    assert len(questions) > 500
    assert not different


@pytest.mark.parametrize("kind", UNCHECKED)
def test_schema_commands_were_recorded_as_allowed_for_every_role(kind: str) -> None:
    found = [allowed for asks, _, _, allowed in recorded() if asks == kind]
    assert found
    assert all(found)
