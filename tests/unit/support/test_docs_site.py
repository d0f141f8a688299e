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

from dataplane.expr import ExpressionError, compile_expr
from localbox.settings import ROOT
from mgmt.web.errors_reference import page
from tests.support.doc_blocks import GENERATED, PAGES, blocks, inline_expressions

COMMAND: Final = re.compile(r"(?:curl|penstock) ")
LOADED: Final = re.compile(
    r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//|<link[^>]*stylesheet[^>]*\"(?:https?:)?//"
)
PARSED_HERE: Final[dict[str, Callable[[str], object]]] = {
    "cel": compile_expr,
    "json": json.loads,
    "python": ast.parse,
    "sql": duckdb.extract_statements,
    "yaml": yaml.safe_load,
}
RUN_ELSEWHERE: Final = {"go", "java", "javascript", "php", "text"}  # test_verify_signatures.py, test_reference.py
NOT_PARSED: Final = {"html", "postgresql", "ts"}


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
    found = blocks()
    assert {language for _, language, _ in found} == {"", "sh", *PARSED_HERE, *RUN_ELSEWHERE, *NOT_PARSED}
    wrong = []
    for path, language, text in found:
        try:
            PARSED_HERE.get(language, str)(text)
        except (ValueError, SyntaxError, duckdb.Error, yaml.YAMLError, ExpressionError) as exc:
            wrong.append(f"{path.name}: {language}: {exc}: {text[:60]}")
    assert not wrong


def test_each_expression_in_running_text_compiles():
    guides = [path for path in PAGES if path.parent != GENERATED and "decisions" not in path.parts]
    found = [(path.name, text) for path in guides for text in inline_expressions(path.read_text())]
    assert "first-webhook.md" in {name for name, _ in found}
    wrong = []
    for name, text in found:
        try:
            compile_expr(text)
        except ExpressionError as exc:
            wrong.append(f"{name}: {exc}: {text}")
    assert not wrong


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a rule with `body.total > 100`", ["body.total > 100"]),
        (
            '`has(meta.headers["x-event"])`, or `"x" in meta.headers`',
            ['has(meta.headers["x-event"])', '"x" in meta.headers'],
        ),
        ("reads `meta.headers` and the field `body.total`", []),
        ("`penstock tail --filter 'body.total > 100'`", []),
        ('`{"when": "body.total > 100"}` or `"when": "body.total > 100"`', []),
        ("```cel\nbody.total >\n```\n", []),
    ],
)
def test_expressions_in_running_text_read_the_event_and_operate_on_it(text: str, found: list[str]):
    assert inline_expressions(text) == found


def test_each_block_of_commands_is_valid_shell():
    found = [(path, text) for path, language, text in blocks() if language == "sh" or COMMAND.match(text)]
    assert len(found) > 100
    wrong = []
    for path, text in found:
        done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        if done.returncode or done.stderr:
            wrong.append(f"{path.name}: {done.stderr}: {text[:80]}")
    assert not wrong
