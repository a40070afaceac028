import re

import client
import limiter
from tests.support.processes.server_process import REPOSITORY
from tools.site.index import Entry, Part, parts

INDEX = """\
# Documentation

For [all](../README.md).

## Operators

Run servers:

- [Installing](install.md), [the proxy](proxy.md#keys): packages.

Other:

- A `tool`, [messages](messages.md).

## Testers

- [Faults](faults.md) on ![request](images/request.svg).
"""


def test_the_site_follows_the_headings_groups_and_links_of_the_index() -> None:
    run = (Entry("Installing", "install.md"), Entry("The proxy", "proxy.md#keys"))
    other = (Entry("Messages", "messages.md"),)
    assert parts(INDEX) == [
        Part("Operators", (Part("Run servers", run), Part("Other", other))),
        Part("Testers", (Entry("Faults", "faults.md"),)),
    ]


def test_the_index_has_a_part_for_each_kind_of_reader() -> None:
    text = (REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8")
    assert [(part.title.split()[0], bool(part.children)) for part in parts(text)] == [
        (reader, True)
        for reader in ("Operators", "Authors", "Testers", "Designers", "Contributors")
    ]


def test_the_reference_shows_every_name_of_client_and_limiter() -> None:
    pages = "".join(
        page.read_text(encoding="utf-8")
        for page in (REPOSITORY / "tools" / "site" / "reference").glob("*.md")
    )
    shown = set(re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE))
    errors = {name for name, one in vars(client.exceptions).items() if isinstance(one, type)}
    missing = {f"client.{name}" for name in set(client.__all__) - errors} - shown
    assert (missing, shown >= {"client.exceptions", "client.schema", "limiter"}) == (
        {"client.BytesSchema"},
        True,
    )
    assert "BytesSchema" in client.schema.__all__
    assert limiter.__all__
