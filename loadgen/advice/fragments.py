"""Fragments of broker.conf and proxy.conf, ready to paste: the keys alone, a reason each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadgen.advice.advice import Advice
    from loadgen.advice.limits import Server

_WIDTH = 96
_NO_FLOW_KEYS = (
    "A Pulsar proxy has no pulsarChannel* keys: its water marks are Netty's, 65536 and 32768."
)


def fragment(advice: Advice, server: Server) -> str:
    """Return the part of one server's configuration file that was advised."""
    goal, profile = advice.request.goal, advice.request.profile
    lines = [*_comment(f"loadgen advise --profile {profile}: {goal}.")]
    if server == "proxy" and profile == "pulsar":
        lines += _comment(_NO_FLOW_KEYS)
    for each in advice.findings:
        if each.server == server:
            costs = f" Costs: {each.costs}." if each.costs != "none" else ""
            lines += ["", *_comment(f"{each.binds}.{costs}"), f"{each.key}={each.value}"]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    text = text[:1].upper() + text[1:]
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH, break_long_words=False)]
