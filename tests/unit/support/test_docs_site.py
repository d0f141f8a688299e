"""The documentation site: broken links fail its build, pages load nothing from elsewhere, snippets parse."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import duckdb
import pytest
import yaml

from localbox.settings import ROOT
from mgmt.web.errors_reference import page

PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.md"))]
FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"(?:\$ )?(?:curl|penstock|make|kubectl|git|pip|npx|export|python3?|\.venv/bin/\w+) ")
LOADED: Final = re.compile(
    r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//|<link[^>]*stylesheet[^>]*\"(?:https?:)?//"
)
PARSED_HERE: Final[dict[str, Callable[[str], object]]] = {
    "json": json.loads,
    "python": ast.parse,
    "sql": duckdb.extract_statements,
    "yaml": yaml.safe_load,
}
RUN_ELSEWHERE: Final = {"go", "java", "javascript", "php", "text"}  # test_verify_signatures.py, test_reference.py
NOT_PARSED: Final = {"html", "ts"}


def snippets() -> list[tuple[Path, str, str]]:
    """Return page, language and text of each fence; a fence without a language has an empty one."""
    return [
        (path, language, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE))
        for path in PAGES
        for indent, language, text in FENCE.findall(path.read_text())
    ]


def build(source: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", str(ROOT / "docs"), str(source), str(source / "site")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "README.md").write_text(
        "# Documentation\n\n## Tutorials: learn\n\n[First](first.md#one-step)\n"
    )
    (tmp_path / "docs" / "first.md").write_text("# First\n\n## One step\n\nText.\n")
    return tmp_path


def test_site_has_menu_entrance_and_search_and_loads_nothing_from_elsewhere(source: Path):
    done = build(source)
    assert (done.returncode, done.stderr) == (0, "")
    site = source / "site"
    assert "url=docs/README.html" in (site / "index.html").read_text()
    assert (site / "searchindex.js").stat().st_size
    pages = {path.name: path.read_text() for path in site.rglob("*.html")}
    assert '<span class="caption-text">Tutorials</span>' in pages["first.html"]
    assert not [name for name, text in pages.items() if LOADED.search(text)]


@pytest.mark.parametrize(
    ("name", "text", "warning"),
    [
        ("first.md", "# First\n\n## Another step\n\nText.\n", "one-step"),
        ("first.md", "# First\n\n## One step\n\n[Gone](gone.md)\n", "gone.md"),
        ("second.md", "# Second\n\nText.\n", "toctree"),
    ],
    ids=["heading", "page", "menu"],
)
def test_build_fails_on_a_missing(source: Path, name: str, text: str, warning: str):
    (source / "docs" / name).write_text(text)
    done = build(source)
    assert done.returncode
    assert warning in done.stderr


def test_errors_page_is_generated_from_the_code():
    assert (ROOT / "docs" / "reference" / "errors.md").read_text() == page(), "run `make reference`"


def test_each_snippet_of_a_language_is_parsed():
    found = snippets()
    assert {language for _, language, _ in found} == {"", *PARSED_HERE, *RUN_ELSEWHERE, *NOT_PARSED}
    wrong = []
    for path, language, text in found:
        try:
            PARSED_HERE.get(language, str)(text)
        except (ValueError, SyntaxError, duckdb.Error, yaml.YAMLError) as exc:
            wrong.append(f"{path.name}: {language}: {exc}: {text[:60]}")
    assert not wrong


def test_each_block_of_commands_is_valid_shell():
    blocks = [(path, text) for path, language, text in snippets() if not language and COMMAND.match(text)]
    assert len(blocks) > 100
    wrong = []
    for path, text in blocks:
        done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        if done.returncode or done.stderr:
            wrong.append(f"{path.name}: {done.stderr}: {text[:80]}")
    assert not wrong
