"""A scenario document, resolved: all that it extends laid under it, every value with its type."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from loadgen.cluster import ClusterPlan
from loadgen.documents.kinds import MODELS, load_fields
from loadgen.errors import UsageError
from loadgen.scenario import NamespaceExpectation, Scenario
from loadgen.topics.distributions import FIXED
from loadgen.topics.plan import WORDS_NAME_BYTES, TopicPlan, TopicShape, plan_namespaces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.cluster import TopicsPlan

MOST_REPEATS = 1_000
_NO_SERVER = "pulsar://0.0.0.0:0"
"""The address of a scenario whose servers are not there yet."""
_WIDTH = 100


class Head(BaseModel):
    """The part of a document that all kinds have alike; ``load`` is the kind's own.

    Attributes:
        name: What runs, reports and other documents call it; without one: the file's.
        extends: A shipped scenario, or a file relative to this one, that this is laid over.
        repeats: How often it is run to be compared.
        thresholds: What is expected of the figures, an expression each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    description: Annotated[str, Field(max_length=4000)] = ""
    extends: str | None = None
    kind: str
    repeats: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 1
    cluster: ClusterPlan = ClusterPlan()
    load: dict[str, Any] = Field(default_factory=dict)
    thresholds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A resolved document.

    Attributes:
        head: Its general part.
        scenario: What its load makes; its servers and the hashes of its namespaces are not known.
        makes_topics: True if the namespaces are those of the cluster's topics; else the load
            names them.
        written: Its text as its author wrote it; empty if there is none.
    """

    head: Head
    scenario: Scenario
    makes_topics: bool
    written: str = ""

    @property
    def name(self) -> str:
        """The name that runs and reports give it."""
        return self.head.name

    @property
    def title(self) -> str:
        """The first sentence of its description, on one line."""
        text = " ".join(self.head.description.split())
        end = text.find(". ")
        return text if end < 0 else text[: end + 1]

    @property
    def cluster(self) -> ClusterPlan:
        """The servers and topics that loadgen makes for it where nobody names others."""
        return self.head.cluster

    def resolved(self) -> dict[str, Any]:
        """Return the document that says everything itself; it resolves to itself."""
        return {
            "name": self.name,
            "description": self.head.description,
            "kind": self.head.kind,
            "repeats": self.head.repeats,
            "cluster": self.cluster.model_dump(mode="json"),
            "load": self.load(),
            "thresholds": list(self.head.thresholds),
        }

    def resolved_text(self) -> str:
        """Return the resolved document as YAML."""
        return yaml.safe_dump(
            self.resolved(), sort_keys=False, allow_unicode=True, width=_WIDTH, indent=2
        )

    def load(self) -> dict[str, Any]:
        """Return what the scenario's clients do, every field with its value."""
        values = self.scenario.model_dump(mode="json")
        made = ("namespaces",) if self.makes_topics else ()
        return {field: values[field] for field in load_fields(self.head.kind) if field not in made}

    def with_scenario(self, scenario: Scenario) -> Document:
        """Return the document with another load, as options of the command line change it."""
        return replace(self, scenario=scenario)

    def with_cluster(self, cluster: ClusterPlan) -> Document:
        """Return the document with another cluster."""
        return replace(self, head=self.head.model_copy(update={"cluster": cluster}))


def scenario_of_load(
    kind: str, load: Mapping[str, Any], cluster: ClusterPlan
) -> tuple[Scenario, bool]:
    """Return the scenario of a load, and whether its namespaces are those of the cluster's topics.

    Raises:
        ValidationError: A value does not fit.
    """
    model = MODELS[kind]
    values = dict(load)
    required = model.model_fields["namespaces"].is_required()
    makes_topics = "namespaces" not in values and required
    if makes_topics:
        values["namespaces"] = namespaces_of(cluster.topics)
    else:
        names = values.get("namespaces", ())
        if isinstance(names, list | tuple):
            values["namespaces"] = [_expectation(each) for each in names]
        if not names:
            values.pop("namespaces", None)
    if model.model_fields["service_url"].is_required():
        values["service_url"] = _NO_SERVER
    return model.model_validate(values), makes_topics


def _expectation(named: Any) -> Any:  # noqa: ANN401
    return {"name": named} if isinstance(named, str) else named


def namespaces_of(topics: TopicsPlan) -> tuple[NamespaceExpectation, ...]:
    """Return the namespaces of a cluster's topics, as a run asks for them."""
    return tuple(
        NamespaceExpectation(name=each.name, topics=each.topics)
        for each in plan_namespaces(topic_plan(topics))
    )


def topic_plan(topics: TopicsPlan) -> TopicPlan:
    """Return the plan by which a cluster's topics are made.

    Raises:
        UsageError: There are too many in a namespace.
    """
    try:
        sizes = topics.sizes
        length = topics.mean_name_bytes
        shape = TopicShape(max(length, WORDS_NAME_BYTES))
        if length < WORDS_NAME_BYTES:
            shape = TopicShape(length, plain_share=1.0, name_lengths=FIXED)
        # Equal namespaces are dealt by number: that keeps the plan small.
        return TopicPlan(
            sum(sizes), len(sizes), topics.seed, shape, sizes if topics.further else ()
        )
    except ValueError as error:
        raise UsageError(f"cluster.topics: {error}") from None
