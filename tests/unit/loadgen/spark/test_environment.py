import logging
import signal
from collections.abc import Iterator

import pytest

from loadgen.spark.environment import bridge_silenced, interrupts_deferred, uninterrupted


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """Background jobs of a shell ignore Ctrl-C from the beginning."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


def test_ctrl_c_is_raised_after_the_end_of_an_uninterrupted_block() -> None:
    done = []

    def block() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("the whole block")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done


def test_deferred_ctrl_c_is_counted_and_the_signal_handler_is_restored() -> None:
    handler = signal.getsignal(signal.SIGINT)
    with interrupts_deferred() as interrupts:
        signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # like Spark, and worse
    assert interrupts == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is handler


def test_ignored_ctrl_c_stays_ignored() -> None:
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, handler)


@pytest.mark.parametrize("name", ["py4j.clientserver", None])
def test_stack_traces_of_the_py4j_bridge_are_not_printed(
    name: str | None, capfd, monkeypatch
) -> None:
    # Given a process without logging
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with bridge_silenced():
        logging.getLogger(name).error("cut")
        if name is None:
            logging.error("cut")  # noqa: LOG015 - as the bridge does
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger().handlers == []
