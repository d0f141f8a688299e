"""Every decision has its parts and its line in the index, and every reference to one resolves to a page."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from localbox.settings import ROOT

FOLDER: Final = ROOT / "docs" / "decisions"
PAGES: Final = {page.name[:4]: page for page in sorted(FOLDER.glob("[0-9]*.md"))}
PARTS: Final = ("- Status: ", "- Date: ", "## Context", "## Decision", "## Consequences")
SOURCES: Final = ("controlplane", "dataplane", "deploy", "docs", "examples", "mgmt", "platform", "templates", "tests")
AT_THE_ROOT: Final = (".env.example", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "README.md", "pyproject.toml")
SUFFIXES: Final = frozenset({".html", ".md", ".py", ".txt", ".yaml", ".yml"})
REFERENCES: Final = re.compile(
    r"decisions?[ /](0\d{3}(?:(?:, | and | to )0\d{3})*)"  # decision 0302, decisions 0412 and 0413, docs/decisions/0229
    r"|\((0\d{3}(?:, 0\d{3})*)\)",  # (0700), (0412, 0413)
    re.IGNORECASE,
)


def missing_parts(text: str) -> list[str]:
    """Return the parts of a decision that `text` lacks, among them a title with a number."""
    lines = text.splitlines()
    title = [] if lines and re.fullmatch(r"# \d{4}: \S.*", lines[0]) else ["title"]
    return title + [part for part in PARTS if not any(line.startswith(part) for line in lines)]


def referenced(text: str) -> set[str]:
    """Return the numbers of all decisions that `text` refers to."""
    return {number for found in REFERENCES.finditer(text) for number in re.findall(r"0\d{3}", found[0])}


def sources() -> Iterator[Path]:
    yield from (ROOT / name for name in AT_THE_ROOT)
    for folder in SOURCES:
        yield from (
            path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES and path != Path(__file__)
        )


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_decision_has_all_parts(page: Path):
    text = page.read_text()
    assert not missing_parts(text)
    assert text.startswith(f"# {page.name[:4]}: ")


def test_index_links_every_decision_once():
    links = re.findall(r"^- \[(\d{4})\]\((\S+)\) ", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert sorted(links) == [(number, page.name) for number, page in PAGES.items()]


def test_every_reference_resolves_to_a_decision():
    unknown = {
        f"{path.relative_to(ROOT)}: {number}"
        for path in sources()
        for number in referenced(path.read_text(errors="replace")) - PAGES.keys()
    }
    assert not unknown


def test_every_link_to_a_decision_resolves_to_its_file():
    broken = {
        f"{path.relative_to(ROOT)}: {link}"
        for path in sources()
        if path.suffix == ".md"
        for link in re.findall(r"\]\(((?:\S*/)?\d{4}-[a-z0-9-]+\.md)\)", path.read_text())
        if not (path.parent / link).is_file()
    }
    assert not broken


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        pytest.param("see decision 0302", {"0302"}, id="named"),
        pytest.param("Decisions 0412, 0413 and 0416", {"0412", "0413", "0416"}, id="list"),
        pytest.param("docs/decisions/0229", {"0229"}, id="path"),
        pytest.param("by turns (0700), or not (1234)", {"0700"}, id="in brackets"),
        pytest.param("in 0302 words", set(), id="another number"),
    ],
)
def test_references_are_found(text: str, numbers: set[str]):
    assert referenced(text) == numbers


def test_missing_parts_are_found():
    assert missing_parts("# A title\n\n- Status: accepted\n\n## Context\n") == [
        "title",
        "- Date: ",
        "## Decision",
        "## Consequences",
    ]
