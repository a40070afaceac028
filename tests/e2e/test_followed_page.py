"""A page, followed by the newcomers' proof."""

import os
from pathlib import Path

from tests.proof.newcomers.page import follow

PAGE = """
```sh
export GREETING="good day"
sleep 1000 &
echo $! > pid
```
```console
$ echo $GREETING | grep good
good day
$ echo $GREETING | grep -o good
good day
$ cat nothing | cat
$ echo never
never
```
"""


def test_steps_of_a_page_share_a_shell_and_stop_at_the_first_failure(tmp_path: Path) -> None:
    page, folder, records = tmp_path / "page.md", tmp_path / "work", tmp_path / "records"
    folder.mkdir()
    records.mkdir()
    page.write_text(PAGE)
    steps = list(follow(page, folder, os.environ, records))
    assert [step.as_written for step in steps] == [True, True, True, True, False, False]
    assert [step.done for step in steps] == [True] * 5 + [False]
    assert "nothing" in steps[-1].said


def test_background_processes_of_a_page_are_ended(tmp_path: Path) -> None:
    page, alive = tmp_path / "page.md", tmp_path / "alive"
    page.write_text("```sh\nexec 3> alive\nsleep 1000 &\n```\n")
    os.mkfifo(alive)
    pipe = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    steps = list(follow(page, tmp_path, os.environ, tmp_path))
    # The pipe ends when no writer is left
    os.set_blocking(pipe, True)
    assert os.read(pipe, 1) == b""
    assert all(step.as_written for step in steps)
    os.close(pipe)
