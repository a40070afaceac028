"""What the demo's runs came to: figures side by side, and checks of a sentence each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadgen.results.expectations import judge, parse_expectation
from loadgen.units import MB_BYTES, format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadgen.results.expectations import Judged
    from loadgen.results.results import Results
    from loadgen.results.verdict import Verdict

MEMORY_RATIO = 5.0
BROKER_OVER_IDLE_BYTES = 64 * MB_BYTES
# The size at which the demo was thought out: a thousand answers of a million bytes.
FULL_STORM_BYTES, FULL_PENDING_BYTES = 1_000_000_000, 300 * MB_BYTES
# Under this share of the full storm, memory that has nothing to do with answers hides the ratio.
JUDGED_SHARE = 0.5
_SERVERS, _KINDS = ("broker", "proxy"), ("heap", "direct")
_HELD = [(kind, server) for kind in _KINDS for server in _SERVERS]
_ROWS = {
    **{f"{kind}, {server}": f"{server}.{kind}.used.max <= limit" for kind, server in _HELD},
    **{f"answers not yet read, {server}": f"{server}.unread.max >= 0" for server in _SERVERS},
    **{f"resident over idle, {server}": f"{server}.resident.rise >= 0" for server in _SERVERS},
    **{f"CPU, {server}": f"{server}.cpu.seconds >= 0s" for server in _SERVERS},
}
"""Rows of memory in the table, and the expectations that measure them."""
_FINAL = {f"{kind}, {server}": f"{server}.{kind}.used.final == 0" for kind, server in _HELD}
# Of healthy clients beside the one that reads nothing, from its first list until it leaves.
_PHASE = """WITH beside AS (
  SELECT *, due >= :since AND due < :until AS there FROM requests
  WHERE "group" <> :peer AND operation = 'list'
)
SELECT coalesce(count_if(there), 0) AS due,
  coalesce(count_if(there AND outcome = 'answered' AND done < :until), 0) AS answered,
  coalesce(count_if(there AND outcome = 'refused'), 0) AS refused,
  count(DISTINCT CASE WHEN there AND outcome = 'refused' THEN client END) AS refused_clients,
  coalesce(count_if(there AND outcome NOT IN ('answered', 'refused')), 0) AS failed,
  min(CASE WHEN outcome = 'answered' AND done >= :since AND due >= :since THEN done END)
    - min(CASE WHEN there THEN due END) AS silence,
  coalesce(count_if(due >= :until), 0) AS due_after,
  coalesce(count_if(due >= :until AND outcome = 'answered'), 0) AS answered_after,
  count(DISTINCT client) AS clients, count(*) AS requests,
  coalesce(count_if(outcome = 'answered'), 0) AS answered_in_all,
  coalesce(count_if(outcome = 'refused'), 0) AS refused_in_all,
  max(CASE WHEN outcome = 'answered' THEN response_seconds END) AS slowest,
  (SELECT count(*) FROM events WHERE what = 'connection-lost' AND "group" <> :peer) AS lost
FROM beside"""


@dataclass(frozen=True)
class Check:
    """A sentence with figures.

    Attributes:
        neutral: True of a fault of Pulsar, which is reproduced, not praised.
        judged: False where a run is too small to judge by.
    """

    name: str
    passed: bool
    sentence: str
    neutral: bool = False
    judged: bool = True

    @property
    def mark(self) -> str:
        """How it came out, in one character."""
        if not self.passed:
            return "✗"
        return "–" if not self.judged else "!" if self.neutral else "✓"  # noqa: RUF001


@dataclass(frozen=True)
class Figures:
    """The figures of one run.

    Attributes:
        total: Counts of all requests, and their percentiles.
        reasons: Texts of refusals, and how many had each.
        answers: Least and most names and bytes of an answer; None without any.
        memory: By the rows of the table.
        shares: The peaks of what limiters held, by their limits.
        final: What limiters held at the end.
        phase: Of a run beside a client that reads nothing.
    """

    label: str
    directory: Path
    verdict: Verdict
    total: Mapping[str, Any]
    reasons: Mapping[str, int]
    answers: Mapping[str, int] | None
    memory: Mapping[str, Judged]
    shares: Mapping[str, float]
    final: Mapping[str, Judged]
    phase: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        """Requests that got neither an answer nor a refusal."""
        return int(self.total["requests"] - self.total["answered"] - self.total["refused"])

    @property
    def unread(self) -> float:
        """The most of answers that waited in one server."""
        found = (self.memory[f"answers not yet read, {server}"].value for server in _SERVERS)
        return max((value for value in found if value is not None), default=0.0)

    @property
    def over_idle(self) -> float | None:
        """How much broker and proxy grew together; None if nobody measured it."""
        found = [self.memory[f"resident over idle, {server}"].value for server in _SERVERS]
        known = [value for value in found if value is not None]
        return sum(known) if known else None

    @property
    def limited(self) -> dict[str, Judged]:
        """Memory that a limiter accounted for, by kind and server."""
        return {name: self.memory[name] for name in self.shares}

    def told(self) -> dict[str, Any]:
        """Return them as JSON has them."""
        return {
            "label": self.label,
            "verdict": self.verdict.word,
            **{name: count for name, count in self.total.items() if count != float("inf")},
            "reasons": dict(self.reasons),
            "memory": {name: each.value for name, each in self.memory.items()},
            "beside": dict(self.phase),
        }


def figures_of(label: str, results: Results, verdict: Verdict) -> Figures:
    """Return the figures of a run."""
    rows = results.query("reasons")
    (answers,) = results.sql(
        "SELECT min(topics) AS least_topics, max(topics) AS most_topics, min(bytes) AS least_bytes,"
        " max(bytes) AS most_bytes FROM measured WHERE outcome = 'answered' AND topics IS NOT NULL"
    )
    memory = judge([parse_expectation(text) for text in _ROWS.values()], results)
    held = dict(zip(_ROWS, memory, strict=True))
    limits = {f"{row['process']} {row['figure']}": row["last"] for row in results.query("servers")}
    final = judge([parse_expectation(text) for text in _FINAL.values()], results)
    return Figures(
        label,
        results.directory,
        verdict,
        _total(results),
        {row["reason"]: row["requests"] for row in rows if row["outcome"] == "refused"},
        answers if answers["least_topics"] is not None else None,
        held,
        {
            f"{kind}, {server}": (held[f"{kind}, {server}"].value or 0.0) / limit
            for kind, server in _HELD
            if (limit := limits.get(f"{server} {kind}.limit")) is not None and limit > 0
        },
        dict(zip(_FINAL, final, strict=True)),
    )


def _total(results: Results) -> Mapping[str, Any]:
    """Return the counts of who reads what it asks for; of the others nobody gets an answer."""
    silent = {each["name"] for each in _silent(results)}
    rows = results.query("by-group" if silent else "all")
    found = [row for row in rows if row["part"] not in silent]
    return found[0] if found else dict.fromkeys(("requests", "answered", "refused"), 0)


def _silent(results: Results) -> list[dict[str, Any]]:
    return [each for each in results.document["clients"] if each["read"]["never"]]


def stuck_phase(results: Results) -> dict[str, Any]:
    """Return how healthy clients fared before, beside and after one that reads nothing."""
    (peer,) = _silent(results)
    since, until = peer["after"], (peer.get("drop") or {}).get("at", float("inf"))
    (found,) = results.sql(_PHASE, peer=peer["name"], since=since, until=until)
    return found


def table_of(runs: Sequence[Figures]) -> tuple[list[str], list[list[str]]]:
    """Return the heads of a table, and its rows: a measure each, a cell for each run."""
    rows = [
        ["in all", *(format_count(run.total["requests"]) for run in runs)],
        ["answered", *(format_count(run.total["answered"]) for run in runs)],
        ["refused", *(format_count(run.total["refused"]) for run in runs)],
    ]
    rows += [
        [f"  {reason}", *(format_count(run.reasons.get(reason, 0)) for run in runs)]
        for reason in sorted({reason for run in runs for reason in run.reasons})
    ]
    rows.append(["neither", *(format_count(run.failed) for run in runs)])
    if any(run.phase for run in runs):
        rows += [
            [words, *(_of_phase(run.phase, key) for run in runs)] for words, key in _BESIDE.items()
        ]
    for what, write in (("topics", format_count), ("bytes", format_bytes)):
        rows.append([f"{what} of an answer", *(_span(run.answers, what, write) for run in runs)])
    for words, name in (("median (p50)", "p50"), ("p99", "p99"), ("slowest", "max")):
        rows.append([f"latency, {words}", *(_latency(run, name) for run in runs)])
    rows += [
        [name, *(_measured(run.memory[name]) for run in runs)]
        for name in _ROWS
        if any(run.memory[name].value is not None for run in runs)
    ]
    return ["", *(run.label for run in runs)], rows


_BESIDE = {
    "due while it reads nothing": "due",
    "  answered in that time": "answered",
    "  refused": "refused",
    "  time without any answer": "silence",
}
"""Rows of healthy clients beside one that reads nothing."""


def _of_phase(phase: Mapping[str, Any], key: str) -> str:
    return _silence(phase) if key == "silence" else format_count(phase[key])


def _measured(each: Judged) -> str:
    """Return a figure in words; a limiter that is off accounts for nothing."""
    return each.found.replace("not measured: ", "").replace("; its limit is not known", "")


def _span(answers: Mapping[str, int] | None, what: str, write: Any) -> str:  # noqa: ANN401
    if answers is None:
        return "no answers"
    least, most = (write(answers[f"{end}_{what}"]) for end in ("least", "most"))
    return least if least == most else f"{least} to {most}"


def _latency(run: Figures, name: str) -> str:
    value = run.total.get(name)
    if value is None or not run.total["answered"]:
        return "no answers"
    return "never" if value == float("inf") else format_seconds(value)


# -- storms ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StormSize:
    """The size of the demo's storm: clients, and the mean size of an answer."""

    clients: int
    answer_bytes: int

    @property
    def share_of_full(self) -> float:
        """All answers together as a share of the full demo's, at most 1."""
        return min(1.0, self.clients * self.answer_bytes / FULL_STORM_BYTES)

    @property
    def required_unread(self) -> int:
        """Bytes that must wait unread in the run without limits for it to show anything."""
        return round(FULL_PENDING_BYTES * self.share_of_full)


def demo_checks(runs: Mapping[str, Figures], size: StormSize) -> list[Check]:
    """Judge the runs ``off``, ``pulsar`` and ``floodgate``."""
    summaries, off, floodgate = list(runs.values()), runs["off"], runs["floodgate"]
    return [
        _effect_visible(off, size),
        *_refusals_reproduced(runs["pulsar"]),
        _every_client_heard(summaries),
        _none_refused(floodgate),
        _within_limits(summaries),
        _everything_returned(summaries),
        _memory_ratio(off, floodgate, size),
        _broker_over_idle(floodgate),
    ]


def own_checks(runs: Mapping[str, Figures]) -> list[Check]:
    """Judge whether the figures of a rehearsal can be relied on.

    Refusals and memory are reported, not judged: only the operator knows what is acceptable.
    """
    summaries = list(runs.values())
    limited = [_within_limits(summaries)] if any(run.limited for run in summaries) else []
    return [_every_client_heard(summaries), *limited, _everything_returned(summaries)]


def hidden_storm(off: Figures, size: StormSize) -> str | None:
    """Say why a rehearsal without limits shows too little to compare with; None if it does not."""
    if off.unread >= size.required_unread:
        return None
    return (
        f"This storm is too small to show what limits do: without limits at most "
        f"{format_bytes(off.unread)} of the {format_bytes(size.clients * size.answer_bytes)} of "
        "topic lists waited in one server. Use a larger --namespace (the kernel's socket buffers "
        "hold the beginning of each list), more --clients or a lower --read-rate."
    )


def _every_client_heard(runs: Sequence[Figures]) -> Check:
    passed = not any(run.failed for run in runs)
    figures = "; ".join(map(_heard, runs))
    claim = (
        "Every client got a topic list or a refusal, and no list was wrong"
        if passed
        else "Some clients got neither a topic list nor a refusal, or a wrong list"
    )
    return Check("every_client_heard", passed, f"{claim}: {figures}.")


def _heard(run: Figures) -> str:
    refused, failed = run.total["refused"], run.failed
    more = (f", {refused:,} refused" if refused else "") + (
        f", {failed:,} failed" if failed else ""
    )
    return f"“{run.label}” {plural(run.total['answered'], 'list')}{more}"


def _none_refused(run: Figures) -> Check:
    refused, clients = run.total["refused"], plural(run.total["requests"], "client")
    sentence = f"Floodgate refused none of {clients}."
    if refused:
        sentence = f"Floodgate refused {refused:,} of {clients}; it should refuse none."
    return Check("floodgate_refuses_none", not refused, sentence)


def _within_limits(runs: Sequence[Figures]) -> Check:
    parts = [(run, name, each) for run in runs for name, each in run.limited.items()]
    named = [
        f"{each.found} {' in the '.join(name.split(', '))} of “{run.label}”"
        for run, name, each in parts
    ]
    over = [text for text, (_, _, each) in zip(named, parts, strict=True) if not each.holds]
    if not parts:
        sentence = "No server counted any memory, so no limit was shown."
    elif over:
        sentence = f"Memory exceeded its limit: {', '.join(over)}."
    else:
        shares = [run.shares[name] for run, name, _ in parts]
        highest = named[shares.index(max(shares))]
        sentence = (
            "Heap and direct memory stayed within their limits in every limited run; the highest "
            f"peak was {highest}."
        )
    return Check("within_limits", bool(parts) and not over, sentence)


def _everything_returned(runs: Sequence[Figures]) -> Check:
    left = [
        f"{'unknown' if each.value is None else format_count(each.value)} bytes of "
        f"{' in the '.join(name.split(', '))} of “{run.label}”"
        for run in runs
        for name in run.limited
        if not (each := run.final[name]).holds
    ]
    sentence = "The limiters had released all memory by the end of every run."
    if left:
        sentence = f"The limiters had not released all memory at the end: {', '.join(left)}."
    return Check("everything_returned", not left, sentence)


def _effect_visible(off: Figures, size: StormSize) -> Check:
    passed = off.unread >= size.required_unread
    found = (
        f"without limits up to {format_bytes(off.unread)} of topic lists waited in one server for "
        "slow clients"
    )
    expected = format_bytes(size.required_unread)
    sentence = f"Reproduced: {found} (at least {expected} expected)."
    if not passed:
        sentence = (
            f"Not reproduced: {found}, less than the {expected} expected. Use larger namespaces "
            "(fewer --namespaces), more --clients or a lower --read-rate."
        )
    return Check("effect_visible", passed, sentence, neutral=True)


def _refusals_reproduced(pulsar: Figures) -> Iterator[Check]:
    """Yield what Pulsar's limits refused; nothing where they refused nobody."""
    refused = pulsar.total["refused"]
    if refused:
        clients = plural(pulsar.total["requests"], "client")
        sentence = f"Reproduced: with limits as in Pulsar {refused:,} of {clients} were refused."
        yield Check("pulsar_refuses", True, sentence, neutral=True)


def _memory_ratio(off: Figures, floodgate: Figures, size: StormSize) -> Check:
    most, least = off.over_idle, floodgate.over_idle
    if most is None or least is None:
        return Check("memory_ratio", False, "The servers' memory was not measured.")
    ratio = most / max(1, least)
    figures = (
        f"broker and proxy together grew by {format_bytes(most)} without limits and by "
        f"{format_bytes(least)} with Floodgate, a ratio of {ratio:.1f}"
    )
    if size.share_of_full < JUDGED_SHARE:
        sentence = f"Not judged, as the storm is too small for it: {figures}."
        return Check("memory_ratio", True, sentence, judged=False)
    passed = ratio >= MEMORY_RATIO
    claim = "Floodgate saves memory" if passed else "Floodgate saves too little memory"
    sentence = f"{claim}: {figures} (at least {MEMORY_RATIO:g} expected)."
    return Check("memory_ratio", passed, sentence)


def _broker_over_idle(run: Figures) -> Check:
    over = run.memory["resident over idle, broker"].value
    if over is None:
        return Check("broker_over_idle", False, "The broker's memory was not measured.")
    passed = over <= BROKER_OVER_IDLE_BYTES
    sentence = (
        f"Floodgate's broker alone grew by {format_bytes(over)}"
        f"{'' if passed else ', which is too much'} "
        f"(at most {format_bytes(BROKER_OVER_IDLE_BYTES)} expected)."
    )
    return Check("broker_over_idle", passed, sentence)


# -- one client that reads nothing ----------------------------------------------------------------


def stuck_checks(runs: Mapping[str, Figures]) -> list[Check]:
    """Judge the runs ``stuck-pulsar`` and ``stuck-floodgate``."""
    pulsar, floodgate = runs["stuck-pulsar"].phase, runs["stuck-floodgate"].phase
    starved = (
        bool(pulsar["due"])
        and not pulsar["answered"]
        and not pulsar["failed"]
        and pulsar["refused_clients"] == pulsar["clients"]
    )
    harmless = (
        bool(floodgate["due"])
        and floodgate["answered_in_all"] == floodgate["requests"]
        and not floodgate["lost"]
    )
    slowest = floodgate["slowest"]
    return [
        Check(
            "stuck_starves_pulsar",
            starved,
            f"{'Reproduced' if starved else 'Not reproduced'}: as in Pulsar, one client that reads "
            f"nothing blocks all others. Of {plural(pulsar['due'], 'listing')} due while it was "
            f"connected, {pulsar['answered']:,} were answered in that time and "
            f"{pulsar['refused']:,} refused, to {pulsar['refused_clients']:,} of "
            f"{plural(pulsar['clients'], 'client')}; the time without any answer was "
            f"{_silence(pulsar)}.",
            neutral=True,
        ),
        Check(
            "stuck_leaves_pulsar",
            bool(pulsar["due_after"]) and pulsar["answered_after"] == pulsar["due_after"],
            f"After it had disconnected, {pulsar['answered_after']:,} of "
            f"{plural(pulsar['due_after'], 'listing')} were answered.",
        ),
        Check(
            "stuck_harms_nobody_in_floodgate",
            harmless,
            f"Beside the same client Floodgate answered {floodgate['answered_in_all']:,} of "
            f"{plural(floodgate['requests'], 'listing')} and refused "
            f"{floodgate['refused_in_all']:,}; {plural(floodgate['lost'], 'other connection')} "
            f"lost; slowest answer: {'no answer' if slowest is None else format_seconds(slowest)}.",
        ),
    ]


def _silence(phase: Mapping[str, Any]) -> str:
    seconds = phase["silence"]
    return "without end" if seconds is None else format_seconds(seconds)
