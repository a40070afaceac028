"""The benchmarks of flow control compare like with like and notice what was not answered."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, cast

import pytest

import proto.PulsarApi_pb2 as pb
from benchmarks.connections import flow, flow_server, gate
from benchmarks.connections.flow import BARE, JUDGED, OURS, PAIRS, Round, conclude, valid
from benchmarks.listings import client as listing_client
from benchmarks.listings.bare_server import BareServer, server_context
from benchmarks.listings.corpus import listing_answer
from benchmarks.processes import BenchError
from tests.support.processes.cluster import until

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.result import Figure
    from server.connection.command_table import Handler
    from server.connection.served_connection import ServedConnection

PLAIN_1MB, TLS_1MB = PAIRS[:2]


def a_round(per_second: float = 1000.0, ratio: float = 0.8, core_share: float = 0.95) -> Round:
    rates = {BARE: per_second, OURS: ratio * per_second}
    return {
        pair.label: {
            side: {
                "per_second": rate,
                "cpu_millis": 1000 * core_share / rate,
                "core_share": core_share,
                "client_core_share": 0.5,
            }
            for side, rate in rates.items()
        }
        for pair in PAIRS
    }


def figure(rounds: list[Round], name: str) -> Figure:
    return next(one for one in conclude(rounds, len(rounds)).figures if one.name == name)


# -- large answers --------------------------------------------------------------------------------


def test_a_ratio_compares_what_was_measured_in_the_same_round() -> None:
    # Given a machine that was twice as fast in the second round
    rounds = [a_round(1000.0), a_round(2000.0)]
    # Then
    assert list(figure(rounds, "1 MB: connection / bare").values) == [0.8, 0.8]
    processor_time = figure(rounds, "4 MB: CPU an answer, bare / connection")
    assert processor_time.values == pytest.approx([0.8, 0.8])


def test_only_plain_pairs_have_a_goal() -> None:
    judged = [one for one in conclude([a_round()], 1).figures if one.goal is not None]
    assert [one.name for one in judged] == ["1 MB: connection / bare", "4 MB: connection / bare"]
    assert all(one.met for one in judged)
    assert figure([a_round(ratio=0.64)], "1 MB: connection / bare").met is False


@pytest.mark.parametrize("side", [BARE, OURS])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.label)
def test_a_round_counts_when_both_servers_of_the_plain_pairs_had_their_core(
    side: str, pair: flow.Pair
) -> None:
    # Given
    bad = a_round()
    bad[pair.label][side]["core_share"] = 0.89
    # Then
    assert valid(a_round())
    assert valid(bad) is (pair not in JUDGED)


def test_rounds_that_do_not_count_are_kept_and_told_of() -> None:
    # When
    result = conclude([a_round(), a_round(core_share=0.5, ratio=0.1)], 2)
    # Then
    ratios = next(one for one in result.figures if one.name == "1 MB: connection / bare")
    assert list(ratios.values) == [0.8]
    assert result.remarks[0].startswith("Only 1 of 2 rounds were valid (2 wanted)")
    assert [one["valid"] for one in result.rounds] == [True, False]


def test_figures_of_no_valid_round_say_that_they_are_not_valid() -> None:
    result = conclude([a_round(core_share=0.5)], 1)
    assert result.remarks[0].endswith("The figures are of all rounds and not valid.")


def test_blocks_are_the_answer_cut_as_a_listings() -> None:
    answer = listing_answer(2_000)
    blocks = flow_server.blocks_of(answer)
    assert b"".join(blocks) == answer
    assert {len(block) for block in blocks[:-1]} == {65_536}


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("side", [BARE, OURS])
async def test_both_servers_send_whole_answers_plain_and_with_tls(
    side: str, encrypted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    answer = listing_answer(2_000)
    authority, certificate = flow._certificate(tmp_path)
    server_tls = server_context(str(certificate)) if encrypted else None
    client_tls = ssl.create_default_context(cafile=authority) if encrypted else None
    parts = flow_server.Parts(answer, server_tls)
    served = BareServer(answer) if side == BARE else flow_server.FlowServer(parts)
    lost, ended = served.connection_lost, asyncio.Event()
    monkeypatch.setattr(served, "connection_lost", lambda error: (lost(error), ended.set()))
    own_tls = server_tls if side == BARE else None
    server = await asyncio.get_running_loop().create_server(
        lambda: served, "127.0.0.1", 0, ssl=own_tls
    )
    address = server.sockets[0].getsockname()
    load = listing_client.Load(len(answer))
    # When
    transport, _ = await asyncio.get_running_loop().create_connection(
        lambda: listing_client.ListingClient(load), *address, ssl=client_tls
    )
    await until(lambda: load.answers >= 3 or load.failed.done(), "three answers")
    # Then
    assert not load.failed.done()
    transport.abort()
    server.close()
    with pytest.raises(RuntimeError):
        await load.failed
    await ended.wait()


# -- small frames ---------------------------------------------------------------------------------


def test_every_frame_is_answered_on_every_side() -> None:
    found = asyncio.run(gate.measure(1))
    assert {kind: set(sides) for kind, sides in found.items()} == {
        kind: set(names) for kind, names in gate.SIDES.items()
    }
    assert all(micros > 0 for sides in found.values() for micros in sides.values())


async def test_a_side_that_leaves_frames_unanswered_is_no_measurement() -> None:
    # Given
    side = gate._side(gate.ON)
    cast("ServedConnection", side.protocol).take_no_more()
    # When
    await side.chunks(gate.LOOKUP * 3, 1)
    # Then
    with pytest.raises(BenchError, match="pausing on answered 0 of 90 bytes"):
        gate._check_answers({gate.ON: side}, 90)


async def test_a_paused_side_has_parked_every_lookup_of_a_chunk_before_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given
    side = gate._side(gate.PARKED)
    handlers = cast("ServedConnection", side.protocol)._handlers
    parked: list[int] = []

    def note(cnx: ServedConnection, command: pb.BaseCommand) -> None:
        parked.append(len(cnx.intake))
        gate.answer(cnx, command)

    monkeypatch.setitem(cast("dict[int, Handler]", handlers), pb.BaseCommand.LOOKUP, note)
    # When
    await side.chunks(gate.LOOKUP * 3, 1)
    # Then
    assert parked == [2, 1, 0]


async def test_the_cooldown_counts_lookups_and_stops_none() -> None:
    # Given
    side = gate._side(gate.COOLING)
    limiter = cast("ServedConnection", side.protocol)._flow._limiter  # type: ignore[union-attr]
    # When
    await side.chunks(gate.LOOKUP * 3, 1)
    # Then
    assert limiter.remaining == gate.MANY - 3
    assert side.transport.taken_bytes == 3 * len(gate.FOUND)


def test_times_are_compared_within_a_round() -> None:
    # Given a machine that was half as fast in the second round
    one = {kind: dict.fromkeys(names, 10.0) for kind, names in gate.SIDES.items()}
    one["PING"][gate.ON] = 11.0
    other = {kind: {name: 2 * time for name, time in one[kind].items()} for kind in one}
    # When
    figures = {figure.name: figure.values for figure in gate.conclude([one, other])}
    # Then
    assert list(figures["PING: on / off"]) == [1.1, 1.1]
    assert "PING: parked / on" not in figures
