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
    r"\b(anew|mend(?:s|ed|ing)?|deeds?|errands?|told|tells|whoever|befalls?|hears|by itself|thief|crew"
    r"|bur(?:y|ied|ies)|wish(?:es)?|(?<!--)beside|of late(?! events| messages)|somebody|to and fro|all the same"
    r"|stands? still)\b",
    re.IGNORECASE,
)
# Code, tags, and names of fields before their description.
NOT_PROSE: Final = re.compile(r"`[^`]*`|\{[^{}]*\}|<[^<>]*>|\{%.*?%\}|^\s*\w+: ", re.DOTALL)
PATHS: Final = re.compile(
    r"`((?:controlplane|dataplane|deploy|docs|examples|mgmt|platform|static|templates|tests)/[\w./-]+)`"
)
HOOK: Final = ROOT / ".githooks" / "commit-msg"


def public_classes(code: str) -> Iterator[str]:
    """Yield the names of the classes and type aliases (`Name = ...`) that a module defines for others."""
    for node in ast.parse(code).body:
        match node:
            case ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [one.id for one in targets if isinstance(one, ast.Name) and not one.id.isupper()]
            case _:
                continue
        yield from (name for name in names if name[:1].isupper())


def test_classes_and_aliases_are_found():
    code = "class One: ...\nTwo = tuple[str, int]\nTHREE = 3\nclass _Private: ...\nlog = 1\n"
    assert list(public_classes(code)) == ["One", "Two"]


def test_every_public_class_has_a_unique_name():
    places = defaultdict(list)
    for plane in PLANES:
        for path in (ROOT / plane).rglob("*.py"):
            for name in public_classes(path.read_text()):
                places[name].append(str(path.relative_to(ROOT)))
    twice = {name: files for name, files in places.items() if len(files) > 1 and name not in NAMED_BY_DJANGO}
    assert not twice


def test_no_plane_imports_another_through_a_string():
    """The import contracts cannot see `import_string`."""
    found = [path for plane in PLANES for path in (ROOT / plane).rglob("*.py") if "import_string" in path.read_text()]
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


def test_texts_comments_and_templates_are_plain_english():
    paths = [path for plane in PLANES for path in (ROOT / plane).rglob("*.py") if "migrations" not in path.parts]
    paths += (path for path in (ROOT / "templates").rglob("*") if path.is_file())
    paths += (path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts)
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
