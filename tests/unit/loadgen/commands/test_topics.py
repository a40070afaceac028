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
def test_loading_topics_into_an_unreachable_server_fails(corpus: Path, rest: bool) -> None:
    with pytest.raises(LoadgenError, match="cannot be reached"):
        load(corpus, "http://127.0.0.1:1", rest=rest)


@pytest.mark.parametrize("rest", [False, True])
def test_loading_topics_at_the_binary_port_of_a_broker_is_refused(corpus: Path, rest: bool) -> None:
    with pytest.raises(LoadgenError, match="is a broker's binary port"):
        load(corpus, "pulsar://127.0.0.1:6650", rest=rest)


def test_loading_topics_into_a_remote_cluster_requires_confirmation(corpus: Path) -> None:
    with pytest.raises(UsageError, match="--yes-this-is-my-cluster"):
        load(corpus, "http://10.0.0.1:8080")


def test_loading_a_missing_corpus_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        load(tmp_path / "gone")


@pytest.mark.parametrize("skip_invalid", [False, True])
@pytest.mark.parametrize(("rest", "way"), [(False, "load_by_import"), (True, "load_by_rest")])
def test_skip_invalid_is_passed_on_to_the_import_and_to_rest(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, rest: bool, way: str, skip_invalid: bool
) -> None:
    told: list[bool] = []

    async def loading(*_: object, skip_invalid: bool = False, **more: object) -> Loaded:
        told.append(skip_invalid)
        return Loaded(200, 2, 0.5)

    monkeypatch.setattr(f"loadgen.commands.topics.{way}", loading)
    load(corpus, "http://127.0.0.1:1", rest=rest, skip_invalid=skip_invalid, no_verify=True)
    assert told == [skip_invalid]
