"""``/status.html`` is OK while clients are served and the operator's file exists."""

from pathlib import Path
from typing import cast

import pytest
from aiohttp import web

from server.http import ProcessState, Readiness, RestError
from server.seeing.page import status_route


async def asked(readiness: Readiness, file: str | None) -> tuple[int, object]:
    request = cast("web.Request", None)
    try:
        answer = cast("web.Response", await status_route(readiness, file).handler(request))
    except RestError as error:
        return error.status, error.reason
    return answer.status, answer.body


@pytest.mark.parametrize("state", list(ProcessState))
async def test_the_status_page_is_ok_only_while_clients_are_served(
    tmp_path: Path, state: ProcessState
) -> None:
    file = tmp_path / "status"
    file.touch()
    readiness = Readiness()
    readiness.state = state
    found = await asked(readiness, str(file))
    assert found == ((200, b"OK") if state is ProcessState.READY else (503, state.value))


async def test_the_status_page_is_not_found_without_the_file(tmp_path: Path) -> None:
    readiness = Readiness()
    readiness.state = ProcessState.READY
    assert (await asked(readiness, str(tmp_path / "none")))[0] == 404
    assert (await asked(readiness, None))[0] == 404
