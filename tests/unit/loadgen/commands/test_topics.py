"""``loadgen load`` refuses impossible loads, and passes on the request."""

from pathlib import Path

import pytest

from loadgen.commands.topics import load
from loadgen.errors import LoadgenError, UsageError
from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.loading import Loaded
from loadgen.topics.plan import TopicPlan

PLAN = TopicPlan(200, 2, seed=7)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(PLAN, tmp_path / "x", 2, in_this_process(lambda done: None)).directory


@pytest.mark.parametrize("rest", [False, True])
def test_a_server_that_is_not_there_is_one_sentence(corpus: Path, rest: bool) -> None:
    with pytest.raises(LoadgenError, match="cannot be reached"):
        load(corpus, "http://127.0.0.1:1", rest=rest)


@pytest.mark.parametrize("rest", [False, True])
def test_an_address_that_is_none_is_one_sentence(corpus: Path, rest: bool) -> None:
    with pytest.raises(LoadgenError, match="is a broker's binary port"):
        load(corpus, "pulsar://127.0.0.1:6650", rest=rest)


def test_another_cluster_needs_the_confirmation(corpus: Path) -> None:
    with pytest.raises(UsageError, match="--yes-this-is-my-cluster"):
        load(corpus, "http://10.0.0.1:8080")


def test_what_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        load(tmp_path / "gone")


@pytest.mark.parametrize("skip_invalid", [False, True])
@pytest.mark.parametrize(("rest", "way"), [(False, "load_by_import"), (True, "load_by_rest")])
def test_that_invalid_topics_may_be_left_out_is_passed_on(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, rest: bool, way: str, skip_invalid: bool
) -> None:
    told: list[bool] = []

    async def loading(*_: object, skip_invalid: bool = False, **more: object) -> Loaded:
        told.append(skip_invalid)
        return Loaded(200, 2, 0.5)

    monkeypatch.setattr(f"loadgen.commands.topics.{way}", loading)
    load(corpus, "http://127.0.0.1:1", rest=rest, skip_invalid=skip_invalid, no_verify=True)
    assert told == [skip_invalid]
