"""Writes a real server's answers to a case as a recorded exchange, for replay without a server."""

from dataclasses import replace
from typing import Any

from google.protobuf import text_format

from proto import PulsarApi_pb2 as pb
from tests.differential.cases import HASH_TOKEN, NAMESPACE_TOKEN, NO_HASH, Case
from tests.differential.generator import preparation
from tests.differential.player import Played
from tests.support.golden.exchange import Answer, Rest, Silence


def recorded(case: Case, played: Played, namespace: str, name: str) -> dict[str, Any]:
    """Return a line of a recording.

    Args:
        case: The played case.
        played: The real server's answers.
        namespace: Local name of the played namespace.
        name: ``group/name`` of the line; group ``connect`` if the case sends CONNECT itself.
    """
    rows: list[list[str]] = [_rest_row(call) for call in preparation(case.world)]
    last_hash = NO_HASH
    for step, answers in zip(case.steps, played.answers, strict=False):
        if isinstance(step.does, Rest):
            rows.append(_rest_row(step.does))
        elif step.does.command is None:
            rows.append(["C", "bytes", step.does.raw.hex()])
        else:
            rows.append(["C", _one_line(step.does.command).replace(HASH_TOKEN, last_hash)])
        rows += [["S", _answer_text(answer)] for answer in answers or (Silence.NOTHING,)]
        last_hash = _newest_hash(answers) or last_hash
    hex_token, hex_name = NAMESPACE_TOKEN.encode().hex(), namespace.encode().hex()
    exchange = [
        [text.replace(NAMESPACE_TOKEN, namespace).replace(hex_token, hex_name) for text in row]
        for row in rows
    ]
    return {"case": name, "exchange": exchange}


def without_users(case: Case) -> Case:
    """Return the case with a private namespace and no topic users, as recordings require."""
    return replace(case, shared=None, world=replace(case.world, non_persistent=()))


def _rest_row(call: Rest) -> list[str]:
    request = f"{call.method} {call.path}" + (f" {call.body}" if call.body else "")
    return ["REST", request, str(call.status)]


def _answer_text(answer: Answer) -> str:
    return answer.value if isinstance(answer, Silence) else _one_line(answer)


def _one_line(command: pb.BaseCommand) -> str:
    return str(text_format.MessageToString(command, as_one_line=True, as_utf8=True))


def _newest_hash(answers: tuple[Answer, ...]) -> str:
    for answer in reversed(answers):
        if isinstance(answer, pb.BaseCommand):
            told = answer.getTopicsOfNamespaceResponse.topics_hash
            return told or answer.watchTopicListSuccess.topics_hash
    return ""
