"""Reference page of the command line, docs/reference/cli.md, from the commands. `make reference` writes it."""

import inspect
import sys
from collections.abc import Iterator
from typing import Any, Final

from typer.main import get_command

from penstock_cli.app import app
from penstock_cli.errors import MEANINGS

_HEAD: Final = """# Command line

Generated from the commands by `make reference`; do not edit this page. [Use the command line](../command-line.md)
shows how the commands work together.
"""


def page() -> str:
    """Return the page."""
    group: Any = get_command(app)
    lines = [_HEAD]
    for name, command in group.commands.items():
        lines += _command(name, command)
    lines += ["## Exit codes\n", "| code | meaning |", "|---|---|"]
    lines += [f"| {int(code)} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(lines) + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"{inspect.cleandoc(command.help)}\n"
    yield "| argument | meaning |"
    yield "|---|---|"
    for one in command.params:
        names = ", ".join(f"`{text}`" for text in one.opts) if one.param_type_name == "option" else f"`{one.name}`"
        needed = "**Required.** " if one.required else ""
        variable = f" Variable: `{one.envvar}`." if getattr(one, "envvar", None) else ""
        text = (one.help or "").replace("|", "\\|")
        yield f"| {names} | {needed}{text}{variable} |"
    examples = "\n".join(line.strip() for line in command.epilog.splitlines()[2:])
    yield f"\n```\n{examples}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(page())
