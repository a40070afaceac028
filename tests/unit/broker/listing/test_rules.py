"""Profile-dependent rules of listings."""

import pytest

from broker.listing.rules import AnswerRules, PulsarRefusals, Refusals
from proto.frames import FRAME_PADDING_BYTES, LENGTH_FIELD_BYTES
from server.configuration.common import Profile


@pytest.mark.parametrize(
    ("profile", "max_frame_bytes", "keeps_heap", "refusals"),
    [
        (Profile.FLOODGATE, 1_000 + FRAME_PADDING_BYTES + LENGTH_FIELD_BYTES, False, Refusals),
        (Profile.PULSAR, 0, True, PulsarRefusals),
    ],
)
def test_the_profile_determines_frame_bound_heap_retention_and_refusals(
    profile: Profile, max_frame_bytes: int, keeps_heap: bool, refusals: type[Refusals]
) -> None:
    rules = AnswerRules.of(profile, private_buffers=True, max_message_bytes=1_000)
    assert rules.private_buffers
    assert (rules.max_frame_bytes, rules.keeps_heap) == (max_frame_bytes, keeps_heap)
    assert type(rules.refusals) is refusals
