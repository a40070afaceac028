"""The phases of a run."""

from __future__ import annotations

from loadgen.plan.fields import Duration, Moment, Part


class Phases(Part):
    """The phases of a run behind connecting, which all finish before the agreed start.

    Attributes:
        warm_up: What is due meanwhile is not counted in figures.
        measure: The time that is measured. A run whose clients all end of their own accord, or
            are back, ends earlier, unless there is a hold.
        hold: So long everything goes on behind it, whoever is back, and is measured too.
        drain: Requests under way may end; nothing new begins.
    """

    warm_up: Moment = 0.0
    measure: Duration = 120.0
    hold: Moment = 0.0
    drain: Moment = 5.0

    @property
    def end(self) -> float:
        """The moment at which nothing new begins, at the latest."""
        return self.warm_up + self.measure + self.hold
