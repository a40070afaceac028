import pytest
from aiohttp.test_utils import make_mocked_request

from broker.admin.resources.messages.message_ids import path_number
from server.http import RestError


@pytest.mark.parametrize(("text", "number"), [("5", 5), ("-1", -1), ("+7", 7)])
def test_a_number_in_a_path_may_have_a_sign(text: str, number: int) -> None:
    request = make_mocked_request("GET", "/", match_info={"n": text})
    assert path_number(request, "n") == number


@pytest.mark.parametrize("text", ["-+5", "+-5", "--1", "", "-", "\u0663", "1_0", " 1", "9" * 30])
def test_a_path_segment_that_is_not_a_whole_number_is_answered_404(text: str) -> None:
    with pytest.raises(RestError, match="should be a whole number") as caught:
        path_number(make_mocked_request("GET", "/", match_info={"n": text}), "n")
    assert caught.value.status == 404
