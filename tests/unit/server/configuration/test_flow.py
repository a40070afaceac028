"""Flow control's keys: shipped, proposed and Floodgate's own, under either profile."""

from importlib import resources

import pytest

from limiter.flow.flow_control import CooldownRules, FlowRules
from limiter.flow.outbound_buffer import WriteBufferMarks
from limiter.slow_peers.peer import SlowPeerRules
from server.configuration.flow import FlowConfig
from server.configuration.known_keys import CheckedKeys, KnownKeys

MEGABYTE = 1024 * 1024
HIGH, LOW = "pulsarChannelWriteBufferHighWaterMark", "pulsarChannelWriteBufferLowWaterMark"
PAUSE = "pulsarChannelPauseReceivingRequestsIfUnwritable"
COOLDOWN = "pulsarChannelPauseReceivingCooldownMs"
PERMITS = "pulsarChannelPauseReceivingCooldownRateLimitPermits"
PERIOD = "pulsarChannelPauseReceivingCooldownRateLimitPeriodMs"
RATE = "pulsarChannelRateLimitingRateAfterResumeFromUnreadable"
SECONDS = "pulsarChannelRateLimitingSecondsAfterResumeFromUnreadable"
KEEP_ALIVE = "keepAliveIntervalSeconds"
GRACE, UNWRITABLE = "floodgateSlowPeerGraceMs", "floodgateMaxUnwritableSeconds"
DRAIN_RATE = "floodgateMinDrainRateBytesPerSecond"
RESPONSES = "floodgateMaxInFlightResponseBytesPerConnection"
PENDING = "floodgateMaxPendingOutboundMB"
OWN = (GRACE, UNWRITABLE, DRAIN_RATE, RESPONSES, PENDING)
ALL = (HIGH, LOW, PAUSE, COOLDOWN, PERMITS, PERIOD, RATE, SECONDS, KEEP_ALIVE, *OWN)

PROFILES = pytest.mark.parametrize("pulsar_compatible", [False, True], ids=["floodgate", "pulsar"])
ROLES = pytest.mark.parametrize("role", ["broker", "proxy"])


def read_keys(
    keys: dict[str, str], role: str = "broker", *, pulsar_compatible: bool = False
) -> CheckedKeys:
    text = resources.files(role).joinpath(f"{role}_keys.json").read_text()
    profile = {"floodgateProfile": "pulsar"} if pulsar_compatible else {}
    return KnownKeys.from_json(text).check({**keys, **profile})


def configured(
    keys: dict[str, str], role: str = "broker", *, pulsar_compatible: bool = False
) -> FlowConfig:
    """Read valid keys that cause no warnings."""
    checked = read_keys(keys, role, pulsar_compatible=pulsar_compatible)
    config = FlowConfig.of(checked)
    assert (checked.problems, checked.finish()) == ([], ())
    return config


# -- defaults -------------------------------------------------------------------------------------


@ROLES
def test_profile_floodgate_pauses_reading_and_has_every_bound_but_the_drain_rate(role: str) -> None:
    found = configured({}, role)
    assert found.rules == FlowRules(
        WriteBufferMarks(65_536, 32_768),
        pause_if_unwritable=True,
        cooldown=CooldownRules(5, 0.010, 5.0),
        max_response_bytes=MEGABYTE,
    )
    assert found.slow_peers == SlowPeerRules(3.0, 60, 0)
    assert (found.max_pending_outbound_bytes, found.keep_alive_seconds) == (256 * MEGABYTE, 30)


@ROLES
def test_profile_pulsar_does_not_pause_reading_and_has_no_bounds(role: str) -> None:
    found = configured({}, role, pulsar_compatible=True)
    assert found.rules == FlowRules(
        WriteBufferMarks(65_536, 32_768),
        pause_if_unwritable=False,
        cooldown=CooldownRules(5, 0.010, 5.0),
        max_response_bytes=0,
    )
    assert found.slow_peers == SlowPeerRules(0, 0, 0)
    assert (found.max_pending_outbound_bytes, found.keep_alive_seconds) == (0, 30)


# -- explicit values ------------------------------------------------------------------------------


@ROLES
@PROFILES
def test_each_key_applies_under_either_profile(role: str, pulsar_compatible: bool) -> None:
    config = configured(
        {
            HIGH: "1000",
            LOW: "500",
            PAUSE: "true",
            COOLDOWN: "7000",
            PERMITS: "8",
            PERIOD: "20",
            KEEP_ALIVE: "9",
            GRACE: "1500",
            UNWRITABLE: "11",
            DRAIN_RATE: "12",
            RESPONSES: "13",
            PENDING: "14",
        },
        role,
        pulsar_compatible=pulsar_compatible,
    )
    assert config.rules == FlowRules(
        WriteBufferMarks(1_000, 500), True, CooldownRules(8, 0.020, 7.0), 13
    )
    assert config.slow_peers == SlowPeerRules(1.5, 11, 12)
    assert (config.max_pending_outbound_bytes, config.keep_alive_seconds) == (14 * MEGABYTE, 9)


@PROFILES
@pytest.mark.parametrize(("text", "pauses"), [("true", True), ("false", False)])
def test_an_explicit_pausing_key_overrides_the_profile(text, pauses, pulsar_compatible) -> None:
    assert (
        configured({PAUSE: text}, pulsar_compatible=pulsar_compatible).rules.pause_if_unwritable
        is pauses
    )


@pytest.mark.parametrize("key", OWN)
def test_each_bound_can_be_switched_off(key: str) -> None:
    config = configured({key: "0"})
    assert {
        GRACE: config.slow_peers.grace_seconds,
        UNWRITABLE: config.slow_peers.max_unwritable_seconds,
        DRAIN_RATE: config.slow_peers.min_drain_bytes_per_second,
        RESPONSES: config.rules.max_response_bytes,
        PENDING: config.max_pending_outbound_bytes,
    }[key] == 0


@PROFILES
@pytest.mark.parametrize("text", ["", "null"])
@pytest.mark.parametrize("key", ALL)
def test_an_empty_value_means_the_default(key: str, text: str, pulsar_compatible: bool) -> None:
    with_key = configured({key: text}, pulsar_compatible=pulsar_compatible)
    assert with_key == configured({}, pulsar_compatible=pulsar_compatible)


@pytest.mark.parametrize("key", OWN)
def test_a_negative_bound_is_refused(key: str) -> None:
    (problem,) = read_keys({key: "-1"}).problems
    assert problem.startswith(f"{key}='-1': expected a whole number")


@pytest.mark.parametrize("text", ["0", "-1"])
def test_a_cooldown_of_zero_or_less_does_not_limit(text: str) -> None:
    assert not configured({COOLDOWN: text}).rules.cooldown.limits


@ROLES
@PROFILES
def test_every_flow_control_key_is_read(role: str, pulsar_compatible: bool) -> None:
    # Given values that differ from every default
    checked = read_keys(
        {**dict.fromkeys(ALL, "77"), PAUSE: "true"}, role, pulsar_compatible=pulsar_compatible
    )
    FlowConfig.of(checked)
    assert checked.without_effect() == ()


# -- the marks ------------------------------------------------------------------------------------


def test_a_low_mark_above_the_high_mark_is_refused() -> None:
    checked = read_keys({HIGH: "1000", LOW: "1001"})
    FlowConfig.of(checked)
    assert checked.problems == [
        f"{LOW}=1001 is above {HIGH}=1000: the low mark must not be above the high mark"
    ]


def test_a_high_mark_below_the_default_low_mark_is_refused() -> None:
    checked = read_keys({HIGH: "32767"}, pulsar_compatible=True)
    FlowConfig.of(checked)
    (problem,) = checked.problems
    assert problem.startswith(f"{LOW}=32768 is above {HIGH}=32767")


def test_the_high_and_the_low_mark_may_be_equal() -> None:
    assert configured({HIGH: "1000", LOW: "1000"}).rules.marks == WriteBufferMarks(1_000, 1_000)


def test_a_low_mark_of_zero_is_refused_where_reading_pauses() -> None:
    checked = read_keys({LOW: "0"})
    FlowConfig.of(checked)
    (problem,) = checked.problems
    assert LOW in problem


@pytest.mark.parametrize(("pause", "pulsar_compatible"), [("false", False), ("true", True)])
def test_a_low_mark_of_zero_is_accepted_without_pausing_and_under_profile_pulsar(
    pause: str, pulsar_compatible: bool
) -> None:
    config = configured({LOW: "0", PAUSE: pause}, pulsar_compatible=pulsar_compatible)
    assert config.rules.marks == WriteBufferMarks(65_536, 0)


@pytest.mark.parametrize(
    ("text", "size"), [("1m", MEGABYTE), ("1M", MEGABYTE), ("128k", 131_072), ("128Kb", 131_072)]
)
def test_marks_with_size_suffixes_are_read_with_a_warning(text: str, size: int) -> None:
    checked = read_keys({HIGH: text, LOW: "64k"})
    config = FlowConfig.of(checked)
    assert config.rules.marks == WriteBufferMarks(size, 65_536)
    assert checked.problems == []
    assert [(notice.level, notice.sentence.split()[0]) for notice in checked.finish()] == [
        ("warning", f"{HIGH}={text}"),
        ("warning", f"{LOW}=64k"),
    ]


@pytest.mark.parametrize("text", ["64kib", "64 k", "k", "1g", "-1k", "-1"])
def test_a_mark_that_is_not_a_size_is_refused(text: str) -> None:
    (problem,) = read_keys({HIGH: text}).problems
    assert problem.startswith(f"{HIGH}={text!r}")


# -- two kinds of cooldown ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "rules"),
    [
        ({RATE: "200", SECONDS: "3"}, CooldownRules(200, 1.0, 3)),
        ({RATE: "200"}, CooldownRules(200, 1.0, 5)),
        ({SECONDS: "3"}, CooldownRules(1_000, 1.0, 3)),
        ({SECONDS: "0"}, CooldownRules(1_000, 1.0, 0)),
    ],
)
def test_the_proposals_keys_alone_set_a_rate_per_second_and_a_window(keys, rules) -> None:
    assert configured(keys).rules.cooldown == rules


@pytest.mark.parametrize("shipped", [COOLDOWN, PERMITS, PERIOD])
@pytest.mark.parametrize("proposed", [(RATE,), (SECONDS,), (RATE, SECONDS)])
def test_the_shipped_cooldown_keys_override_the_proposed_keys_with_a_warning(
    shipped, proposed
) -> None:
    checked = read_keys({shipped: "77", **dict.fromkeys(proposed, "78")})
    config = FlowConfig.of(checked)
    assert (
        config.rules.cooldown
        == {
            COOLDOWN: CooldownRules(5, 0.010, 0.077),
            PERMITS: CooldownRules(77, 0.010, 5.0),
            PERIOD: CooldownRules(5, 0.077, 5.0),
        }[shipped]
    )
    (notice,) = checked.finish()
    assert notice.level == "warning"
    assert notice.sentence.startswith(f"{', '.join(proposed)} without effect: {shipped} says")


def test_the_warning_names_all_shipped_and_proposed_cooldown_keys() -> None:
    checked = read_keys(
        dict.fromkeys((COOLDOWN, PERMITS, PERIOD, RATE, SECONDS), "77"), pulsar_compatible=True
    )
    FlowConfig.of(checked)
    (notice,) = checked.finish()
    assert all(key in notice.sentence for key in (COOLDOWN, PERMITS, PERIOD, RATE, SECONDS))
