"""docs/scenarios.md names every scenario, behaviour, arrival, shock and key."""

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from loadgen.behaviours.registry import AnyGroup
from loadgen.documents.model import Document, Servers, Shock, Topics
from loadgen.documents.reading import parse_document, read_document, shipped
from loadgen.plan.arrivals import Arrivals
from loadgen.plan.clients import Phases
from loadgen.plan.group import Group

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "scenarios.md").read_text(encoding="utf-8")
BEHAVIOURS = get_args(get_args(AnyGroup)[0])


def table(heading: str) -> str:
    """Return the rows of the table whose first column has a given heading."""
    (found,) = re.findall(rf"^\| {heading} \|.*\n\|---.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return str(found)


def documented(heading: str) -> set[str]:
    """Return all code words in the rows of a table."""
    return set(re.findall(r"`([\w-]+)", table(heading)))


def fields(part: type) -> set[str]:
    """Return a document's keys for a part: the user's keys, by their documented names."""
    known = part.model_fields.items()  # type: ignore[attr-defined]
    return {field.alias or name for name, field in known if name not in ("publishers",)}


def test_the_page_lists_every_shipped_scenario() -> None:
    documents = [read_document(name) for name in shipped()]
    rows = [
        f"| `{each.name}` | {', '.join(dict.fromkeys(group.do for group in each.clients))} | "
        f"{each.title} |"
        for each in documents
    ]
    assert re.findall(r"^\| `[\w-]+` \| [\w, -]+ \| .*\. \|$", PAGE, re.MULTILINE) == rows
    assert max(len(each.title) for each in documents) < 78  # a line of a list


def test_the_commented_example_of_the_page_is_a_valid_scenario() -> None:
    (example,) = re.findall(r"<!-- a test reads this one -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    document = parse_document(example)
    assert document.name == "monday-restart"
    names = [group.name for group in document.clients]
    assert names == ["polite", "java-watch", "java-poll", "cpp", "go", "slow"]
    drop = document.clients[-1].drop
    assert drop is not None
    assert drop.share == 0.5


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda each: each.__name__)
def test_each_behaviour_has_a_row_with_all_keys_of_its_own(behaviour: type[Group]) -> None:
    do = behaviour.model_fields["do"].default
    (row,) = re.findall(rf"^\| `{do}` \| (.*) \|$", table("`do`"), re.MULTILINE)
    own = fields(behaviour) - set(Group.model_fields) - {"do"}
    if do == "consume":
        own -= {"size"}  # The publishers'.
    assert own <= set(re.findall(r"`([\w-]+)`", row))


def test_each_key_of_groups_topics_and_phases_has_a_row() -> None:
    assert fields(Group) - {"name", "count"} == documented("key of any group") & fields(Group)
    assert fields(Topics) <= documented("key of `topics`")
    assert fields(Phases) <= documented("key of `phases`")


def test_the_page_lists_exactly_the_valid_kinds_of_arrivals() -> None:
    shown = [yaml.safe_load(each) for each in re.findall(r"`(\{kind: .*?\})`", table("`arrive`"))]
    for each in shown:
        if each["kind"] != "trace":  # Read from a file.
            parse_document(f"clients: [{{name: a, do: list, count: 9, arrive: {each}}}]")
    kinds = get_args(get_args(Arrivals)[0])
    assert {each["kind"] for each in shown} == {
        get_args(kind.model_fields["kind"].annotation)[0] for kind in kinds
    }


def test_the_page_lists_exactly_the_valid_kinds_of_shocks() -> None:
    shown = re.findall(r"^\| `(\w+): (.*?)` \|", table("shock"), re.MULTILINE)
    for kind, value in shown:
        said = value.replace("GROUP", "a").replace("KEY: VALUE", "httpMaxRequestSize: 10")
        parse_document(
            "clients: [{name: a, do: list, count: 1}]\nservers: {proxy: {}}\n"
            f"shocks: [{{at: 1s, {kind}: {said}}}]"
        )
    assert {kind for kind, _ in shown} == fields(Shock) - {"at", "for"}


def test_the_example_of_the_page_has_every_key_of_a_document() -> None:
    (example,) = re.findall(r"<!-- a test reads this one -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    said = yaml.safe_load(example)
    assert fields(Document) <= set(said)
    assert fields(Servers) <= set(said["servers"])
