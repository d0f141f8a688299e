"""`manage.py rate_traffic --cell c1`: run a capacity test of a cell and find its bottleneck."""

import signal
import sys
from argparse import ArgumentTypeError
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.capacity_test.run import run_capacity_test
from controlplane.capacity_test.search import SearchBounds
from controlplane.capacity_test.steps import CapacityTestError, CapacityTestRequest
from mgmt.models import User
from mgmt.pipes.services.demo import FIRST_CELL

INTERRUPTED = 130


class Command(BaseCommand):
    """Print progress to stderr and the result to stdout.

    Exits 0 when the result is stored, 1 without a result, 130 when interrupted; in each case the test pipe is closed
    and the pause of scaling is ended.
    """

    help = "Raise the traffic through a cell until it falls behind; store the capacity per unit. See decision 0625."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the cell, the limits of the test, and the form of the output."""
        parser.add_argument("--cell", default=FIRST_CELL, help="the cell's id")
        parser.add_argument("--first", type=_number, default=200.0, help="events per second of the first step")
        parser.add_argument("--most", type=_number, default=50_000.0, help="highest rate in events per second")
        parser.add_argument("--hold", type=_number, default=8.0, help="seconds of measurement per step")
        parser.add_argument("--limit", type=_number, default=600.0, help="seconds after which no further step begins")
        parser.add_argument(
            "--batch", type=int, choices=range(1, 1_001), metavar="1..1000", default=1, help="events per request"
        )
        parser.add_argument("--beside", action="store_true", help="test a cell that has traffic, which the test slows")
        parser.add_argument("--by", default="", help="user name of a member of staff")
        parser.add_argument("--json", action="store_true", help="print the whole result as one JSON line")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the test."""
        by = User.objects.filter(username=options["by"], is_staff=True).first()
        if options["by"] and by is None:
            raise CommandError(f"--by: there is no staff user {options['by']!r}")
        bounds = SearchBounds(first=options["first"], most=options["most"])
        request = CapacityTestRequest(
            cell=options["cell"],
            hold_s=options["hold"],
            limit_s=options["limit"],
            batch=options["batch"],
            allow_traffic=options["beside"],
            bounds=bounds,
        )
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            report = run_capacity_test(request, by, self._say)
        except CapacityTestError as exc:
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
    lines = [f"cell {report.cell} takes {least}{report.rate:.0f} events per second. Bottleneck: {report.bottleneck}."]
    for one in report.groups:
        least = "at least " if one.at_least else ""
        lines.append(
            f"  {one.group:<9} {least}{one.per_s:.0f} events/s per unit ({one.units} in use), "
            f"{one.cpu_us:.0f} us of CPU per event"
        )
    return "\n".join(lines)
