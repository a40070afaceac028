"""The topics of a run's namespaces: made up, of a folder or a list, or what a server has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.plan.clients import Namespace
from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.manifest import expected_namespaces, manifest_path, namespace_entry
from loadgen.topics.plan import TopicPlan, plan_namespaces
from loadgen.topics.reading import read_own_topics
from loadgen.topics.rows import namespace_rows

if TYPE_CHECKING:
    from loadgen.documents.model import Topics

_ROWS_PER_FILE = 200_000


def made_corpus(plan: TopicPlan, directory: Path) -> Path:
    """Make topics as Parquet files that a broker imports."""
    files = max(1, plan.topics // _ROWS_PER_FILE)
    return write_corpus(plan, directory, files, in_this_process(lambda done: None)).directory


def known_namespaces(topics: Topics, corpus: Path | None = None) -> tuple[Namespace, ...]:
    """Return the namespaces of a run, with what is known of their listings.

    Args:
        topics: Those of the document.
        corpus: Where topics that were made up for servers of the run's own are.

    Raises:
        UsageError: A folder or list of topics cannot be used.
    """
    if corpus is None and topics.corpus is not None:
        corpus = Path(topics.corpus)
    if corpus is None:
        return topics.expected()
    if manifest_path(corpus).is_file():
        return expected_namespaces(corpus)
    sizes = read_own_topics(corpus).namespaces
    return tuple(Namespace(name=name, topics=sizes[name].topics) for name in sorted(sizes))


def hashed_namespaces(plan: TopicPlan) -> tuple[Namespace, ...]:
    """Return namespaces with what right listings hold; names are made, hashed and forgotten."""
    entries = (
        (each.name, namespace_entry(namespace_rows(plan, each).column("topic")).asked)
        for each in plan_namespaces(plan)
    )
    return tuple(Namespace(name=name, topics=each.topics, hash=each.hash) for name, each in entries)
