"""Imports of our packages, rewritten for the wheel."""

import ast

import pytest
from first_party import ImportFormError, rewritten
from hypothesis import given
from hypothesis import strategies as st

HOMES = {"proto": "mine.proto", "client": "mine"}


def made(source: str, name: str = "x.py") -> str:
    return rewritten(source, name, HOMES)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from proto.frames import Frame", "from mine.proto.frames import Frame"),
        ("from client import Client", "from mine import Client"),
        ("import proto.frames as frames", "import mine.proto.frames as frames"),
        ("import client, os", "import mine as client, os"),
        ("import os, client as c", "import os, mine as c"),
        ("import client, proto", "import mine as client, mine.proto as proto"),
        (
            "if 1:\n    from client import (\n  a,\n)\n",
            "if 1:\n    from mine import (\n  a,\n)\n",
        ),
        ('x = "\u00e9"; from client import a', 'x = "\u00e9"; from mine import a'),
    ],
)
def test_an_import_of_an_own_package_becomes_the_wheels_package(before: str, after: str) -> None:
    assert made(before) == after


@pytest.mark.parametrize(
    "source",
    [
        "from protocol import x",
        "from os import client",
        "import clients",
        "from . import client",
        "from .client import x",
        '"""\nfrom client import Client\n"""\n',
        "# import client\nclient = proto.client\r\n",
        'import_module("client.x")',
    ],
)
def test_all_other_source_text_stays_unchanged(source: str) -> None:
    assert made(source) == source


@pytest.mark.parametrize("source", ["import proto.frames", "import os, proto.frames"])
def test_an_import_that_binds_a_package_is_refused_with_the_remedy(source: str) -> None:
    with pytest.raises(ImportFormError, match=r"^x\.py:1: `import .*write `import .* as"):
        made(source)


def test_an_import_with_odd_spaces_is_refused() -> None:
    with pytest.raises(ImportFormError, match="one space"):
        made("from  client import x")


def test_only_a_generated_module_has_its_own_name_as_a_string_rewritten() -> None:
    source = "build(D, 'proto.Api_pb2', g); x = 'proto/Api.proto'; y = 'proto.frames'"
    assert made(source, "proto/Api_pb2.py") == source.replace("'proto.A", "'mine.proto.A")
    assert made(source) == source


MODULE = st.sampled_from(["proto", "client.a", "os.path", "clients.b"])
LINE = st.one_of(
    st.builds("from {} import x".format, MODULE),
    st.builds("import {} as y".format, MODULE),
    st.sampled_from(
        ["z = 'from client import x'", "# \u00fc", "", "if z:\n    import client as q"]
    ),
)


@given(st.lists(LINE))
def test_rewriting_changes_only_the_package_of_imports_and_is_idempotent(lines: list[str]) -> None:
    source = "\n".join(lines)
    after = ast.unparse(ast.parse(made(source)))
    assert after.replace("mine.proto", "proto").replace("mine", "client") == ast.unparse(
        ast.parse(source)
    )
    assert made(made(source)) == made(source)
