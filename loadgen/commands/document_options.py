"""The scenario that ``loadgen run`` is asked for: a document, with what options change of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from loadgen.cluster import ClusterPlan
from loadgen.commands.scenario_options import (
    given_fields,
    option_sentence,
    require_own,
    scenario_of,
)
from loadgen.documents.document import Document, Head
from loadgen.documents.faults import meant
from loadgen.documents.groups import changed_groups
from loadgen.documents.kinds import MODELS
from loadgen.documents.reading import read_document
from loadgen.errors import UsageError
from loadgen.scenarios.registry import SCENARIOS
from loadgen.topics.manifest import expected_namespaces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadgen.scenario import Scenario

EXAMPLES = """\
  loadgen run restart-storm --executor process

  loadgen run restart-storm --clients 500 --family go --executor process

  loadgen run mine.yaml --service-url pulsar://127.0.0.1:6650 \\
    --corpus out/topics"""
_OF_GROUPS = ("clients", "family", "pattern", "read_rate_bytes_per_second", "receive_buffer_bytes")


def wanted_document(target: str | None, family: str | None, given: Mapping[str, Any]) -> Document:
    """Return the document that a command line names, with all that its options change.

    Without one, an address makes a scenario of options alone.

    Raises:
        UsageError: Nothing is named, or an option does not fit.
    """
    name = given["scenario"]
    if target is not None and name is not None:
        raise UsageError(
            f"{target[:80]} and --scenario {name[:80]} name two scenarios: give one of them"
        )
    if target is None and given["service_url"] and (name is None or name in SCENARIOS):
        if family is not None:
            raise UsageError("--family is for scenarios with groups, such as restart-storm")
        scenario = scenario_of(given)
        return Document(Head(name=scenario.kind, kind=scenario.kind), scenario, makes_topics=False)
    chosen = target or name
    if chosen is None:
        raise UsageError(
            "no scenario given: name one (`loadgen scenarios` lists them), or a FILE.yaml, or give "
            "--service-url pulsar://host:port of a broker or proxy"
        )
    return changed(read_document(chosen), family, given)


def changed(document: Document, family: str | None, given: Mapping[str, Any]) -> Document:
    """Return a document with the values that options give instead of its own.

    Raises:
        UsageError: An option is out of its range, or belongs to another kind of scenario.
    """
    model = MODELS[document.head.kind]
    changes = {field: value for field, value in given_fields(given).items() if value is not None}
    require_own(changes, model, document.name)
    names = _namespaces(document, given)
    if names:
        changes["namespaces"] = names
    if "groups" in model.model_fields:
        changes |= {"family": family} if family is not None else {}
        groups = document.scenario.model_dump()["groups"]
        changes["groups"] = changed_groups(groups, changes)
        changes = {key: value for key, value in changes.items() if key not in _OF_GROUPS}
    elif family is not None:
        raise UsageError(f"--family is for scenarios with groups; {document.name} has none")
    scenario = _validated(model, {**document.scenario.model_dump(), **changes})
    return replace(
        document.with_scenario(scenario), makes_topics=document.makes_topics and not names
    )


def in_profile(document: Document, profile: str | None, given: Mapping[str, Any]) -> Document:
    """Return a document whose own servers have another profile.

    Raises:
        UsageError: There is no such profile, or a server is named that has its own.
    """
    if profile is None:
        return document
    profiles = get_args(ClusterPlan.model_fields["profile"].annotation)
    if profile not in profiles:
        raise UsageError(f"--profile {profile[:60]!r} does not exist{meant(profile, profiles)}")
    if given["service_url"]:
        raise UsageError(
            "--profile applies to a scenario's own servers, not to those of --service-url: leave "
            "one of the two out"
        )
    return document.with_cluster(document.cluster.model_copy(update={"profile": profile}))


def _namespaces(document: Document, given: Mapping[str, Any]) -> Any:  # noqa: ANN401
    corpus, names = given["corpus"], given["namespaces"] or []
    if names and corpus is None and document.makes_topics and not given["service_url"]:
        raise UsageError(
            f"--namespace {names[0][:80]} needs a server that has it: add its --service-url, or "
            "--corpus for the scenario's own server to import"
        )
    return expected_namespaces(corpus, names) if corpus or names else None


def _validated(model: type[Scenario], values: Mapping[str, Any]) -> Scenario:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UsageError(option_sentence(error)) from None
