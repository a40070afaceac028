"""A run's namespaces are known, for every source of topics."""

from pathlib import Path

import pytest

from loadgen.documents.model import FurtherTopics, Topics
from loadgen.errors import UsageError
from loadgen.places.launcher import known_namespaces
from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from proto.topic_hash import topics_hash

MADE = Topics(
    namespaces=2, per_namespace=30, further=(FurtherTopics(namespaces=1, per_namespace=7),)
)


def corpus(topics: Topics, folder: Path) -> Path:
    here = in_this_process(lambda done: None)
    return write_corpus(topics.plan(), folder / "made", 1, here).directory


def test_generated_topics_are_known_by_count_before_and_by_hash_after_generation(tmp_path) -> None:
    made = known_namespaces(MADE, corpus(MADE, tmp_path))
    assert [each.topics for each in made] == [30, 30, 7]
    bare = tuple(each.model_copy(update={"hash": None}) for each in made)
    assert known_namespaces(MADE) == bare != made


def test_named_namespaces_keep_the_order_of_the_document(tmp_path: Path) -> None:
    named = MADE.model_copy(update={"names": ("z/large", "a/large", "m/small")})
    for known in (known_namespaces(named), known_namespaces(named, corpus(named, tmp_path))):
        told = [(each.name, each.topics) for each in known]
        assert told == [("z/large", 30), ("a/large", 30), ("m/small", 7)]


def test_existing_namespaces_are_known_by_name_without_counts() -> None:
    known = known_namespaces(Topics(of=("a/b", "public/default")))
    assert [(each.name, each.topics) for each in known] == [("a/b", None), ("public/default", None)]


def test_a_file_of_topic_names_is_counted_by_namespace(tmp_path: Path) -> None:
    names = ["persistent://a/c/x", "persistent://a/b/x", "persistent://a/b/y"]
    (tmp_path / "topics.txt").write_text("\n".join(names))
    known = known_namespaces(Topics(corpus=str(tmp_path / "topics.txt")))
    assert [(each.name, each.topics) for each in known] == [("a/b", 2), ("a/c", 1)]


def test_a_corpus_provides_the_hash_of_its_namespace(tmp_path: Path) -> None:
    made = corpus(Topics(namespaces=1, per_namespace=1), tmp_path)
    (known,) = known_namespaces(Topics(corpus=str(made)))
    assert known.hash is not None
    assert known.hash != topics_hash([])


def test_a_short_mean_name_length_yields_short_names() -> None:
    plan = Topics(namespaces=1, per_namespace=5, mean_name_bytes=40).plan()
    assert plan.shape.short


def test_a_missing_corpus_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.txt cannot be read"):
        known_namespaces(Topics(corpus=str(tmp_path / "none.txt")))
