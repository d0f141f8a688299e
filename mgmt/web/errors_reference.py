"""Catalogue of errors: `python -m mgmt.web.errors_reference > docs/reference/errors.md`."""

import sys
from typing import Final

from mgmt.deliveries.causes import ALL, ENDINGS, CauseText
from mgmt.web.error_help import INGEST, ErrorHelp, codes, help_on
from mgmt.web.problems import PROBLEMS, ProblemType

_HEAD: Final = """# Errors

Generated from `mgmt/web/problems.py`, `mgmt/web/error_help.py` and `mgmt/deliveries/causes.py` by `make reference`.

## Errors of the API

A response with an error has the media type `application/problem+json` (RFC 9457). Programs read `code`: it never
changes. `type` is the address of a help page on your own installation, `errors` names the fields, and `request_id`
finds the request in the log.

| code | status | meaning | what to do |
|---|---|---|---|
"""
_INGEST: Final = """
## Errors of ingest

| code | meaning | what to do |
|---|---|---|
"""
_CAUSES: Final = """
## Causes of failed messages

A message that was not delivered has one of these causes, in the console, in `penstock explain` and in the API.
"""


def page() -> str:
    """Return the page as Markdown."""
    rows = "".join(_row(code, PROBLEMS[code]) for code in sorted(PROBLEMS))
    ingest = "".join(_ingest_row(code, one) for code in codes() for one in help_on(code) if one.side == INGEST)
    return _HEAD + rows + _INGEST + ingest + _CAUSES + "".join(map(_section, sorted(ALL, key=lambda one: one.code)))


def _row(code: str, problem: ProblemType) -> str:
    meaning = problem.meaning.replace("|", "\\|")
    return f"| `{code}` | {problem.status} | {problem.title} | {meaning} |\n"


def _ingest_row(code: str, found: ErrorHelp) -> str:
    return f"| `{code}` | {found.title} | {found.todo} |\n"


def _section(cause: CauseText) -> str:
    steps = "".join(f"{number}. {step}\n" for number, step in enumerate(cause.todo, start=1))
    return (
        f"\n### `{cause.code}`\n\n{cause.meaning}\n\nShown as “{cause.words}”. Outcome: {ENDINGS[cause.ending]}. "
        f"To be fixed by {cause.whose}.\n\n{steps}"
    )


if __name__ == "__main__":
    sys.stdout.write(page())
