"""`penstock COMMAND`: the command line for people who send and receive events. It needs no server on this machine."""

import argparse
import sys
from collections.abc import Sequence

from penstock_cli.generate import add_arguments, generate
from typed_clients.model import ClientError


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an error is one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="penstock", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    add_arguments(commands.add_parser("generate", help="write a typed client for event types"))
    try:
        sys.stdout.write(f"{generate(parser.parse_args(words))}\n")
    except ClientError as exc:
        sys.stderr.write(f"penstock: {exc}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
