"""Rules of the tree that no linter checks: one name per public class, plain English, commit titles."""

import ast
import io
import re
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from localbox.settings import ROOT

PLANES: Final = ("controlplane", "dataplane", "mgmt", "platform")
# Django finds the class of a management command by this name.
NAMED_BY_DJANGO: Final = frozenset({"Command", "Meta", "Migration"})
# Words that were dialect here; a reader who knows Kafka, Django and webhooks expects others (report, publish ...).
DIALECT: Final = re.compile(
    r"\b(anew|mend(?:s|ed|ing)?|deeds?|errands?|told|tell(?:s|ing)?|whoever|befalls?|befell|hear(?:s|d)?|by itself"
    r"|thief|thieves|witness(?:es)?|crew|bur(?:y|ied|ies)|wish(?:es)?|(?<!--)beside|of late(?! events| messages)"
    r"|comes? to|parks?|parking|goes to|(?:on|in) (?:its|their|the|another|this) way|somebody|to and fro|all the same"
    r"|unwell|stands? still)\b"
    # "A 429 is no failure": English says "is not a failure", except of what does not exist ("there is no failure").
    r"|(?<!here )\b(?:is|are|was|were) no (?!longer\b|more\b|newer\b|less\b)",
    re.IGNORECASE,
)
# Code, tags, and names of fields before their description.
NOT_PROSE: Final = re.compile(r"`[^`]*`|\{[^{}]*\}|<[^<>]*>|\{%.*?%\}|^\s*\w+: ", re.DOTALL)
PATHS: Final = re.compile(
    r"`((?:controlplane|dataplane|deploy|docs|examples|mgmt|platform|static|templates|tests)/[\w./-]+)`"
)
# The same in names; `heard`, `told` and `told_at` are fields of the API, and of rows and records of earlier releases.
DIALECT_NAMES: Final = re.compile(
    r"(?:^|_)(anew|mend\w*|deeds?|errands?|told|whoever|heard|thief|witness|crew|bur(?:y|ied)|wish|beside|unwell|lately)"
    r"(?:_|$)"
)
STORED_NAMES: Final = frozenset({"heard", "told", "told_at"})
# A docstring begins with a verb or a noun, not with a clause.
CLAUSE: Final = re.compile(r"(?:What|Who|Whoever|Whether|That|Where|Why|How|If|When)\b")
# The texts of views and commands are shown to users of the API and of `--help`.
SHOWN_DOCSTRINGS: Final = ("api", "pages", "management")
HOOK: Final = ROOT / ".githooks" / "commit-msg"


def public_classes(code: str) -> Iterator[str]:
    """Yield the names of the classes and type aliases (`Name = ...`) that a module defines for others."""
    for node in ast.parse(code).body:
        match node:
            case ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [one.id for one in targets if isinstance(one, ast.Name) and not one.id.isupper()]
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.isupper():
                names = [name]
            case _:
                continue
        yield from (name for name in names if name[:1].isupper())


def test_classes_and_aliases_are_found():
    code = "class One: ...\nTwo = tuple[str, int]\nTHREE = 3\nclass _Private: ...\nlog = 1\nFour: TypeAlias = int\n"
    assert list(public_classes(code)) == ["One", "Two", "Four"]


def test_every_public_class_has_a_unique_name():
    places = defaultdict(list)
    for plane in PLANES:
        for path in (ROOT / plane).rglob("*.py"):
            for name in public_classes(path.read_text()):
                places[name].append(str(path.relative_to(ROOT)))
    twice = {name: files for name, files in places.items() if len(files) > 1 and name not in NAMED_BY_DJANGO}
    assert not twice


def test_no_plane_imports_another_through_a_string():
    """The import contracts cannot see these."""
    by_string = re.compile(r"\b(import_string|import_module|__import__)\b")
    found = [path for plane in PLANES for path in (ROOT / plane).rglob("*.py") if by_string.search(path.read_text())]
    assert not found


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page, or of the comments and texts of a module, with their numbers."""
    text = path.read_text()
    if path.suffix in (".css", ".js", ".yaml", ".yml"):
        yield from enumerate(text.splitlines(), 1)
        return
    if path.suffix != ".py":
        yield from enumerate(NOT_PROSE.sub(lambda tag: "\n" * tag[0].count("\n"), text).splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string):
            yield from enumerate((NOT_PROSE.sub("", line) for line in token.string.splitlines()), token.start[0])


def modules() -> Iterator[Path]:
    for plane in PLANES:
        yield from (path for path in (ROOT / plane).rglob("*.py") if "migrations" not in path.parts)


def names_in(code: str) -> Iterator[str]:
    """Yield the names that a module gives to functions, classes, arguments, fields and constants."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            case ast.arg(arg=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name.lower()


def docstrings(code: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            yield node.body[0].lineno if node.body else 1, ast.get_docstring(node) or ""


def raised_by(node: ast.AST) -> Iterator[str]:
    """Yield the classes that a function raises itself; those in a `try`, which may handle them, are left out."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                continue
            case ast.Try(handlers=[_, *_]):
                for part in (*child.handlers, *child.orelse, *child.finalbody):
                    yield from raised_by(part)
                continue
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name)) | ast.Name(id=name)) if name[0].isupper():
                yield name
        yield from raised_by(child)


def silent_about_errors(code: str) -> Iterator[str]:
    """Yield the public functions and methods that raise an error and do not document it."""
    module = ast.parse(code)
    scopes = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
    bodies = [(module.body, ""), *((scope.body, ast.get_docstring(scope) or "") for scope in scopes)]
    for body, about in bodies:
        for node in body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name[0] == "_":
                continue
            if any(raised_by(node)) and "Raise" not in about + (ast.get_docstring(node) or ""):
                yield node.name


def test_undocumented_errors_are_found():
    code = """
def silent(): raise ValueError("x")
def named():
    "Return one. Raises ValueError."
    raise ValueError("x")
def handled():
    try: raise ValueError("x")
    except ValueError: return None
def _private(): raise ValueError("x")
class Box:
    def open(self):
        if self: raise LookupError
"""
    assert list(silent_about_errors(code)) == ["silent", "open"]


def test_public_functions_document_the_errors_that_they_raise():
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules()
        if not any(part.removesuffix(".py") in SHOWN_DOCSTRINGS for part in path.parts)
        for name in silent_about_errors(path.read_text())
    ]
    assert not found


def test_docstrings_begin_with_a_verb_or_a_noun():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.partition(chr(10))[0]}"
        for path in modules()
        for line, text in docstrings(path.read_text())
        if CLAUSE.match(text)
    ]
    assert not found


def test_names_in_code_are_plain_english():
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules()
        for name in names_in(path.read_text())
        if DIALECT_NAMES.search(name) and name not in STORED_NAMES
    ]
    assert not found


def test_docs_index_links_every_page_once():
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text()
    pages = [path.relative_to(docs) for path in docs.rglob("*.md") if path.parent.name not in ("decisions", "proof")]
    assert {str(page): index.count(f"]({page})") for page in pages if page.name != "README.md"} == {
        str(page): 1 for page in pages if page.name != "README.md"
    }


def test_texts_comments_and_templates_are_plain_english():
    paths = [path for plane in PLANES for path in (ROOT / plane).rglob("*.py") if "migrations" not in path.parts]
    paths += (path for path in (ROOT / "templates").rglob("*") if path.is_file())
    paths += (path for folder in ("docs", "examples", ".github") for path in (ROOT / folder).rglob("*.md"))
    paths += (ROOT / "examples").rglob("*.py")
    paths += (path for suffix in ("yaml", "yml") for path in (ROOT / "deploy").rglob(f"*.{suffix}"))
    paths += (path for suffix in ("css", "js") for path in (ROOT / "static" / "penstock").rglob(f"*.{suffix}"))
    paths += [*ROOT.glob("*.md"), ROOT / "docker-compose.yml"]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in paths
        for number, line in prose_of(path)
        if (match := DIALECT.search(line))
    ]
    assert not found


def test_every_path_that_the_docs_name_exists():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in pages
        for path in PATHS.findall(page.read_text())
        if not (ROOT / path).exists()
    ]
    assert not missing


@pytest.mark.parametrize(
    ("title", "accepted"),
    [
        ("transmit: split audit records at the broker's limit", True),
        ("mgmt/api: return 404 for other tenants", True),
        ("Merge branch 'main'", True),
        ("Split audit records", False),
        ("transmit: Split audit records", False),
        ("transmit: split audit records.", False),
        ("transmit: " + "x" * 63, False),
        ("transmit: " + "x" * 62, True),
        ("", False),
    ],
)
def test_hook_accepts_titles_of_the_form_area_and_summary(tmp_path: Path, title: str, accepted: bool):
    message = tmp_path / "message"
    message.write_text(f"{title}\n\nThe body says why.\n")
    run = subprocess.run([HOOK, message], capture_output=True, text=True, check=False, timeout=10)
    assert (run.returncode == 0) is accepted
    assert accepted or "at most 72 characters" in run.stderr
