"""`manage.py lane_offsets c1`: list the partitions whose committed offset is lost, and set where lanes continue."""

from typing import Any

from confluent_kafka import KafkaException
from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.lane_offsets import OffsetRefusedError, continue_at, lane_offsets
from controlplane.settings import control_settings
from dataplane.tables.redrives import parse_place
from mgmt.models import Cell

NOTHING_LOST = "restart them if a heartbeat still reports a stopped one"


class Command(BaseCommand):
    """Print one line for each partition that lanes cannot continue, or commit an offset for one of them."""

    help = "List the partitions whose committed offset their topic no longer has, or set the offset to continue at."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the cell, `--partition` and `--offset`."""
        parser.add_argument("cell")
        parser.add_argument("--partition", default="", help="of a topic, as the list names it: penstock.c1.ingest.g1/0")
        parser.add_argument("--offset", type=int, help="where lanes continue; the records before it are skipped")

    def handle(self, *_args: Any, **options: Any) -> None:
        """List, or commit. Raises CommandError if the offset is refused or Kafka does not respond."""
        cell, kafka = options["cell"], control_settings().kafka
        if not Cell.objects.filter(id=cell).exists():
            raise CommandError(f"no cell is named {cell}")
        if bool(options["partition"]) != (options["offset"] is not None):
            raise CommandError("--partition and --offset belong together")
        try:
            if options["offset"] is None:
                lost = [str(one) for one in lane_offsets(kafka, cell) if one.is_out_of_range]
                self.stdout.write("\n".join(lost) or f"lanes of {cell} can continue all partitions; {NOTHING_LOST}")
                return
            old = continue_at(kafka, cell, parse_place(options["partition"]), options["offset"])
        except ValueError as exc:
            text = f"{options['partition']} names no partition: write it as penstock.c1.ingest.g1/0"
            raise CommandError(text) from exc
        except OffsetRefusedError as exc:
            raise CommandError(str(exc)) from exc
        except KafkaException as exc:
            raise CommandError(f"Kafka does not respond as expected: {exc.args[0].str()}") from exc
        self.stdout.write(
            f"{old.group} continues {options['partition']} at {options['offset']} instead of {old.committed}"
        )
