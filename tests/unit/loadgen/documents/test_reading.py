"""A document with the documents extended; every fault is reported with the place."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loadgen.documents.faults import DocumentError
from loadgen.documents.reading import parse_document, read_document, shipped
from loadgen.documents.service_times import PULSAR, ServiceTimes
from loadgen.errors import UsageError
from loadgen.places.task import TaskPlan

GROUPS = """\
servers:
  profile: pulsar
  broker: {maxTopicListInFlightHeapMemSizeMB: 5, dispatcherPauseOnAckStatePersistentEnabled: true}
topics: {namespaces: 4, per_namespace: 2000}
clients:
  - {name: go, do: discover, library: go, count: 20, read: {rate: 100kB/s}}
  - {name: cpp, do: list, count: 5, drop: {at: 5s, every: 1m, jitter: 10%}}
phases: {measure: 2m}
"""
SMALL = "clients: [{name: a, do: list, count: 1}]\n"


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def sentences(text: str, *settings: str) -> list[str]:
    with pytest.raises(UsageError) as caught:
        parse_document(text, Path("m.yaml"), settings)
    error = caught.value
    told = list(error.sentences) if isinstance(error, DocumentError) else [str(error)]
    assert not [each for each in told if "\n" in each]
    return told


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_scenario_is_complete_and_resolves_to_itself(name: str) -> None:
    document = read_document(name)
    assert document.name == name
    assert document.written.startswith("# yaml-language-server: $schema=../scenario.schema.json\n")
    assert document.title
    assert len(document.title) < 78  # a line of a list
    assert document.expect
    assert not document.warnings
    assert parse_document(document.resolved_text()).resolved() == document.resolved()
    assert document.resolved() == yaml.safe_load(document.resolved_text())


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_schedule_does_not_depend_on_the_number_of_tasks(name: str) -> None:
    document = read_document(name)
    schedules = [
        sorted(
            (
                plan
                for task in range(tasks)
                for plan in TaskPlan.share(
                    document,
                    document.topics.expected(),
                    task=task,
                    tasks=tasks,
                ).clients()
            ),
            key=lambda plan: plan.number,
        )
        for tasks in (1, 3)
    ]
    assert schedules[0] == schedules[1]
    assert [plan.number for plan in schedules[0]] == list(range(len(schedules[0])))


def test_server_keys_of_a_document_are_read_as_text() -> None:
    assert parse_document(GROUPS).servers.broker == {
        "maxTopicListInFlightHeapMemSizeMB": "5",
        "dispatcherPauseOnAckStatePersistentEnabled": "true",
    }


def test_a_document_overrides_the_extended_document_by_key_and_by_group_name(tmp_path) -> None:
    write(tmp_path, "base.yaml", f"name: base\n{GROUPS}expect: [list.answered == 100%]\n")
    file = write(
        tmp_path,
        "mine.yaml",
        "extends: base.yaml\nexpect: [list.answered == 99%]\ntopics: {namespaces: 8}\n"
        "clients: [{name: cpp, do: watch}, {name: go, library: cpp},"
        " {name: new, do: list, count: 1}]\n",
    )
    document = read_document(file, ["clients.new.count=2", "expect+=list.refused == 0%"])
    assert [(each.name, each.do, each.family, each.count) for each in document.clients] == [
        ("go", "discover", "cpp", 20), ("cpp", "watch", "", 5), ("new", "list", "", 2),
    ]  # fmt: skip
    assert (document.name, document.phases.measure) == ("mine", 120)
    assert (document.topics.namespaces, document.topics.per_namespace) == (8, 2000)
    assert document.expect == ("list.answered == 99%", "list.refused == 0%")


def test_a_shipped_scenario_may_be_extended(tmp_path: Path) -> None:
    file = write(tmp_path, "m.yaml", "extends: storm\nclients: [{name: all, count: 3}]")
    document = read_document(file)
    assert (document.clients[0].do, document.clients[0].count) == ("list", 3)
    assert document.description == read_document("storm").description


def test_a_cycle_of_extending_documents_is_refused_with_their_names(tmp_path: Path) -> None:
    write(tmp_path, "b.yaml", "extends: c.yaml")
    write(tmp_path, "c.yaml", "\nextends: ./a.yaml")
    file = write(tmp_path, "a.yaml", "extends: b.yaml")
    with pytest.raises(
        UsageError,
        match=r"c\.yaml, line 2: circular extends: a\.yaml extends b\.yaml extends c\.yaml",
    ):
        read_document(file)


def test_a_trace_is_read_relative_to_the_document_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    log = write(tmp_path, "base/restarts.log", "# started\n12.5 a\n12 b\n\n14\n")
    arrive = "arrive: {kind: trace, file: restarts.log}"
    write(tmp_path, "base/base.yaml", GROUPS.replace("count: 5", f"count: 5, {arrive}"))
    document = read_document(write(tmp_path, "mine.yaml", "extends: base/base.yaml"))
    set_so = parse_document(SMALL, settings=[f"clients.a.arrive={{kind: trace, file: {log}}}"])
    assert document.clients[1].arrive == set_so.clients[0].arrive
    assert document.resolved()["clients"][1]["arrive"] == {"kind": "trace", "at": [0.0, 0.5, 2.0]}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ["m.yaml is not a scenario: one has clients, as `clients: [{name: a, do: list, "]),
        ("- a", ["m.yaml is not a scenario"]),
        ("clients: [", ["m.yaml, line 1: this is not YAML: expected the node content"]),
        ("a: !!python/name:os.system", ["m.yaml, line 1: this is not YAML: could not determine"]),
        ("seed: 1\nseed: 2", ["m.yaml, line 2: seed is there twice"]),
        ("name: a", ["m.yaml, line 1: clients is missing"]),
        (f"{SMALL}name: prüfung", ["line 2: name 'prüfung': must be of letters a-z or A-Z, di"]),
        (
            "topics: {namespaces: 2}\nclients:\n"
            "- {name: a, do: list, count: 1, namespaces: [1, 1]}\n"
            "- {name: b, do: list, count: 1, namespaces: [0, 9]}",
            [
                "line 3: clients.a.namespaces must be the first and the one behind the last of 2 "
                "namespaces, [0, 2] for all: [1, 1] is empty",
                "line 4: clients.b.namespaces must be the first and the one behind the last of 2 "
                "namespaces, [0, 2] for all: [0, 9] goes beyond them",
            ],
        ),
        ("clients: []", ["m.yaml, line 1: clients must have at least 1"]),
        (f"{SMALL}\nphses: {{}}", ["m.yaml, line 3: phses does not exist; did you mean phases?"]),
        (f"{SMALL}repeats: 0", ["m.yaml, line 2: repeats 0: must be at least 1"]),
        (f"{SMALL}topics: [1]", ["line 2: topics must be a mapping of keys to values"]),
        (f"{SMALL}expect: 5", ["line 2: expect 5: must be a list"]),
        (f"{SMALL}name: a/b", ["line 2: name 'a/b': must be of letters a-z"]),
        (f"{SMALL}topics: {{of: a/b}}", ["line 2: topics.of 'a/b': must be a list"]),
        (f"{SMALL}topics: {{of: [b]}}", ["line 2: topics.of[0] 'b': must be a namespace with its"]),
        (f"{SMALL}topics: {{corpus: x, of: [a/b]}}", ["topics is not possible: corpus and of"]),
        (f"{SMALL}topics: {{namespaces: true}}", ["topics.namespaces true: must be a number or a"]),
        ("extends: strm", ["m.yaml, line 1: extends there is no scenario 'strm'; did you mean st"]),
        (
            "extends: ./no.yaml",
            ["m.yaml, line 1: extends the scenario no.yaml cannot be read: No such"],
        ),
    ],
)
def test_every_error_of_a_document_is_reported_with_its_line(text: str, wanted: list[str]) -> None:
    told = sentences(text)
    assert len(told) == len(wanted)
    for found, sentence in zip(told, wanted, strict=True):
        assert sentence in found


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("library: go", "library: gpp", ["line 6: clients.go.library 'gpp' is none; did you mean"]),
        ("library: go", "library: once", ["library 'once' is none; there are polite, java-watch"]),
        ("library: go, ", "", ["m.yaml, line 6: clients.go.library is missing"]),
        (
            "rate: 100kB/s",
            "rate: 0, buffer: 1151",
            [
                "line 6: clients.go.read.rate 0: must be more than 0: leave it out (or say null)",
                "line 6: clients.go.read.buffer 1151: must be at least 1,152 bytes, the least",
            ],
        ),
        (
            "do: list",
            "do: lits",
            ["m.yaml, line 7: clients.cpp.do 'lits' is none; did you mean li"],
        ),
        ("do: list, ", "", ["line 7: clients.cpp needs a do; there are list, discover, watch"]),
        (
            "do: list",
            "do: list, subscription: x, lifetime: 3, evry: 1",
            [
                "line 7: clients.cpp.subscription is a key of do: consume, not of do: list",
                "clients.cpp.lifetime is a key of do: create-and-delete, not of do: list",
                "clients.cpp.evry does not exist; did you mean every?",
            ],
        ),
        (
            "name: cpp",
            "name: go",
            ["line 5: clients is not possible: two groups have the same nam"],
        ),
        ("name: cpp", "name: C", ["clients.C.name 'C': must be of small letters, digits and -"]),
        ("name: cpp, ", "", ["m.yaml, line 7: clients[1].name is missing"]),
        ("count: 5", "count: 1.5", ["clients.cpp.count 1.5: must be a whole number"]),
        ("count: 5", "count:", ["clients.cpp.count null: must be a whole number"]),
        ("count: 5", "count: yes", ["clients.cpp.count 'yes': must be a whole number"]),
        ("count: 5", f"count: {'9' * 5000}", ["999...: must be a whole number of fewer digits"]),
        ("count: 5", "count: 5, pattern: 1", ["pattern 1: must be a text: write it in quotes"]),
        ("count: 5", "count: 5, pattern: '['", ["pattern '[': no broker can compile this regular"]),
        ("count: 5", "count: 5, after: 5 d", ["after '5 d': must be a time such as 30s, 5m or 25"]),
        (
            "count: 5",
            "count: 5, every: 0.1ms",
            ["m.yaml, line 1: its clients make 6,000,020 reque"],
        ),
        (
            "count: 5",
            "count: 5, namespaces: [1, 9]",
            ["line 7: clients.cpp.namespaces must be the first"],
        ),
        (
            "count: 5",
            "count: 5, arrive: {kind: constant, rat: 1, every: 2s}",
            [
                "clients.cpp.arrive.rate is missing",
                "clients.cpp.arrive.rat does not exist; did you mean rate?",
                "clients.cpp.arrive.every is a key of kind: burst, not of kind: constant",
            ],
        ),
        ("count: 5", "count: 5, arrive: {kind: brst}", ["arrive.kind 'brst' is none; did you mea"]),
        (
            "count: 5",
            "count: 5, arrive: {rate: 1}",
            ["arrive needs a kind; there are at-once, con"],
        ),
        ("count: 5", "count: 5, arrive: {kind: trace, file: no.log}", ["the trace no.log cannot"]),
        ("do: list", "do: consume, of: orders", ["cpp consumes of orders: no publishing group h"]),
        ("every: 1m", "every: 10ms", ["clients.cpp.drop.every '10ms': must be 0 (once) or at lea"]),
        (
            "jitter",
            "jiter",
            ["line 7: clients.cpp.drop.jiter does not exist; did you mean jitter?"],
        ),
        (
            "HeapMem",
            "HepMem",
            ["line 3: servers.broker.maxTopicListInFlightHepMemSizeMB is unknow"],
        ),
        ("MB: 5", "MB: few", ["line 3: servers.broker.maxTopicListInFlightHeapMemSizeMB cannot"]),
        ("phases", "shocks: [{at: 1}]\nphases", ["line 8: shocks[0] must say one of kill, restar"]),
        ("phases", "shocks: [{at: 1, kill: proxy}]\nphases", ["a proxy, and there is none"]),
        (
            "phases",
            "shocks: [{at: 1, anew: g}]\nphases",
            ["line 8: shocks[0] is not possible: it concerns group g: no group has"],
        ),
        ("phases", "shocks: [{at: 1, set: {a: 1}}]\nphases", ["shocks[0].set.a is unknown to the"]),
    ],
)
def test_every_error_of_a_group_or_server_is_reported_with_its_key(
    old: str, new: str, wanted: list[str]
) -> None:
    told = sentences(GROUPS.replace(old, new, 1))
    assert len(told) == len(wanted)
    for found, sentence in zip(told, wanted, strict=True):
        assert sentence in found


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [
        (
            "clients.go.cuont=5",
            "--set clients.go.cuont=5: clients.go.cuont does not exist; did you",
        ),
        ("clients.go.count=x", "--set clients.go.count=x: clients.go.count 'x': must be a whole"),
        ("servers.profile=p", "--set servers.profile=p: servers.profile 'p' is none; there are pu"),
        ("servers.broker.a=1", "--set servers.broker.a=1: servers.broker.a is unknown to the brok"),
        ("topics.namespaces.x=1", "--set topics.namespaces.x=1: topics.namespaces must be a whole"),
        ("extends=storm", "--set extends=storm: extends does not exist; there are name, descript"),
        ("clients+={name: b}", "--set clients+={name: b}: clients.b needs a do; there are list"),
    ],
)
def test_an_invalid_setting_is_reported_by_its_set_option(setting: str, wanted: str) -> None:
    [told] = sentences(GROUPS, "seed=3", setting)
    assert told.startswith(wanted)


def test_expectations_are_checked_by_the_passed_function() -> None:
    def check(text: str, groups: Sequence[str]) -> None:
        if text.partition(".")[0] not in groups:
            raise UsageError("there is no such group")

    with pytest.raises(DocumentError) as caught:
        parse_document(f"{SMALL}expect:\n  - a.p99 < 1s\n  - b\n  - 1", check_expectation=check)
    assert caught.value.sentences == (
        "scenario.yaml, line 4: expect[1] is not possible: there is no such group",
        "scenario.yaml, line 5: expect[2] 1: must be a text: write it in quotes",
    )


def test_several_errors_are_reported_in_the_order_of_their_lines() -> None:
    # Found by the schema, among server keys, by the schema again, and in an option
    text = f"{SMALL}seeds: 1\nservers:\n  broker: {{maxMessagSize: 1}}\nphases: {{measure: 0s}}\n"
    told = sentences(text, "repeats=0")
    places = [one.partition(": ")[0] for one in told]
    assert places == ["--set repeats=0", *(f"m.yaml, line {n}" for n in (2, 4, 5))]


@pytest.mark.parametrize("role", ["broker", "proxy"])
def test_a_secret_in_a_document_is_refused_without_being_shown(role: str) -> None:
    keys = {"broker": "tokenSecretKey", "proxy": "brokerClientAuthenticationParameters"}
    told = sentences(f"{SMALL}servers: {{{role}: {{{keys[role]}: 'token:planted'}}}}")
    assert [one for one in told if f"--{role}-conf" in one]
    assert "planted" not in "".join(told)


def test_service_times_are_a_profile_name_or_seconds() -> None:
    def read(said: str) -> ServiceTimes:
        text = f"{SMALL}servers: {{service_times: {said}}}"
        return parse_document(text).servers.service_times

    assert read("pulsar") == PULSAR
    assert read(PULSAR.scaled(2).model_dump_json()).accept == 2 * PULSAR.accept
    (told,) = sentences(f"{SMALL}servers: {{service_times: slow}}")
    assert told.endswith("'slow': must be floodgate, pulsar, a file, or seconds by name")


def test_unquoted_yaml_words_and_dates_stay_text() -> None:
    text = SMALL.replace("count", "pattern: no, count")
    document = parse_document(f"{text}servers: {{broker: {{clusterName: 2026-01-01}}}}")
    assert document.resolved()["clients"][0]["pattern"] == "no"
    assert document.servers.broker == {"clusterName": "2026-01-01"}
    assert parse_document(document.resolved_text()).resolved() == {
        **document.resolved(),
        "name": "scenario",
    }


def tenfold(levels: int) -> str:
    """Return a mapping of nested tenfold merges."""
    if not levels:
        return "&b0 {k: v}"
    more = f", *b{levels - 1}" * 9
    return f"&b{levels} {{<<: [{tenfold(levels - 1)}{more}]}}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("clients: &l {a: *l}", "m.yaml is nested too deeply, or an alias"),
        (f"clients: {'[' * 600}", "m.yaml is nested too deeply"),
        (f"a: {tenfold(12)}", "m.yaml has more than 500,000 values, each alias"),
        ("seed: 1\n\nname: \a", "m.yaml, line 3: the character U+0007 cannot stand in YAML"),
    ],
)
def test_an_excessively_nested_or_unreadable_document_is_refused(text: str, sentence: str) -> None:
    [told] = sentences(text)
    assert sentence in told


GROUP = st.fixed_dictionaries(
    {"do": st.sampled_from(["list", "watch"]), "count": st.integers(1, 50)},
    optional={
        "after": st.integers(0, 5000).map(lambda ms: ms / 1000),
        "timeout": st.integers(1, 90).map(lambda each: f"{each}s"),
        "read": st.fixed_dictionaries(
            {}, optional={"never": st.booleans(), "rate": st.sampled_from([None, "1kB/s"])}
        ),
        "arrive": st.one_of(
            st.fixed_dictionaries({"kind": st.just("poisson"), "rate": st.integers(1, 9)}),
            st.fixed_dictionaries({"kind": st.just("at-once")}),
        ),
    },
)
CLIENTS = st.dictionaries(st.sampled_from(["a", "b", "c"]), GROUP, min_size=1).map(
    lambda groups: [{"name": name, **group} for name, group in groups.items()]
)


@given(base=CLIENTS, over=CLIENTS)
def test_resolving_a_document_twice_changes_no_value(base, over, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("documents")
    write(folder, "base.yaml", yaml.safe_dump({"clients": base}))
    file = write(folder, "m.yaml", yaml.safe_dump({"extends": "./base.yaml", "clients": over}))
    once = read_document(file)
    twice = parse_document(once.resolved_text())
    assert twice.resolved() == once.resolved()
    names = [each.name for each in once.clients]
    assert names == list(dict.fromkeys(each["name"] for each in (*base, *over)))


@pytest.mark.parametrize(
    "text", ["seed: !!bool x\n", "seed: !!timestamp x\n", 'extends: "a\\0b.yaml"\n']
)
def test_unreadable_yaml_values_are_reported_with_their_line(text: str) -> None:
    assert sentences(f"{SMALL}{text}")[0].startswith("m.yaml, line 2: ")


def test_an_alias_may_refer_to_a_mapping_with_a_merge_key() -> None:
    text = "clients:\n- &a {<<: {count: 2, do: list}, count: 3, name: a, read: &r {<<: {rate: 1}, "
    text += "rate: 2}}\n- {name: b, do: list, count: 1, read: *r}\n"
    assert [each.read.rate for each in parse_document(text).clients] == [2, 2]


def test_a_null_group_is_refused() -> None:
    (said,) = sentences("clients: [null]\n")
    assert said.endswith("clients[0] null: must be a mapping of keys to values")
