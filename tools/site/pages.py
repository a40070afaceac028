"""MkDocs hooks: the repository's pages at their own paths, in the order of docs/README.md.

Links between pages, and from pages to other files, stay as they are read on a forge. A file to
which a page links becomes a page that shows the file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from index import Part, parts
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Section

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
INDEX = "docs/README.md"
OUTSIDE = {
    "Changelog": "CHANGELOG.md",
    "Contributing": "CONTRIBUTING.md",
    "Code of conduct": "CODE_OF_CONDUCT.md",
    "Reporting a vulnerability": "SECURITY.md",
}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s:]+)(?=[)#])")
_LANGUAGES = {".go": "go", ".java": "java", ".py": "python", ".rs": "rust", ".xml": "xml"}
_LANGUAGES |= {".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".md": "markdown"}
_NO_SOURCES = {"target", "__pycache__", "go.sum", "Cargo.lock"}


def on_config(config: MkDocsConfig) -> None:
    """Set the navigation: the project, each reader's pages, the reference, the project's rules."""
    index = parts((ROOT / INDEX).read_text(encoding="utf-8"))
    readers = [{part.title: _pages(part, seen)} for seen in [set[str]()] for part in index]
    reference = [f"reference/{page.name}" for page in _reference()]
    config.nav = [
        {"Start": ["README.md", {"All pages": INDEX}]},
        *readers[:-1],
        {"API reference": reference},
        {"The project": [*readers[-1].popitem()[1], *({name: at} for name, at in OUTSIDE.items())]},
    ]


def _reference() -> list[Path]:
    return sorted((HERE / "reference").glob("*.md"), key=lambda page: page.stem)


def _pages(part: Part, seen: set[str]) -> list[Any]:
    """Return the navigation of one part; a page that is named twice is only at its first place."""
    rows: list[Any] = []
    for child in part.children:
        if isinstance(child, Part):
            rows.append({child.title: _pages(child, seen)})
        elif (path := _path(INDEX, child.target)) not in seen and "#" not in path:
            seen.add(path)
            rows.append({child.title: path})
    return rows


def on_nav(nav: Navigation, files: Files, **_: object) -> None:
    """Add a link wherever the index names a page for the second time, or a heading in a page."""
    sections = {item.title: item for item in nav.items if isinstance(item, Section)}
    for part in parts((ROOT / INDEX).read_text(encoding="utf-8")):
        if part.title in sections:
            _add_links(sections[part.title], part, files)


def _add_links(section: Section, part: Part, files: Files) -> None:
    for place, child in enumerate(part.children):
        if isinstance(child, Part):
            _add_links(section.children[place], child, files)
        elif [one.title for one in section.children[place : place + 1]] != [child.title]:
            path, _, heading = _path(INDEX, child.target).partition("#")
            url = files.src_uris[path].url + (f"#{heading}" if heading else "")
            section.children.insert(place, link := Link(child.title, url))
            link.parent = section


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of the site at their paths in the repository, also those linked to."""
    own = [file for file in files if file.src_dir == config.docs_dir and file.abs_src_path]
    found: dict[str, str | Path] = {f"docs/{one.src_uri}": Path(one.abs_src_path) for one in own}
    found |= {name: ROOT / name for name in ["README.md", "ARCHITECTURE.md", *OUTSIDE.values()]}
    found |= {f"reference/{page.name}": page for page in _reference()}
    found |= {name: HERE / name for name in ("site.css", "workers.js", "mark.svg")}
    for path, page in list(found.items()):
        if path.endswith(".md") and isinstance(page, Path):
            for _, target in _LINK.findall(page.read_text(encoding="utf-8")):
                found |= dict(_sources(_path(path, target)))
    others = [file for file in files if file not in own]
    return Files([*others, *(_file(config, path, source) for path, source in found.items())])


def _file(config: MkDocsConfig, path: str, source: str | Path) -> File:
    if isinstance(source, Path):
        return File.generated(config, path, abs_src_path=str(source))
    return File.generated(config, path, content=source)


def _sources(path: str) -> Iterator[tuple[str, str | Path]]:
    """Yield a page that shows a file, or a page for each file of a folder; a notebook as it is."""
    place = ROOT / path
    if place.is_dir():
        files = sorted(one for one in place.rglob("*") if one.is_file())
        names = [one.relative_to(place) for one in files if not _NO_SOURCES & {*one.parts}]
        lines = [f"- [{name}]({place.name}/{name}{_suffix(name)})" for name in names]
        yield f"{path}.md", _hidden(path, "\n".join(lines))
        for name in names:
            yield from _sources(f"{path}/{name}")
    elif place.suffix == ".ipynb":
        yield path, place
    elif _suffix(place) and place.is_file():
        language, text = _LANGUAGES.get(place.suffix, "text"), place.read_text(encoding="utf-8")
        yield f"{path}{_suffix(place)}", _hidden(path, f"`````{language}\n{text}\n`````")


def _hidden(title: str, text: str) -> str:
    return f"---\ntitle: {title}\nsearch:\n  exclude: true\n---\n\n# {title}\n\n{text}\n"


def _suffix(path: Path) -> str:
    """Return what the page of a source file adds to its path; nothing for pages and pictures."""
    is_own = path.suffix in (".png", ".svg", ".ipynb") or (path.suffix == ".md" and path.is_file())
    return "" if is_own else ".md"


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """Replace paths by page titles in links, and lead links to files to pages that show them."""
    known = files.src_uris

    def led(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        path = _path(page.file.src_uri, target)
        if text in (target, path) and path in known and path.endswith(".md"):
            text = _title(known[path])
        return f"[{text}]({target}{'.md' if f'{path}.md' in known else ''}"

    return _LINK.sub(led, markdown)


def _title(file: File) -> str:
    return next(re.finditer(r"^# (.+)", file.content_string, re.MULTILINE))[1]


def _path(page: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def on_post_build(config: MkDocsConfig) -> None:
    """Write the search index as a script, too, for readers who open the site without a server."""
    index = Path(config.site_dir, "search", "search_index.json").read_text(encoding="utf-8")
    Path(config.site_dir, "search", "search_index.js").write_text(f"var __index = {index}")
