"""A document says what is run, with what it extends; every fault is told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loadgen.documents.faults import DocumentError
from loadgen.documents.reading import parse_document, read_document, shipped
from loadgen.errors import UsageError
from loadgen.scenarios.discovery.scenario import DiscoveryScenario, client_plans

GROUPS = """\
kind: discovery
cluster:
  profile: pulsar
  broker: {maxTopicListInFlightHeapMemSizeMB: 5, dispatcherPauseOnAckStatePersistentEnabled: true}
  topics: {namespaces: 4, per_namespace: 2000}
load:
  groups:
    - {name: go, family: go, clients: 20, reader: {rate_bytes_per_second: 100kB/s}}
    - {name: cpp, clients: 5, disconnects: {at_seconds: 5s, every_seconds: 1m, jitter: 10%}}
  phases: {measure_seconds: 2m}
"""


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_a_kind_that_is_a_list_is_refused_as_any_other() -> None:
    with pytest.raises(DocumentError, match=r"kind \[\] is none"):
        parse_document("kind: []")


def test_values_have_units() -> None:
    scenario = parse_document(GROUPS).scenario
    assert isinstance(scenario, DiscoveryScenario)
    assert scenario.groups[0].reader.rate_bytes_per_second == 100_000
    assert scenario.groups[1].disconnects is not None
    assert scenario.groups[1].disconnects.every_seconds == 60
    assert scenario.groups[1].disconnects.jitter == 0.1
    assert scenario.phases.measure_seconds == 120


def test_server_keys_are_texts_as_in_a_file() -> None:
    assert parse_document(GROUPS).cluster.broker == {
        "maxTopicListInFlightHeapMemSizeMB": "5",
        "dispatcherPauseOnAckStatePersistentEnabled": "true",
    }


def test_without_namespaces_of_its_own_a_load_has_those_of_the_clusters_topics() -> None:
    document = parse_document(GROUPS)
    assert document.makes_topics
    assert [each.topics for each in document.scenario.namespaces] == [2000] * 4
    named = parse_document("kind: storm\nload: {namespaces: [a/b, c/d]}")
    assert not named.makes_topics
    assert [each.name for each in named.scenario.namespaces] == ["a/b", "c/d"]


def test_a_document_is_laid_over_what_it_extends(tmp_path: Path) -> None:
    # Given
    write(tmp_path, "base.yaml", f"name: base\n{GROUPS}thresholds: [list.answered.count > 1]\n")
    file = write(
        tmp_path,
        "mine.yaml",
        "extends: base.yaml\nthresholds: [list.answered.count > 3]\n"
        "cluster: {topics: {namespaces: 8}}\n"
        "load: {seed: 9, groups: [{name: cpp, family: cpp}, {name: new, clients: 1}]}\n",
    )
    # When
    document = read_document(file)
    # Then
    scenario = document.scenario
    assert isinstance(scenario, DiscoveryScenario)
    assert [(g.name, g.family, g.clients) for g in scenario.groups] == [
        ("go", "go", 20), ("cpp", "cpp", 5), ("new", "once", 1),
    ]  # fmt: skip
    assert (document.name, scenario.seed, scenario.clients) == ("mine", 9, 26)
    assert (document.cluster.topics.namespaces, document.cluster.topics.per_namespace) == (8, 2000)
    assert document.head.thresholds == ("list.answered.count > 3",)


def test_another_kind_of_part_replaces_the_part(tmp_path: Path) -> None:
    # Given
    arrivals = "load: {groups: [{name: go, arrivals: {kind: constant, per_second: 5/s}}]}"
    base = write(tmp_path, "base.yaml", GROUPS)
    write(tmp_path, "constant.yaml", f"extends: {base}\n{arrivals}")
    burst = arrivals.replace(
        "constant, per_second: 5/s", "burst, clients_each: 2, every_seconds: 1"
    )
    # When
    scenario = read_document(write(tmp_path, "m.yaml", f"extends: ./constant.yaml\n{burst}"))
    storm = read_document(write(tmp_path, "s.yaml", "extends: ./base.yaml\nkind: storm"))
    # Then
    assert scenario.load()["groups"][0]["arrivals"]["kind"] == "burst"
    assert storm.load()["clients"] == 1000
    assert storm.cluster.topics.namespaces == 4


def test_a_shipped_scenario_may_be_extended(tmp_path: Path) -> None:
    document = read_document(write(tmp_path, "m.yaml", "extends: storm\nload: {clients: 3}"))
    assert (document.head.kind, document.scenario.clients) == ("storm", 3)
    assert document.head.description == read_document("storm").head.description


def test_a_circle_is_refused_by_the_names_of_those_in_it(tmp_path: Path) -> None:
    write(tmp_path, "b.yaml", "extends: c.yaml")
    write(tmp_path, "c.yaml", "\nextends: ./a.yaml")
    file = write(tmp_path, "a.yaml", "extends: b.yaml")
    with pytest.raises(
        UsageError,
        match=r"c\.yaml, line 2: this goes in a circle: a\.yaml extends b\.yaml extends c\.yaml",
    ):
        read_document(file)


def test_a_trace_is_read_from_beside_the_document_that_names_it(tmp_path: Path) -> None:
    # Given
    (tmp_path / "base").mkdir()
    write(tmp_path, "base/restarts.log", "# started\n12.5 a\n12 b\n\n14\n")
    trace = "arrivals: {kind: trace, file: restarts.log}"
    write(tmp_path, "base/base.yaml", GROUPS.replace("clients: 5", f"clients: 5, {trace}"))
    # When
    document = read_document(write(tmp_path, "mine.yaml", "extends: base/base.yaml"))
    # Then
    arrivals = document.load()["groups"][1]["arrivals"]
    assert arrivals == {"kind": "trace", "at_seconds": [0.0, 0.5, 2.0]}
    assert parse_document(document.resolved_text()).load() == document.load()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", ["m.yaml is not a scenario: one begins with its kind"]),
        ("- a", ["m.yaml is not a scenario"]),
        ("kind: [", ["m.yaml, line 1: this is not YAML: expected the node content"]),
        ("a: !!python/name:os.system", ["m.yaml, line 1: this is not YAML: could not determine"]),
        ("kind: storm\nkind: lookups", ["m.yaml, line 2: kind is there twice"]),
        ("name: a", ["m.yaml: kind is missing"]),
        ("kind: strom", ["m.yaml, line 1: kind 'strom' is none; did you mean storm?"]),
        ("kind: storm\n\nlod: {}", ["m.yaml, line 3: lod does not exist; did you mean load?"]),
        ("kind: storm\nrepeats: 0", ["m.yaml, line 2: repeats 0: must be at least 1"]),
        ("kind: storm\nload: [1]", ["m.yaml, line 2: load must be a mapping of keys to values"]),
        (
            "kind: storm\nload:\n  clinets: 3\n  service_url: x",
            [
                "m.yaml, line 3: load.clinets does not exist in kind storm; did you mean clients?",
                "m.yaml, line 4: load.service_url does not exist in kind storm; there are ",
            ],
        ),
        ("kind: storm\nload: {clients: 0}", ["m.yaml, line 2: load.clients 0: must be at least 1"]),
        (
            "kind: storm\nload: {read_rate: 1kB/s}",
            ["m.yaml, line 2: load.read_rate does not exist in kind storm; did you mean read_"],
        ),
        (
            "kind: storm\nload:\n  spread_seconds: 5 parsecs\n  receive_buffer_bytes: much",
            [
                "line 3: load.spread_seconds '5 parsecs' is not a time such as 30s, 5m or 250ms",
                "line 4: load.receive_buffer_bytes 'much' is not a number of bytes such as 100kB",
            ],
        ),
        (
            GROUPS.replace("family: go", "family: gopher").replace("jitter", "jiter"),
            [
                "line 8: load.groups[0].family 'gopher': must be 'once', 'polite'",
                "line 9: load.groups[1].disconnects.jiter does not exist; did you mean jitter?",
            ],
        ),
        (
            GROUPS.replace("clients: 5", "clients: 5, arrivals: {kind: constant, per_scond: 1}"),
            [
                "load.groups[1].arrivals.per_second is missing",
                "load.groups[1].arrivals.per_scond does not exist; did you mean per_second?",
            ],
        ),
        (
            GROUPS.replace("clients: 5", "clients: 5, arrivals: {kind: brust}"),
            ["load.groups[1].arrivals has the kind 'brust'; there are 'at-once', 'constant'"],
        ),
        (
            GROUPS.replace("every_seconds: 1m", "every_seconds: 10ms"),
            ["disconnects.every_seconds 0.01: must be 0 (once) or at least 0.1"],
        ),
        (
            GROUPS.replace("clients: 5", "clients: 5, repeat_seconds: 0.01ms"),
            ["load is not possible: clients, pipelined and repeat_seconds of its groups make"],
        ),
        (GROUPS.replace("name: cpp", "name: go"), ["line 6: load is not possible: two groups hav"]),
        (GROUPS.replace("clients: 5", "clients: 1.5"), ["groups[1].clients 1.5: must be a whole"]),
        (GROUPS.replace("profile:", "prfile:"), ["line 3: cluster.prfile does not exist; did you"]),
        (
            GROUPS.replace("HeapMem", "HepMem"),
            [
                "line 4: cluster.broker.maxTopicListInFlightHepMemSizeMB is unknown to the broker; "
                "did you mean maxTopicListInFlightHeapMemSizeMB?"
            ],
        ),
        (GROUPS.replace("MB: 5", "MB: few"), ["line 4: cluster.broker.maxTopicListInFlightHeap"]),
        (
            f"{GROUPS}thresholds:\n  - list.answered.rate >= 99%\n  - list.p99 < 2s\n",
            ["line 13: thresholds[1] is not possible: threshold 'list.p99 < 2s': list has no p99"],
        ),
        ("extends: strm", ["m.yaml, line 1: extends there is no scenario 'strm'; did you mean st"]),
        ("extends: ./no.yaml", ["m.yaml, line 1: extends there is no scenario document no.yaml"]),
        (
            GROUPS.replace("clients: 5", "clients: 5, arrivals: {kind: trace, file: no.log}"),
            ["the trace no.log cannot be read: No such file"],
        ),
    ],
)
def test_every_fault_is_a_sentence_with_its_place(text: str, sentences: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse_document(text, Path("m.yaml"))
    told = (
        caught.value.sentences if isinstance(caught.value, DocumentError) else [str(caught.value)]
    )
    assert len(told) == len(sentences)
    for found, wanted in zip(told, sentences, strict=True):
        assert wanted in found
        assert "\n" not in found


@pytest.mark.parametrize(
    ("written", "clients"), [("010", 10), ("08", 8), ("1_000", 1000), ("+7", 7), ("5.0", 5)]
)
def test_a_number_is_what_its_author_saw(written: str, clients: int) -> None:
    assert parse_document(f"kind: storm\nload: {{clients: {written}}}").scenario.clients == clients


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        ("clients: 0x10", "line 2: load.clients '0x10': must be a whole number"),
        ("clients: yes", "line 2: load.clients 'yes': must be a whole number"),
        ("clients: true", "line 2: load.clients true: must be a number or a text"),
        ("clients: 1:30", "line 2: load.clients '1:30': must be a whole number"),
        ("clients:", "line 2: load.clients null: must be a whole number"),
        (f"clients: {'9' * 5000}", "999...: must be a whole number of fewer digits"),
        ("spread_seconds: 1:30", "line 2: load.spread_seconds '1:30' is not a time such as 30s"),
        ("spread_seconds: .nan", "line 2: load.spread_seconds '.nan' is not a time such as 30s"),
        ("spread_seconds: nan", "line 2: load.spread_seconds 'nan' is not a time such as 30s"),
        ("spread_seconds: -.inf", "line 2: load.spread_seconds '-.inf' is not a time such as 30s"),
        ("pattern: 12", "line 2: load.pattern 12: must be a text: write it in quotes"),
        ("pattern: '['", "line 2: load.pattern '[': no broker has this regular expression: "),
        ("namespaces: a/b", "line 2: load.namespaces 'a/b': must be a list"),
        ("namespaces: 5", "line 2: load.namespaces 5: must be a list"),
    ],
)
def test_what_yaml_takes_for_something_else_is_refused_by_its_key(load: str, sentence: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document(f"kind: storm\nload: {{{load}}}", Path("m.yaml"))
    assert len(caught.value.sentences) == 1
    assert sentence in str(caught.value)


def test_true_is_no_number_of_topics() -> None:
    sentence = r"m\.yaml, line 2: cluster\.topics\.namespaces true: must be a number or a text"
    with pytest.raises(DocumentError, match=sentence):
        parse_document("kind: storm\ncluster: {topics: {namespaces: true}}", Path("m.yaml"))


def test_words_stay_words() -> None:
    document = parse_document(
        "kind: storm\ncluster: {broker: {clusterName: 2026-01-01}}\nload: {pattern: no}"
    )
    assert document.scenario.pattern == "no"
    assert document.cluster.broker == {"clusterName": "2026-01-01"}
    assert parse_document(document.resolved_text()).resolved() == document.resolved()


def tenfold(levels: int) -> str:
    """A mapping that merges ten times what merges ten times, and so on."""
    if not levels:
        return "&b0 {k: v}"
    more = f", *b{levels - 1}" * 9
    return f"&b{levels} {{<<: [{tenfold(levels - 1)}{more}]}}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kind: storm\nload: &l {a: *l}", "m.yaml is nested too deeply, or an alias"),
        (f"kind: {'[' * 600}", "m.yaml is nested too deeply"),
        (f"a: {tenfold(12)}", "m.yaml has more than 500,000 values, each alias"),
        ("kind: storm\n\nname: \a", "m.yaml, line 3: the character U+0007 cannot stand in YAML"),
    ],
)
def test_what_would_never_end_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_document(text, Path("m.yaml"))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_fault_of_what_is_extended_is_told_where_it_stands(tmp_path: Path) -> None:
    write(tmp_path, "base.yaml", "kind: storm\nload:\n  clients: none\n")
    with pytest.raises(DocumentError, match=r"base\.yaml, line 3: load\.clients 'none': must be a"):
        read_document(write(tmp_path, "mine.yaml", "extends: base.yaml"))


def test_many_faults_are_counted_in_the_first_sentence() -> None:
    with pytest.raises(DocumentError, match=r"a does not .* \(and 2 more: loadgen scenarios check"):
        parse_document("kind: storm\nload: {a: 1, b: 1, c: 1}")


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_scenario_is_valid_and_says_what_it_shows_and_expects(name: str) -> None:
    # When
    document = read_document(name)
    # Then
    assert document.name == name
    assert document.written.startswith("# yaml-language-server: $schema=../scenario.schema.json\n")
    assert document.head.description.strip()
    assert document.head.thresholds or name == "client-memory"  # which checks itself
    again = parse_document(document.resolved_text())
    assert again.resolved() == document.resolved()
    assert again.makes_topics == document.makes_topics
    assert document.resolved()["load"] == yaml.safe_load(document.resolved_text())["load"]


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_schedule_is_the_same_over_any_number_of_tasks(name: str) -> None:
    scenario = read_document(name).scenario
    if not isinstance(scenario, DiscoveryScenario):
        return
    schedules = [
        sorted(
            (plan for task in range(tasks) for plan in client_plans(scenario, task, tasks)),
            key=lambda plan: plan.client,
        )
        for tasks in (1, 2, 3)
    ]
    assert schedules[0] == schedules[1] == schedules[2]
    assert [plan.client for plan in schedules[0]] == list(range(scenario.clients))


SECONDS = st.integers(0, 5000).map(lambda ms: ms / 1000)
GROUP = st.fixed_dictionaries(
    {"clients": st.integers(1, 50)},
    optional={
        "family": st.sampled_from(["once", "polite", "go"]),
        "attach": st.integers(0, 3),
        "period_seconds": st.integers(1, 90).map(lambda each: f"{each}s"),
        "arrives_at_seconds": SECONDS,
        "reader": st.fixed_dictionaries(
            {},
            optional={
                "never": st.booleans(),
                "rate_bytes_per_second": st.sampled_from([0, "1kB/s"]),
            },
        ),
        "arrivals": st.one_of(
            st.fixed_dictionaries({"kind": st.just("poisson"), "per_second": st.integers(1, 9)}),
            st.fixed_dictionaries({"kind": st.just("at-once")}),
        ),
    },
)
LOADS = st.dictionaries(st.sampled_from(["a", "b", "c"]), GROUP, min_size=1).map(
    lambda groups: [{"name": name, **group} for name, group in groups.items()]
)


@given(base=LOADS, over=LOADS)
def test_resolving_twice_changes_nothing(base, over, tmp_path_factory) -> None:
    # Given
    folder = tmp_path_factory.mktemp("documents")
    head = {"kind": "discovery", "cluster": {"topics": {"namespaces": 2, "per_namespace": 5}}}
    write(folder, "base.yaml", yaml.safe_dump({**head, "load": {"groups": base}}))
    file = write(
        folder, "m.yaml", yaml.safe_dump({"extends": "./base.yaml", "load": {"groups": over}})
    )
    # When
    once = read_document(file)
    twice = parse_document(once.resolved_text())
    # Then
    assert twice.resolved() == once.resolved()
    assert twice.scenario == once.scenario
    names = [each["name"] for each in once.load()["groups"]]
    assert names == list(dict.fromkeys(each["name"] for each in (*base, *over)))
