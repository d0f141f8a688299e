"""`manage.py rate_traffic --cell c1`: find what a cell's groups take, and what keeps more from passing."""

import signal
import sys
from argparse import ArgumentTypeError
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from mgmt.models import User
from mgmt.services.demo import FIRST_CELL

INTERRUPTED = 130


class Command(BaseCommand):
    """Progress goes to stderr, what was found to stdout. Exits 0 when it was stored, 1 when nothing was rated, 130
    when it was interrupted; whatever it was, its pipe is closed and scaling goes on.

    By name, for management imports nothing of the control plane (see decision 0302).
    """

    help = "Raise the traffic through a cell until it falls behind; store what each of its units takes. See 0624."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to rate, and how long."""
        parser.add_argument("--cell", default=FIRST_CELL, help="the cell's id")
        parser.add_argument("--first", type=_number, default=200.0, help="events a second of the first step")
        parser.add_argument("--most", type=_number, default=50_000.0, help="events a second that are never exceeded")
        parser.add_argument("--hold", type=_number, default=8.0, help="seconds for which each step is measured")
        parser.add_argument("--limit", type=_number, default=600.0, help="seconds after which no step begins")
        parser.add_argument(
            "--batch", type=int, choices=range(1, 1_001), metavar="1..1000", default=1, help="events in a request"
        )
        parser.add_argument("--beside", action="store_true", help="rate it although it has traffic, which is slowed")
        parser.add_argument("--by", default="", help="name of the user who wants to know")
        parser.add_argument("--json", action="store_true", help="print all of it as one JSON line")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Rate it."""
        by = User.objects.filter(username=options["by"], is_staff=True).first()
        if options["by"] and by is None:
            raise CommandError(f"--by: there is no staff user {options['by']!r}")
        bounds = import_string("controlplane.rating.search.Bounds")(first=options["first"], most=options["most"])
        wish = import_string("controlplane.rating.steps.Wish")(
            cell=options["cell"],
            hold_s=options["hold"],
            limit_s=options["limit"],
            batch=options["batch"],
            beside=options["beside"],
            bounds=bounds,
        )
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            report = import_string("controlplane.rating.run.rate_traffic")(wish, by, self._say)
        except import_string("controlplane.rating.steps.RatingError") as exc:
            raise CommandError(str(exc)) from exc
        except KeyboardInterrupt:
            self._say("interrupted: nothing was stored")
            sys.exit(INTERRUPTED)
        self.stdout.write(msgspec.json.encode(report).decode() if options["json"] else _words(report))

    def _say(self, text: str) -> None:
        self.stderr.write(f"rate_traffic: {text}", self.style.NOTICE)
        self.stderr.flush()


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError as exc:
        raise ArgumentTypeError(f"needs a number, got {text!r}") from exc
    if not 0 < number < float("inf"):
        raise ArgumentTypeError(f"needs more than 0, got {text}")
    return number


def _words(report: Any) -> str:
    least = "at least " if report.at_least else ""
    lines = [f"cell {report.cell} takes {least}{report.rate:.0f} events a second. Bottleneck: {report.bottleneck}."]
    for one in report.groups:
        least = "at least " if one.at_least else ""
        lines.append(
            f"  {one.group:<9} {least}{one.per_s:.0f} events/s a unit of {one.units}, {one.cpu_us:.0f} us of CPU each"
        )
    return "\n".join(lines)
