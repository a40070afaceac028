"""Samples of an event loop's lag and of its garbage collections, taken inside the loop."""

from __future__ import annotations

import asyncio
import gc
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERVAL_SECONDS = 0.005


class LagSampler:
    """Samples the lag of the running event loop every 5 ms.

    The mutable state is the samples since the last :meth:`take`.
    """

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._pauses: list[float] = []
        self._collection_began = 0.0
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Start sampling the lag of the event loop."""
        gc.callbacks.append(self._collecting)
        self._arm()

    def take(self) -> dict[str, float]:
        """Return figures of the samples since the last call, in milliseconds."""
        lags, pauses = sorted(self._lags), self._pauses
        self._lags, self._pauses = [], []
        return {
            "samples": len(lags),
            "worst_ms": 1000 * max(lags, default=0.0),
            "p99_ms": 1000 * lags[int(0.99 * len(lags))] if lags else 0.0,
            "over_50_ms": sum(lag > 0.05 for lag in lags),
            "worst_collection_ms": 1000 * max(pauses, default=0.0),
        }

    def _arm(self) -> None:
        self._loop.call_later(INTERVAL_SECONDS, self._sample, perf_counter() + INTERVAL_SECONDS)

    def _sample(self, due: float) -> None:
        self._lags.append(max(0.0, perf_counter() - due))
        self._arm()

    def _collecting(self, phase: str, _: Mapping[str, Any]) -> None:
        if phase == "start":
            self._collection_began = perf_counter()
        else:
            self._pauses.append(perf_counter() - self._collection_began)
