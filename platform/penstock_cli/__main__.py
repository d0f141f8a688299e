"""`penstock COMMAND`: the command line for people who run pipes, and who send and receive events."""

import sys
from collections.abc import Sequence

import typer
from typer.main import get_command

from penstock_cli.app import app
from penstock_cli.errors import CliError, ExitCode


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an error is one sentence on standard error."""
    command = get_command(app)
    try:
        result = command.main(args=None if words is None else list(words), prog_name="penstock", standalone_mode=False)
    except CliError as exc:
        if text := str(exc):
            sys.stderr.write(f"penstock: {text}\n")
        return int(exc.code)
    except (typer.Abort, KeyboardInterrupt):
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # such as `penstock events ... | head`
        sys.stderr.close()
        return int(ExitCode.DONE)
    except Exception as exc:
        if not hasattr(exc, "format_message"):
            raise
        exc.show()  # type: ignore[attr-defined]  # a usage error of the parser
        return int(ExitCode.USAGE)
    return result if isinstance(result, int) else int(ExitCode.DONE)


def script() -> None:
    """Run the command of the console script and exit."""
    sys.exit(main())


if __name__ == "__main__":
    script()
