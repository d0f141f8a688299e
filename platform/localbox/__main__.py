"""`penstock box up|down|status|run|archive|backup|restore|secrets|env-example`, also `python -m localbox`."""

import argparse
import os
import sys
from pathlib import Path

from localbox.catalogue import DEMO
from localbox.commands import archive, backup, down, restore, status, up
from localbox.errors import BoxError
from localbox.settings import container_secrets, env_example, settings_from
from localbox.spark import spark_env

_TEXTS = {"env-example": env_example, "secrets": container_secrets}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; an error is one sentence on stderr."""
    given = _parser().parse_args(arguments)
    try:
        if given.command in _TEXTS:
            print(_TEXTS[given.command](), end="")
            return 0
        settings = settings_from()
        if given.command == "up":
            names = [name for name in given.only.split(",") if name]
            extra = [name for name in given.extra.split(",") if name]
            return up(settings, names=names, extra=extra, detach=given.detach)
        if given.command == "run":
            env = {**settings.env, **spark_env(settings)}
            os.execvpe(given.words[0], given.words, env)  # noqa: S606 no shell is wanted
        if given.command in ("backup", "restore"):
            return {"backup": backup, "restore": restore}[given.command](settings, Path(given.file))
        return {"down": down, "status": status, "archive": archive}[given.command](settings)
    except BrokenPipeError:  # the reader, such as `head`, has exited
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 or the interpreter reports it at exit
        return 0
    except (BoxError, ValueError) as exc:
        print(f"penstock: {exc}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="penstock box", description="Penstock on one machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("up", help="start everything and keep it running")
    start.add_argument("--only", default="", help="names of programs, comma-separated")
    start.add_argument("--with", dest="extra", default="", help=f"programs of the demo: {', '.join(DEMO)}")
    start.add_argument("--detach", action="store_true", help="return when all is ready; stop with `down`")
    commands.add_parser("down", help="stop everything, in any state")
    commands.add_parser("status", help="list the programs and their state")
    run = commands.add_parser(
        "run", help="run a command with the box's environment, such as: run python manage.py shell"
    )
    run.add_argument("words", nargs="+")
    commands.add_parser("archive", help="archive the classes of Spark and Kafka, so that they start in half the time")
    save = commands.add_parser("backup", help="copy everything that the stopped box keeps to a new file")
    save.add_argument("file", help="path of the archive (.tar.gz), outside of var/")
    bring_back = commands.add_parser("restore", help="bring back such a file, into an empty var/")
    bring_back.add_argument("file", help="path of the archive")
    commands.add_parser("secrets", help="print fresh secrets, as lines for .env")
    commands.add_parser("env-example", help="print .env.example")
    return parser


if __name__ == "__main__":
    sys.exit(main())
