"""Recorded dialogues of producers and consumers, replayed.

Dialogues whose frames depend on the time between steps run against a broker in this process, on the
player's clock; other dialogues run against a broker process, concurrently.

Another broker may be the target: see ``golden_targets``. Topics of an earlier replay are deleted
there first; the broker must keep unused topics.
"""

import asyncio
from pathlib import Path

import pytest

from tests.support.dialogues.comparison import Disagreement, disagreement
from tests.support.dialogues.dialogue import load_dialogues
from tests.support.dialogues.side_by_side import disagreements
from tests.support.dialogues.standing import play_standing
from tests.support.golden.exchange import Rest, load_deviations
from tests.support.golden.rest import ask
from tests.support.golden.targets import FOREIGN_BROKER, golden_broker, look_up

pytestmark = pytest.mark.processes

RECORDED = Path(__file__).parents[1] / "golden" / "messages"
DIALOGUES = load_dialogues(RECORDED / "dialogues.jsonl")
STANDING = {one.name: one for one in DIALOGUES if one.keeps_time and not FOREIGN_BROKER}
SIDE_BY_SIDE = [one for one in DIALOGUES if one.name not in STANDING]
DEVIATIONS = load_deviations(RECORDED / "deviations.toml")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Disagreement]:
    """Return the first difference of each dialogue, by name."""
    with golden_broker(tmp_path_factory.mktemp("golden-dialogues")) as broker:
        if not broker.web:
            pytest.skip("FLOODGATE_GOLDEN_WEB names no web port to replay this against.")

        async def forget(topic: str) -> None:
            path = f"/admin/v2/{topic.replace('://', '/')}?force=true"
            await asyncio.to_thread(ask, broker.web, Rest("DELETE", path, None, 204))

        async def play_all() -> list[Disagreement]:
            if FOREIGN_BROKER:
                for dialogue in SIDE_BY_SIDE:
                    await forget(dialogue.topic)
            return await disagreements(SIDE_BY_SIDE, broker.address, forget)

        look_up(broker, "public/default")
        return {one.dialogue: one for one in asyncio.run(play_all())}


@pytest.mark.parametrize("name", [dialogue.name for dialogue in SIDE_BY_SIDE])
def test_every_step_brings_what_was_recorded(name: str, found: dict[str, Disagreement]) -> None:
    assert_as_recorded(name, found.get(name))


@pytest.mark.parametrize("name", STANDING)
async def test_every_step_brings_what_was_recorded_in_its_time(name: str) -> None:
    assert_as_recorded(name, disagreement(STANDING[name], await play_standing(STANDING[name])))


def assert_as_recorded(name: str, disagreement: Disagreement | None) -> None:
    deviation = None if FOREIGN_BROKER else DEVIATIONS.get((name, "broker"))
    if deviation is None:
        assert disagreement is None, f"\n{disagreement}"
    else:
        assert disagreement is not None, "it agrees: take it off the deviations"
        assert deviation.fields == {f"step {disagreement.index}"}, f"\n{disagreement}"


def test_the_whole_recording_is_replayed() -> None:
    assert len({dialogue.name for dialogue in DIALOGUES}) == len(DIALOGUES) == 239


def test_every_deviation_names_a_recorded_dialogue() -> None:
    named = {name for name, _ in DEVIATIONS if name.startswith("dialogues/")}
    assert not named - {dialogue.name for dialogue in DIALOGUES}
