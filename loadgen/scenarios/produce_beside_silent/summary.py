"""Sums up a run beside silent clients: what became of them, and a verdict on the others."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loadgen.errors import ExitCode, LoadgenError
from loadgen.results.checks import CheckResult
from loadgen.stuck_peers.summary import (
    PEERS_NAME,
    PeerEnd,
    peer_records,
    phase_between,
    stuck_document,
)
from loadgen.units import format_seconds, plural
from server.configuration.flow import PAUSE_KEY
from server.server_info import SEND_BUFFER_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.clients.records import TaskReport
    from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
    from loadgen.stuck_peers.summary import PeerRecord

HELD_UP_SECONDS = 1.0
"""A producer counts as held up once the server has taken nothing for so long, up to the end."""
SLOWER = 10.0
"""Beyond so many times the 99th percentile without silent clients producers count as slowed,"""
NOTICED_SECONDS = 0.1
"""if it is more than this, too, and this machine was not so late itself."""


def silent_document(scenario: SilentScenario, reports: Sequence[TaskReport]) -> dict[str, Any]:
    """Describe the silent clients and how the producers fared before, with and after them.

    ``stuck`` has the figures that any scenario with such peers has, ``silent`` what is its own:
    ``beside`` are the messages by which the verdict judges, those due once every silent producer
    was held up, or had been closed; where one never was, all that were due beside them.
    """
    figures = stuck_document(scenario.silent_messages, reports)
    producers = [each for each in peer_records(reports) if each.peer < scenario.silent_producers]
    held_up = [each for each in producers if is_held_up(each)]
    closed = [each for each in producers if each.end == PeerEnd.CLOSED]
    begin, end = figures["asked_seconds"], figures["gone_seconds"]
    if len(held_up) + len(closed) == len(producers) and begin is not None:
        moments = [each.held_up_seconds for each in held_up]
        moments += [each.gone_seconds for each in closed]
        begin = max([begin, *(moment for moment in moments if moment is not None)])
    silent = {
        "producers": len(producers),
        "consumers": scenario.silent_consumers,
        "messages_wanted": len(producers) * scenario.silent_messages,
        "messages_sent": sum(each.sent for each in producers),
        "producers_held_up": len(held_up),
        "producers_closed": len(closed),
        "beside": phase_between(reports, begin, end),
        "late_seconds": max(report.facts.client_start_error_seconds for report in reports),
    }
    words, harmed = verdict(figures["phases"], silent)
    return {"stuck": figures, "silent": {**silent, "verdict": words, "harmed": harmed}}


def is_held_up(producer: PeerRecord) -> bool:
    """Return whether a silent producer stood still when its time was over."""
    held_up, gone = producer.held_up_seconds, producer.gone_seconds
    if held_up is None or gone is None or producer.end != PeerEnd.LEFT:
        return False
    return gone - held_up >= HELD_UP_SECONDS


def verdict(phases: Mapping[str, Any], silent: Mapping[str, Any]) -> tuple[str, bool]:
    """Say in a sentence whether silent clients harmed the producers beside them, and if so."""
    before, during, beside = phases["before"], phases["stuck"], silent["beside"]
    lost = during["requests"] - during["answered"]
    if lost:
        text = f"{lost:,} of {plural(during['requests'], 'message')} got no receipt"
        return f"Silent clients harmed the producers beside them: {text}; {_became(silent)}.", True
    if not beside["requests"] or not before["requests"]:
        return f"Nothing was due before or beside the silent clients; {_became(silent)}.", False
    was, now = (phase["latency_seconds"]["p99"] for phase in (before, beside))
    if was is None:
        return f"There were messages without receipt before; {_became(silent)}.", False
    words = f"p99 {format_seconds(was)} before, {format_seconds(now)} beside them"
    if now <= max(SLOWER * was, NOTICED_SECONDS):
        words = f"every message beside silent clients got its receipt, {words}"
        return f"Nobody was harmed: {words}; {_became(silent)}.", False
    late = silent["late_seconds"]
    if late > NOTICED_SECONDS:
        words += f", and this machine sent messages up to {format_seconds(late)} late"
        return f"Not to be judged: {words}; {_became(silent)}.", False
    return f"Silent clients slowed the producers beside them: {words}; {_became(silent)}.", True


def _became(silent: Mapping[str, Any]) -> str:
    """Say what became of the silent producers."""
    if not silent["producers"]:
        return "there were no silent producers"
    return (
        f"of {plural(silent['producers'], 'silent producer')} {silent['producers_held_up']} held "
        f"up and {silent['producers_closed']} closed, after {silent['messages_sent']:,} of "
        f"{plural(silent['messages_wanted'], 'message')}"
    )


def judged(summary: Mapping[str, Any]) -> list[CheckResult]:
    """Judge a run by its summary: its silent clients began, and a broker that pauses paused them.

    Of a broker that does not say that it pauses nothing is expected; the verdict is told.
    """
    figures, silent = summary["stuck"], summary["silent"]
    begun = figures["peers"] - figures["unreachable"]
    began = f"{begun} of {plural(figures['peers'], 'silent client')} began."
    found = [CheckResult("silent clients", not figures["unreachable"], began)]
    broker = summary.get("servers", {}).get("broker") or {"settings": {}}
    if broker["settings"].get(PAUSE_KEY) != "true":
        return [*found, CheckResult("beside silent clients", True, silent["verdict"], judged=False)]
    harmed = f"{silent['verdict']} That should not be, as the broker has {PAUSE_KEY}=true."
    free = silent["producers"] - silent["producers_held_up"] - silent["producers_closed"]
    went_on = (
        f"{free} of {plural(silent['producers'], 'silent producer')} could go on to the end, "
        f"though the broker has {PAUSE_KEY}=true. Where kernel buffers took the receipts, use more "
        f"--silent-messages, or start the broker with {SEND_BUFFER_KEY}=65536."
    )
    held_up = f"The broker let none of {plural(silent['producers'], 'silent producer')} go on."
    return [
        *found,
        CheckResult(
            "beside silent clients",
            not silent["harmed"],
            harmed if silent["harmed"] else silent["verdict"],
        ),
        CheckResult("silent producers", not free, went_on if free else held_up),
    ]


def checks_document(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a summary says of silent clients, with its checks."""
    checks = [asdict(check) for check in judged(summary)]
    return {"silent": {**summary["silent"], "checks": checks}}


def require_expected(summary: Mapping[str, Any], directory: Path) -> None:
    """Refuse a run that shows nothing, or a broker that pauses and yet let silent clients go on.

    Raises:
        LoadgenError: A silent client could not begin; or the broker says that it pauses clients
            that do not read, and a silent producer was not held up, or somebody was harmed.
    """
    figures = summary["stuck"]
    if figures["unreachable"]:
        raise LoadgenError(
            f"{figures['unreachable']} of {figures['peers']} silent clients got no producer or "
            f"consumer (see {PEERS_NAME} in {directory}): the run shows less than it says"
        )
    for check in judged(summary):
        if not check.passed:
            raise LoadgenError(check.sentence, ExitCode.THRESHOLDS)
