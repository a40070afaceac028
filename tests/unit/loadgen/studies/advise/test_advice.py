"""An advice keeps sufficient limits, raises insufficient limits, and ends in time."""

from pathlib import Path

import pytest

from broker.errors import TOO_MANY_LOOKUPS as BROKER_LOOKUPS
from loadgen.documents.model import Document
from loadgen.errors import UsageError
from loadgen.places.options import RunOptions
from loadgen.studies.advise.advice import Advice, advise, confirm, virtual_storms
from loadgen.studies.advise.goal import Goal, Outcome
from loadgen.studies.advise.limits import MEMORY, Knob, Limits, Setting, limits_of, memory_knobs
from loadgen.studies.advise.question import NamespaceShape, Question
from loadgen.studies.advise.report import rows, sure, verdict
from loadgen.studies.advise.search import OutOfTimeError
from proxy.errors import TOO_MANY_LOOKUPS as PROXY_LOOKUPS
from tests.support.runs.recorded_run import event, record_run, request
from tests.unit.loadgen.studies.advise.asked import (
    CutAfter,
    clients,
    needs,
    needs_by_speed,
    question,
)

GOAL = Goal(back_within_seconds=65)
TIGHT = Setting(Limits(heap_mb=5, direct_mb=5))
QUESTION = question(goal=GOAL, today=TIGHT)
KNOBS, PROXY_KNOBS = memory_knobs(TIGHT), [Knob("proxy", name) for name in MEMORY]


def test_current_limits_that_meet_the_goal_are_kept() -> None:
    kept = question(goal=GOAL)
    advice = advise(kept, needs(5, 19))
    assert advice.setting == kept.today
    assert verdict(advice)[-1] == "Advised: keep these limits."


def test_current_limits_that_meet_the_goal_by_luck_are_raised() -> None:
    # The limits pass as given, but are within the growth stall's reach
    lucky = question(goal=GOAL, today=Setting(Limits(heap_mb=5, direct_mb=100)))
    advice = advise(lucky, needs(1, 1))
    assert advice.setting is not None
    assert (advice.setting.broker.heap_mb, advice.setting.broker.direct_mb) == (8, 100)


def test_direct_memory_for_all_lists_in_the_heap_is_advised_with_this_reason() -> None:
    asked = question(clients(40, timeout=30), goal=GOAL, today=TIGHT)
    advice = advise(asked, needs(60, 4))
    assert advice.setting is not None
    assert advice.setting.broker.direct_mb > 40
    assert rows(advice)[1][-1] == "all lists in the heap"


def test_current_limits_that_a_slower_broker_misses_are_called_luck_and_raised() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        return needs(*((20, 20) if asked.times != QUESTION.times else (5, 5)))(asked, setting)

    advice = advise(QUESTION, storm)
    assert verdict(advice)[0].endswith("; luck: a broker 3x as slow misses it.")
    assert advice.setting is not None
    assert advice.setting.broker.heap_mb >= 20


def test_current_limits_that_only_a_slower_broker_misses_are_not_lowered() -> None:
    # No limits meet the goal with a slower broker, but more heap serves more clients.
    def storm(asked: Question, setting: Setting) -> Outcome:
        if asked.times == QUESTION.times:
            return needs(5, 5)(asked, setting)
        return Outcome(100, 50 if setting.broker.heap_mb >= 50 else 10, None, 100, 0)

    today = Setting(Limits(heap_mb=40, direct_mb=90))
    advice = advise(question(clients(40, timeout=30), goal=GOAL, today=today), storm)
    assert advice.setting is not None
    assert advice.setting.broker.heap_mb >= 40
    assert advice.setting.broker.direct_mb >= 90
    assert advice.setting.broker.direct_timeout_millis < today.broker.direct_timeout_millis


def test_current_timeouts_are_kept_if_shorter_timeouts_miss_the_goal() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        patient = setting.broker.heap_timeout_millis == TIGHT.broker.heap_timeout_millis
        slow = asked.times != QUESTION.times
        return needs(*((20 if slow else 5,) * 2 if patient else (1_000,) * 2))(asked, setting)

    advice = advise(QUESTION, storm)
    assert advice.met
    assert advice.setting is not None
    assert advice.setting.broker.heap_timeout_millis == TIGHT.broker.heap_timeout_millis


def test_limits_that_were_not_tried_in_time_do_not_count_as_meeting_the_goal() -> None:
    advice = advise(QUESTION, CutAfter(2, needs(5, 5)))
    assert advice.setting is not None
    assert not advice.met


def test_a_cut_search_only_advises_direct_memory_for_all_lists_in_the_heap() -> None:
    storm = CutAfter(11, needs(60, 4))
    advice = advise(question(clients(40, timeout=30), goal=GOAL, today=TIGHT), storm)
    assert not advice.complete
    assert advice.setting is not None
    assert (
        min(each.broker.direct_mb for each in storm.tried[2:])
        < 40
        < advice.setting.broker.direct_mb
    )
    assert advice.outcome is None or not GOAL.misses(advice.outcome)


def test_a_cut_search_keeps_current_limits_that_met_the_goal() -> None:
    storm = CutAfter(2, needs(5, 19))
    kept = question(goal=GOAL)
    advice = advise(kept, storm)
    assert (advice.setting, advice.promised, advice.met) == (kept.today, False, False)


def test_a_cut_search_of_a_pulsar_advises_the_switch_off() -> None:
    storm = CutAfter(2, needs(5, 19))
    on = Setting(Limits(heap_mb=100, direct_mb=100, pause=True))
    advice = advise(question(goal=GOAL, today=on), storm)
    assert advice.setting is not None
    assert (advice.setting.broker.heap_mb, advice.setting.broker.pause) == (100, False)


def test_a_search_cut_before_all_memory_was_tried_finds_nothing_impossible() -> None:
    storm = CutAfter(1, needs(5, 5))
    advice = advise(QUESTION, storm)
    assert (advice.setting, advice.complete) == (None, False)
    assert not any("No setting" in each for each in verdict(advice))


def test_current_limits_are_luck_if_a_slower_broker_misses_even_with_all_memory() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        slow = asked.times != QUESTION.times
        return needs(*((10_000, 10_000) if slow else (5, 5)))(asked, setting)

    assert advise(question(goal=GOAL), storm).shaky


def test_new_limits_keep_the_current_water_marks() -> None:
    marks = Setting(Limits(heap_mb=5, direct_mb=5, high_water_mark=4_096, low_water_mark=2_048))
    advice = advise(question(goal=GOAL, today=marks), needs(30, 30))
    assert advice.setting is not None
    assert advice.setting.broker.high_water_mark == 4_096
    assert advice.setting.broker.low_water_mark == 2_048


def test_current_limits_that_pass_are_kept_where_no_other_division_of_the_memory_does() -> None:
    goal, today = Goal(65, accounted_mb=512), Setting(Limits(heap_mb=300, direct_mb=200))
    advice = advise(question(goal=goal, today=today), needs(290, 190))
    assert (advice.setting, advice.met) == (today, True)


def test_current_limits_are_kept_if_raising_one_lowers_the_other_too_far() -> None:
    goal, today = Goal(65, accounted_mb=128), Setting(Limits(heap_mb=5, direct_mb=120))
    crowd = question(clients(1_000, "java-poll"), goal=goal, today=today)
    advice = advise(crowd, needs(5, 110))
    assert advice.setting is not None
    assert advice.setting.broker.direct_mb >= 110
    assert advice.met


def test_current_limits_that_a_slow_broker_bears_are_kept_if_raising_one_lowers_the_other() -> None:
    goal, today = Goal(65, accounted_mb=30), Setting(Limits(heap_mb=13, direct_mb=17))
    small = (NamespaceShape("acme/small", 10, 950),)
    crowd = question(clients(20_000, "java-poll"), shapes=small, goal=goal, today=today)
    advice = advise(crowd, needs_by_speed((5, 1), (10, 2)))
    assert (advice.setting, advice.met) == (today, True)


def test_a_division_of_the_memory_that_a_slow_broker_bears_is_found() -> None:
    asked = question(goal=GOAL, today=Setting(Limits(heap_mb=1, direct_mb=1)))
    assert advise(asked, needs_by_speed((5, 5), (200, 50))).met


def test_a_current_limit_above_those_of_the_division_is_kept_and_above_the_edge() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        other_seed = asked.seed != QUESTION.seed
        return needs(*((8, 90) if other_seed else (5, 45)))(asked, setting)

    today = Setting(Limits(heap_mb=390, direct_mb=53))
    advice = advise(question(clients(40, timeout=30), goal=GOAL, today=today), storm)
    assert advice.setting is not None
    assert advice.edge is not None
    assert advice.setting.broker.heap_mb == 390
    assert advice.setting.broker.direct_mb >= 90
    assert all(knob.value(advice.edge) <= knob.value(advice.setting) for knob in KNOBS)


def test_limits_of_a_proxy_stay_if_only_those_of_its_broker_have_to_rise() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        return needs(5, 350 if asked.times != QUESTION.times else 5)(asked, Setting(setting.broker))

    limits = Limits(heap_mb=168, direct_mb=344)
    asked = question(clients(40, timeout=30), goal=GOAL, today=Setting(limits, limits))
    advice = advise(asked, storm)
    assert advice.setting is not None
    assert advice.setting.broker.direct_mb >= 350
    assert [knob.value(advice.setting) for knob in PROXY_KNOBS] == [344, 168]


@pytest.mark.parametrize("unlimited", [0, -1])
def test_finite_limits_of_one_server_stay_if_the_other_has_none_today(unlimited: int) -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        return needs(5, 5)(asked, Setting(setting.broker))

    none = Limits(heap_mb=unlimited, direct_mb=unlimited)
    asked = question(goal=GOAL, today=Setting(Limits(heap_mb=200, direct_mb=200), none))
    advice = advise(asked, storm)
    assert advice.setting is not None
    assert (advice.setting.broker.heap_mb, advice.setting.broker.direct_mb) == (200, 200)
    assert all(0 < knob.value(advice.setting) < 200 for knob in PROXY_KNOBS)


def test_current_limits_above_the_accounted_memory_that_pass_are_said_to_pass() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        return needs(*((-1, 1) if setting.broker.heap_mb <= 0 else (600, 1)))(asked, setting)

    advice = advise(question(goal=GOAL, today=Setting(Limits(heap_mb=-1, direct_mb=200))), storm)
    assert advice.setting is None
    assert "no division of these meets the goal" in verdict(advice)[-1]


def test_no_reason_of_the_broker_is_given_for_the_direct_memory_of_a_proxy() -> None:
    advised = Setting(Limits(heap_mb=5, direct_mb=5), Limits(heap_mb=5, direct_mb=1))
    advice = Advice(question(goal=GOAL, today=Setting(Limits(), Limits())), advised)
    assert "all lists in the heap" not in str(rows(advice))


def test_first_limits_that_cannot_be_raised_are_replaced_by_a_division_that_passes() -> None:
    goal, today = Goal(65, accounted_mb=128), Setting(Limits(heap_mb=1, direct_mb=1))
    crowd = question(clients(20_000, "java-poll"), goal=goal, today=today)
    advice = advise(crowd, needs(10, 60))
    assert advice.setting is not None
    assert advice.edge is not None
    assert advice.met
    assert advice.setting.broker.direct_mb >= 60
    assert 60 <= advice.edge.broker.direct_mb <= advice.setting.broker.direct_mb


def test_a_limit_that_the_accounted_memory_cuts_is_not_said_to_fit_the_first_guesses() -> None:
    goal, today = Goal(65, accounted_mb=128), Setting(Limits(heap_mb=1, direct_mb=1))
    crowd = question(clients(20_000, "java-poll"), goal=goal, today=today)
    advice = advise(crowd, needs(90, 1))
    assert ("heap MB", "1", "124", "the rest of --accounted") in rows(advice)


def test_raising_one_limit_does_not_lower_the_other_current_limit() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        slow = asked.times != QUESTION.times
        return needs(5, 150 if slow else 5)(asked, setting)

    goal = Goal(back_within_seconds=65, accounted_mb=512)
    today = Setting(Limits(heap_mb=300, direct_mb=100))
    advice = advise(question(goal=goal, today=today), storm)
    assert advice.setting is not None
    assert advice.setting.broker.heap_mb >= 300
    assert 150 <= advice.setting.broker.direct_mb <= 212


@pytest.mark.parametrize("slow_only", [False, True])
def test_a_cut_search_does_not_advise_limits_that_missed_the_goal(slow_only) -> None:
    tried: list[Setting] = []

    def storm(asked: Question, setting: Setting) -> Outcome:
        tried.append(setting)
        if asked.clients > QUESTION.clients or len(tried) > 9:
            raise OutOfTimeError
        few = slow_only and asked.times == QUESTION.times
        return needs(*((5, 5) if few else (100, 100)))(asked, setting)

    advice = advise(QUESTION, storm)
    assert not advice.complete
    assert advice.setting is not None
    assert advice.setting.broker.accounted_mb == GOAL.accounted_mb


def test_a_cut_search_advises_the_smallest_limits_that_passed_its_storms() -> None:
    storm = CutAfter(11, needs(30, 30))
    advice = advise(QUESTION, storm)
    assert not advice.complete
    assert advice.setting is not None
    assert advice.setting in storm.tried[:-1]
    assert 30 <= advice.setting.broker.heap_mb < GOAL.accounted_mb // 8


def test_a_cut_search_reports_that_a_slow_broker_misses_the_goal_with_all_memory() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        if asked.clients > QUESTION.clients:
            raise OutOfTimeError
        slow = asked.times != QUESTION.times
        return needs(*((10_000, 10_000) if slow else (100, 100)))(asked, setting)

    advice = advise(QUESTION, storm)
    assert not advice.complete
    assert not advice.met
    assert "Not sure yet" in verdict(advice)[-1]


def test_no_limits_are_sure_if_a_slower_broker_misses_the_goal_with_all_memory() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        slow = asked.times.accept > QUESTION.times.accept
        return needs(*((10_000, 10_000) if slow else (5, 5)))(asked, setting)

    advice = advise(QUESTION, storm)
    assert advice.setting is not None
    assert not advice.met
    assert "not sure to meet the goal" in verdict(advice)[-1]


def test_the_smallest_passing_limits_ignore_a_slow_broker_that_always_fails() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        if asked.times.accept <= QUESTION.times.accept:
            return needs(5, 5)(asked, setting)
        heap, direct = setting.broker.heap_mb, setting.broker.direct_mb
        return Outcome(1_000, (heap + direct) // 2, None, 1_000, 1_000 - (heap + direct) // 2)

    found = advise(QUESTION, storm)
    assert found.edge is not None
    assert found.setting is not None
    assert found.edge.broker.heap_mb < 15 < found.setting.broker.heap_mb


def test_advised_limits_do_not_exceed_the_accounted_memory() -> None:
    wide = question(goal=Goal(back_within_seconds=65, accounted_mb=150))
    advice = advise(wide, needs(5, 19))
    assert advice.setting is not None
    assert advice.setting.broker.accounted_mb <= 150


def test_a_current_limit_is_lowered_to_make_room_for_a_raised_limit() -> None:
    # The limits pass, and fit the accountable memory, but direct memory is too small if slow
    goal = Goal(back_within_seconds=65, accounted_mb=30)
    today = Setting(Limits(heap_mb=26, direct_mb=4))
    asked = question(clients(40, timeout=90), goal=goal, today=today)
    advice = advise(asked, needs_by_speed((5, 4), (5, 10)))
    assert advice.setting is not None
    assert advice.setting.broker.direct_mb > 4
    assert advice.setting.broker.accounted_mb == 30
    assert ("heap MB", "26", "18", "the rest of --accounted") in rows(advice)


def test_current_limits_that_miss_the_goal_are_reported_as_missed() -> None:
    # The limits would do, the waits do not
    today = Setting(Limits(heap_mb=8, direct_mb=11, heap_timeout_millis=1))

    def storm(asked: Question, setting: Setting) -> Outcome:
        return needs(5, 100 if setting == today else 5)(asked, setting)

    advice = advise(question(clients(40, timeout=90), goal=GOAL, today=today), storm)
    told = {title: why for title, _, _, why in rows(advice)}
    assert "goal missed" in verdict(advice)[0]
    assert told["heap MB"] == "first guesses, largest list"


def test_an_advice_reports_the_strains_that_its_limits_hold_and_break_with() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        if asked.clients > 1.5 * QUESTION.clients:
            return Outcome(asked.clients, 0, None, 100, 100)
        return needs(5, 19)(asked, setting)

    told = " ".join(sure(advise(QUESTION, storm)))
    assert "Breaks with 2x clients (100 % late, 100 % refused)." in told
    assert "a broker 3x as slow" in told


def test_a_strain_that_breaks_with_a_single_seed_is_reported_once_as_breaking() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        slow = asked.times == QUESTION.times.scaled(3)
        return needs(*((1_000 if slow and asked.seed == 1 else 5,) * 2))(asked, setting)

    said = " ".join(sure(advise(QUESTION, storm)))
    holds, _, breaks = said.partition("Breaks with ")
    assert (holds.count("3x as slow"), breaks.count("3x as slow")) == (0, 1)


def test_a_storm_without_time_is_cut() -> None:
    with pytest.raises(OutOfTimeError):
        virtual_storms(seconds=0)(QUESTION, QUESTION.today)


def test_a_cut_search_reports_the_cut_beside_its_advice() -> None:
    advice = advise(QUESTION, CutAfter(12, needs(5, 19)))
    assert advice.met
    assert "before all was tried: --minutes gives it more" in " ".join(sure(advice))


def test_a_cut_search_is_not_sure_until_both_seeds_of_a_slow_broker_were_tried() -> None:
    advice = advise(QUESTION, CutAfter(10, needs(5, 19)))
    assert not advice.met
    assert "Not sure yet" in verdict(advice)[-1]


def slow_seed_fails(asked: Question, setting: Setting) -> Outcome:
    """Return the outcome of a storm that misses any goal with one seed of slow brokers."""
    fails = asked.times == QUESTION.times.scaled(3) and asked.seed == QUESTION.seed + 1
    return needs(*((10_000,) * 2 if fails else (5, 5)))(asked, setting)


def test_current_limits_are_luck_if_a_slow_broker_misses_the_goal_with_either_seed() -> None:
    advice = advise(
        question(goal=GOAL, today=Setting(Limits(heap_mb=40, direct_mb=40))), slow_seed_fails
    )
    assert "luck: a broker 3x as slow misses it" in verdict(advice)[0]


def test_limits_are_not_sure_if_a_slow_broker_misses_the_goal_with_either_seed() -> None:
    advice = advise(QUESTION, slow_seed_fails)
    assert not advice.met
    assert "not sure to meet the goal" in verdict(advice)[-1]
    told = " ".join(sure(advice))
    assert "5x as slow" not in told
    assert "Breaks with a broker 3x as slow" in told


def test_current_limits_that_bear_all_strains_are_not_traded_for_others() -> None:
    goal, today = Goal(65, accounted_mb=30), Setting(Limits(heap_mb=26, direct_mb=4))
    advice = advise(question(clients(40, timeout=90), goal=goal, today=today), needs(5, 4))
    assert advice.setting is not None
    assert (advice.setting.broker.heap_mb, advice.setting.broker.direct_mb) == (26, 4)
    assert advice.met


def test_limits_rise_until_a_slow_broker_meets_the_goal_with_both_seeds() -> None:
    def storm(asked: Question, setting: Setting) -> Outcome:
        slow = asked.times.accept > QUESTION.times.accept
        return needs(*((200 if asked.seed != QUESTION.seed else 50,) * 2 if slow else (5, 5)))(
            asked, setting
        )

    assert advise(QUESTION, storm).met


def test_no_advised_limit_is_below_the_edge() -> None:
    goal, today = Goal(65, accounted_mb=256), Setting(Limits(heap_mb=232, direct_mb=13))
    crowd = question(clients(20_000, "java-poll"), goal=goal, today=today)

    def storm(asked: Question, setting: Setting) -> Outcome:
        slow = asked.times.accept > crowd.times.accept
        grown = asked.clients > crowd.clients
        return needs(*((88, 40) if grown else (48, 20) if slow else (44, 10)))(asked, setting)

    advice = advise(crowd, storm)
    assert advice.setting is not None
    assert advice.edge is not None
    assert advice.setting.broker.heap_mb < 232
    assert all(knob.value(advice.edge) <= knob.value(advice.setting) for knob in KNOBS)


@pytest.mark.parametrize(("needed", "told"), [(600, "--accounted 1024MB meets"), (10**6, "")])
def test_a_goal_that_only_more_memory_meets_is_told_to_need_it(needed: int, told: str) -> None:
    advice = advise(question(goal=GOAL, today=TIGHT), needs(5, needed))
    assert advice.setting is None
    assert told in advice.obstacles[0]
    assert ("more memory" in advice.obstacles[0]) is bool(told)


def test_without_time_for_a_single_storm_an_advice_is_refused() -> None:
    with pytest.raises(UsageError, match=r"40 clients .* was cut after 120 s.*more --minutes"):
        advise(QUESTION, virtual_storms(seconds=0))


@pytest.mark.parametrize(("back", "storms", "word"), [(10.0, 1, "goal met"), (70.0, 3, "missed")])
def test_a_real_storm_that_misses_the_goal_is_repeated_with_larger_limits(
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
    # Raised limits have no outcome in virtual time.
    assert (found.outcome is None, not found.bears) == (storms > 1, storms > 1)


def test_a_real_storm_on_a_too_slow_machine_does_not_disprove_the_limits(tmp_path: Path) -> None:
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


def test_no_real_storm_exceeds_the_accounted_memory(tmp_path: Path) -> None:
    # Limits that take nearly all of the memory
    goal = Goal(back_within_seconds=65, accounted_mb=70)
    advice = advise(question(goal=goal, today=TIGHT), needs(8, 40))
    tried: list[int] = []

    def run(document: Document, options: RunOptions) -> Path:
        tried.append(limits_of(document.servers.broker).accounted_mb)
        return record_run(options.out / "r", [request()], [event("back", value=70.0)])

    confirm(advice, tmp_path, 400, run=run)
    assert tried == [52, 70]


def test_too_little_time_for_a_real_storm_is_reported(tmp_path: Path) -> None:
    advice = advise(QUESTION, needs(5, 19))
    found = " ".join(sure(confirm(advice, tmp_path, 30)))
    assert "No real storm: a storm may take 112 s, and 30 s were left" in found


@pytest.mark.parametrize(("seconds", "told"), [(30, []), (400, ["pulsar://10.0.0.1:6650: 40 cl"])])
def test_a_real_storm_on_a_cluster_is_announced_only_if_time_remains(
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
def test_refusals_by_the_lookup_limit_are_reported_with_its_configuration_key(text, key) -> None:
    more = {
        "broker": {"maxConcurrentLookupRequest": "7"},
        "proxy": {"maxConcurrentLookupRequests": "9"},
    }
    refused = Outcome(40, 0, None, 40, 33, reasons={f"TooManyRequests: {text}": 33})
    advice = advise(question(goal=GOAL, more=more), lambda _asked, _setting: refused)
    assert any(f"33 were refused for want of a place: {key}" in each for each in advice.obstacles)
