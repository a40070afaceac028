"""An advice keeps sufficient limits, raises insufficient limits, and ends in time."""

from pathlib import Path

import pytest

from broker.errors import TOO_MANY_LOOKUPS as BROKER_LOOKUPS
from loadgen.documents.model import Document
from loadgen.errors import UsageError
from loadgen.places.options import RunOptions
from loadgen.studies.advise.advice import advise, confirm, virtual_storms
from loadgen.studies.advise.goal import Goal, Outcome
from loadgen.studies.advise.limits import Limits, Setting, limits_of
from loadgen.studies.advise.question import Question
from loadgen.studies.advise.report import rows, sure, verdict
from loadgen.studies.advise.search import OutOfTimeError
from proxy.errors import TOO_MANY_LOOKUPS as PROXY_LOOKUPS
from tests.support.runs.recorded_run import event, record_run, request
from tests.unit.loadgen.studies.advise.asked import clients, needs, question

GOAL = Goal(back_within_seconds=65)
TIGHT = Setting(Limits(heap_mb=5, direct_mb=5))
QUESTION = question(goal=GOAL, today=TIGHT)


def test_limits_in_force_that_hold_are_kept() -> None:
    kept = question(goal=GOAL)
    advice = advise(kept, needs(5, 19))
    assert advice.setting == kept.today
    assert verdict(advice)[-1] == "Advised: keep these limits."


def test_limits_in_force_that_hold_by_luck_are_raised() -> None:
    # The limits pass as given, but are within the growth stall's reach
    lucky = question(goal=GOAL, today=Setting(Limits(heap_mb=5, direct_mb=100)))
    advice = advise(lucky, needs(1, 1))
    assert advice.setting is not None
    assert (advice.setting.broker.heap_mb, advice.setting.broker.direct_mb) == (8, 100)


def test_limits_in_force_that_a_slower_broker_misses_are_no_luck_to_rely_on() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        return needs(*((20, 20) if asked.times != QUESTION.times else (5, 5)))(asked, setting)

    advice = advise(QUESTION, storm)
    assert verdict(advice)[0].endswith("; luck: a broker 3x as slow misses it.")
    assert advice.setting is not None
    assert advice.setting.broker.heap_mb >= 20


def test_waits_in_force_are_kept_where_shorter_waits_miss_the_goal() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        patient = setting.broker.heap_timeout_millis == TIGHT.broker.heap_timeout_millis
        slow = asked.times != QUESTION.times
        return needs(*((20 if slow else 5,) * 2 if patient else (1_000,) * 2))(asked, setting)

    advice = advise(QUESTION, storm)
    assert advice.met
    assert advice.setting is not None
    assert advice.setting.broker.heap_timeout_millis == TIGHT.broker.heap_timeout_millis


def test_limits_that_were_not_tried_in_time_are_no_answer() -> None:
    tries = iter([1, 2])

    def storm(asked: Question, setting: Setting) -> Outcome:
        if next(tries, None) is None:
            raise OutOfTimeError
        return needs(5, 5)(asked, setting)

    advice = advise(QUESTION, storm)
    assert advice.setting is not None
    assert not advice.met


@pytest.mark.parametrize("slow_only", [False, True])
def test_limits_that_missed_the_goal_are_not_advised_by_a_search_that_was_cut(slow_only) -> None:
    tried: list[Setting] = []

    def storm(asked: Question, setting: Setting) -> Outcome:
        tried.append(setting)
        if asked.clients > QUESTION.clients or len(tried) > 6:
            raise OutOfTimeError
        few = slow_only and asked.times == QUESTION.times
        return needs(*((5, 5) if few else (100, 100)))(asked, setting)

    advice = advise(QUESTION, storm)
    assert not advice.complete
    assert advice.setting is not None
    assert advice.setting.broker.accounted_mb == GOAL.accounted_mb
    assert advice.met


def test_a_cut_search_advises_the_smallest_limits_that_passed_its_storms() -> None:
    tried: list[Setting] = []

    def storm(asked: Question, setting: Setting) -> Outcome:
        tried.append(setting)
        if len(tried) > 11:
            raise OutOfTimeError
        return needs(30, 30)(asked, setting)

    advice = advise(QUESTION, storm)
    assert not advice.complete
    assert advice.setting is not None
    assert advice.setting in tried[:-1]
    assert 30 <= advice.setting.broker.heap_mb < GOAL.accounted_mb // 8


def test_a_cut_search_says_that_a_slow_broker_misses_with_all_memory() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        if asked.clients > QUESTION.clients:
            raise OutOfTimeError
        slow = asked.times != QUESTION.times
        return needs(*((10_000, 10_000) if slow else (100, 100)))(asked, setting)

    advice = advise(QUESTION, storm)
    assert not advice.complete
    assert not advice.met
    assert "No limits are sure to meet the goal" in verdict(advice)[-1]


def test_limits_that_a_slower_broker_misses_with_all_memory_are_not_sure() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        slow = asked.times.accept > QUESTION.times.accept
        return needs(*((10_000, 10_000) if slow else (5, 5)))(asked, setting)

    advice = advise(QUESTION, storm)
    assert advice.setting is not None
    assert not advice.met
    assert "No limits are sure to meet the goal" in verdict(advice)[-1]


def test_the_edge_is_of_the_load_as_stated_where_a_slow_broker_misses_with_all_memory() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        if asked.times.accept <= QUESTION.times.accept:
            return needs(5, 5)(asked, setting)
        heap, direct = setting.broker.heap_mb, setting.broker.direct_mb
        return Outcome(1_000, (heap + direct) // 2, None, 1_000, 1_000 - (heap + direct) // 2)

    found = advise(QUESTION, storm)
    assert found.edge is not None
    assert found.setting is not None
    assert found.edge.broker.heap_mb < 15 < found.setting.broker.heap_mb


def test_more_memory_than_may_be_accounted_is_not_kept() -> None:
    wide = question(goal=Goal(back_within_seconds=65, accounted_mb=150))
    advice = advise(wide, needs(5, 19))
    assert advice.setting is not None
    assert advice.setting.broker.accounted_mb <= 150


def test_limits_in_force_make_room_for_what_is_raised_beside_them() -> None:
    # The limits pass, and fit the accountable memory, but direct memory is too small
    goal = Goal(back_within_seconds=65, accounted_mb=30)
    today = Setting(Limits(heap_mb=26, direct_mb=4))
    advice = advise(question(clients(40, timeout=90), goal=goal, today=today), needs(5, 4))
    assert advice.setting is not None
    assert advice.setting.broker.direct_mb > 4
    assert advice.setting.broker.accounted_mb == 30
    assert ("heap MB", "26", "18", "the rest of --accounted") in rows(advice)


def test_limits_in_force_that_miss_are_not_said_to_pass() -> None:
    # The limits would do, the waits do not
    today = Setting(Limits(heap_mb=8, direct_mb=11, heap_timeout_millis=1))

    def storm(asked: Question, setting: Setting) -> Outcome:
        return needs(5, 100 if setting == today else 5)(asked, setting)

    advice = advise(question(clients(40, timeout=90), goal=GOAL, today=today), storm)
    told = {title: why for title, _, _, why in rows(advice)}
    assert "goal missed" in verdict(advice)[0]
    assert told["heap MB"] == "first guesses, largest list"


def test_what_would_break_the_advice_is_said() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        if asked.clients > 1.5 * QUESTION.clients:
            return Outcome(asked.clients, 0, None, 100, 100)
        return needs(5, 19)(asked, setting)

    told = " ".join(sure(advise(QUESTION, storm)))
    assert "Breaks with 2x clients (100 % late, 100 % refused)." in told
    assert "a broker 3x as slow" in told


def test_a_strain_that_breaks_the_advice_with_one_seed_of_two_is_said_once_not_to_hold() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        slow = asked.times == QUESTION.times.scaled(3)
        return needs(*((1_000 if slow and asked.seed == 1 else 5,) * 2))(asked, setting)

    said = " ".join(sure(advise(QUESTION, storm)))
    holds, _, breaks = said.partition("Breaks with ")
    assert (holds.count("3x as slow"), breaks.count("3x as slow")) == (0, 1)


def test_a_storm_that_has_no_time_is_cut() -> None:
    with pytest.raises(OutOfTimeError):
        virtual_storms(seconds=0)(QUESTION, QUESTION.today)


def test_a_search_that_was_cut_says_so_with_what_it_found() -> None:
    tried: list[Setting] = []

    def engine(asked: Question, setting: Setting) -> Outcome:
        tried.append(setting)
        if len(tried) > 6:
            raise OutOfTimeError
        return needs(5, 19)(asked, setting)

    advice = advise(QUESTION, engine)
    assert advice.met
    assert "before all was tried: --minutes gives it more" in " ".join(sure(advice))


def test_without_time_for_a_single_storm_there_is_no_advice() -> None:
    with pytest.raises(UsageError, match=r"40 clients .* was cut after 120 s.*more --minutes"):
        advise(QUESTION, virtual_storms(seconds=0))


@pytest.mark.parametrize(("back", "storms", "word"), [(10.0, 1, "goal met"), (70.0, 3, "missed")])
def test_a_storm_that_misses_the_goal_is_run_again_with_larger_limits(
    back: float, storms: int, word: str, tmp_path: Path
) -> None:
    advice = advise(QUESTION, needs(5, 19))
    tried: list[int] = []

    def run(document: Document, options: RunOptions) -> Path:
        tried.append(int(document.servers.broker["maxTopicListInFlightDirectMemSizeMB"]))
        return record_run(options.out / "r", [request()], [event("back", value=back)])

    found = confirm(advice, tmp_path, 400, run=run)
    assert tried == sorted(set(tried))
    assert len(tried) == storms
    assert found.met is (storms == 1)
    assert word in " ".join(sure(found))


def test_a_storm_missed_by_a_machine_too_slow_for_its_clients_says_nothing_of_the_limits(
    tmp_path: Path,
) -> None:
    late = {"task": 0, "clients": 1, "moments": 0, "lag_p99_seconds": 0.0, "cpu_seconds": 0.0,
            "measured_seconds": 0.0, "loop_lag_max_seconds": 9.0}  # fmt: skip

    def run(document: Document, options: RunOptions) -> Path:
        del document
        return record_run(
            options.out / "r", [request()], [event("back", value=70.0)], tasks=[late], place="local"
        )

    advice = confirm(advise(QUESTION, needs(5, 5)), tmp_path, 10_000, run=run)
    assert advice.met
    assert "this machine was too slow or too busy" in sure(advice)[-1]


def test_no_real_storm_has_more_memory_than_may_be_accounted(tmp_path: Path) -> None:
    # Limits that take nearly all of the memory
    goal = Goal(back_within_seconds=65, accounted_mb=70)
    advice = advise(question(goal=goal, today=TIGHT), needs(8, 40))
    tried: list[int] = []

    def run(document: Document, options: RunOptions) -> Path:
        tried.append(limits_of(document.servers.broker).accounted_mb)
        return record_run(options.out / "r", [request()], [event("back", value=70.0)])

    confirm(advice, tmp_path, 400, run=run)
    assert tried == [52, 70]


def test_time_that_is_too_short_for_a_storm_is_told(tmp_path: Path) -> None:
    advice = advise(QUESTION, needs(5, 19))
    found = " ".join(sure(confirm(advice, tmp_path, 30)))
    assert "No real storm: a storm may take 112 s, and 30 s were left" in found


@pytest.mark.parametrize(("seconds", "told"), [(30, []), (400, ["pulsar://10.0.0.1:6650: 40 cl"])])
def test_the_storm_of_a_cluster_is_announced_if_there_is_time_for_it(
    seconds: float, told: list[str], tmp_path: Path
) -> None:
    advice, notes = advise(QUESTION, needs(5, 19)), list[str]()

    def run(document: Document, options: RunOptions) -> Path:
        del document
        return record_run(options.out / "r", [request()], [event("back", value=1.0)])

    at = RunOptions(service_url="pulsar://10.0.0.1:6650")
    confirm(advice, tmp_path, seconds, notes.append, run, at)
    assert [each[:29] for each in notes if each.startswith("pulsar")] == told


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (str(BROKER_LOOKUPS), "maxConcurrentLookupRequest=7 in broker.conf"),
        (PROXY_LOOKUPS, "maxConcurrentLookupRequests=9 in proxy.conf"),
    ],
)
def test_where_places_for_lookups_are_too_few_the_answer_names_their_key(text, key) -> None:
    more = {
        "broker": {"maxConcurrentLookupRequest": "7"},
        "proxy": {"maxConcurrentLookupRequests": "9"},
    }
    refused = Outcome(40, 0, None, 40, 33, reasons={f"TooManyRequests: {text}": 33})
    advice = advise(question(goal=GOAL, more=more), lambda _asked, _setting: refused)
    assert any(f"33 were refused for want of a place: {key}" in each for each in advice.obstacles)
