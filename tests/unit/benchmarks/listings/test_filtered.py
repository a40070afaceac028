"""The patterns that are measured keep what the expected answers say."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from benchmarks.listings import filtered as listings_filtered
from benchmarks.listings.client import listing_requests
from benchmarks.listings.corpus import listing_names
from benchmarks.listings.filtered import KINDS, PARSING, conclude
from benchmarks.listings.parsing_server import ParsingServer
from benchmarks.result import BenchOptions
from broker.patterns.pattern import RegexImplementation, compile_pattern
from loadgen.engine.frames import connect_frame, list_frame
from tests.support.peers.memory_transport import MemoryTransport


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.pattern])
def test_a_pattern_keeps_what_the_expected_answer_has(name: str) -> None:
    # Given
    kind, names = KINDS[name], [one.encode() for one in listing_names()]
    # When
    pattern = (kind.pattern or "").replace("{}", "42")
    mask = compile_pattern(pattern, RegexImplementation.RE2J).mask(names)
    # Then
    assert mask.tolist() == [kind.keeps(number) for number in range(len(names))]


def test_each_request_has_a_pattern_of_its_own() -> None:
    # Given
    requests = listing_requests("a/b", "x{}")
    # When
    commands = [pb.BaseCommand.FromString(next(requests)[8:]) for _ in range(3)]
    # Then
    patterns = [command.getTopicsOfNamespace.topics_pattern for command in commands]
    assert patterns == ["x0", "x1", "x2"]


def test_each_round_asks_with_patterns_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given
    asked: list[str] = []

    def measured(_: str, *arguments: str) -> dict[str, object]:
        asked.append(arguments[arguments.index("--first") + 1])
        return {"cpu_seconds": [1.0], "answers": 1, "seconds": 1.0}

    monkeypatch.setattr(listings_filtered, "run_json", measured)
    server, answers = ("127.0.0.1", 1, 2), dict.fromkeys(KINDS, b"answer")
    # When
    listings_filtered._rounds(server, server, answers, BenchOptions(rounds=2))
    # Then: the broker remembers what it was asked
    first, second = asked[: len(KINDS)], asked[len(KINDS) + 1 : -1]
    assert set(first).isdisjoint(second)
    assert next(listing_requests("a/b", "x{}", 7))[8:].endswith(b"x7")


async def test_the_yardstick_answers_each_request_once_it_is_whole() -> None:
    # Given
    server = ParsingServer(b"answer")
    transport = MemoryTransport(server, reads_at_once=True)
    server.connection_made(transport)
    data = connect_frame() + 2 * list_frame(1, "a/b")
    # When
    server.data_received(data[:-1])
    before = bytes(transport.received)
    server.data_received(data[-1:])
    # Then
    assert before.endswith(b"answer")
    assert bytes(transport.received) == before + b"answer"


def test_the_ratios_are_of_one_round() -> None:
    # Given
    rates = dict.fromkeys(("per_second", "per_core_second", "bytes_per_core_second"), 600.0)
    found = {name: dict(rates) for name in (*KINDS, PARSING)}
    found[PARSING]["per_core_second"] = 1_000.0
    # When
    figures = {figure.name: figure for figure in conclude([found]).figures}
    # Then
    ratio = figures["answers a core second: broker / only parsing"]
    assert (ratio.median, ratio.met) == (0.6, True)
    assert figures["first seen, keeps 1 % scattered"].met
