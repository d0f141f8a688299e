"""`manage.py region status|failover|bind|unmirrored|failback`: the standby Kafka cluster (docs/region-mirror.md).

Only `bind` needs Postgres: the others work while the whole control plane is gone.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import KafkaException
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.region import TopicMissingOnClusterError, bind_topics
from controlplane.topics import TopicCreator
from dataplane.kafka_settings import kafka_settings
from dataplane.mirror.clusters import ClusterAddress, MirrorAddresses, MirrorCluster, first_line, mirror_addresses
from dataplane.mirror.failover import (
    RegionState,
    empty_former,
    failover_refusals,
    promote_standby,
    read_state,
    unmirrored_events,
)
from dataplane.mirror.positions import MirrorError
from dataplane.mirror.records import Promotion, age_of
from mgmt.models import Topic


class Command(BaseCommand):
    """Print the state of the mirror, or change which cluster is the active one."""

    help = "Show the standby Kafka cluster, fail over to it, name the events that it lacks, and prepare the way back."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the subcommands with their options."""
        kinds = parser.add_subparsers(dest="kind", required=True)
        kinds.add_parser("status", help="how far the standby cluster is behind")
        failover = kinds.add_parser("failover", help="make the standby cluster the active one")
        failover.add_argument("--dry-run", action="store_true", help="print the plan only")
        failover.add_argument(
            "--accept-loss", action="store_true", help="although the active cluster has events that are not mirrored"
        )
        kinds.add_parser("bind", help="bind the rows of topics to the promoted cluster, now PENSTOCK_KAFKA")
        unmirrored = kinds.add_parser("unmirrored", help="events of the former active cluster that were not mirrored")
        unmirrored.add_argument("--to", type=Path, help="file for the JSON lines, instead of the output")
        failback = kinds.add_parser("failback", help="empty the former active cluster, to mirror into it")
        failback.add_argument("--unmirrored", type=Path, required=True, help="file that gets the events it alone has")
        failback.add_argument("--delete-topics", action="store_true", help="delete its topics; without it, only print")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the subcommand. Raises CommandError."""
        commands: dict[str, Callable[[MirrorCluster, MirrorCluster, dict[str, Any]], None]] = {
            "status": self._status,
            "failover": self._failover,
            "unmirrored": self._unmirrored,
            "failback": self._failback,
        }
        try:
            if options["kind"] == "bind":
                return self._bind()
            addresses = mirror_addresses()
            self._with_clusters(addresses, options, commands[options["kind"]])
        except KafkaException as exc:
            raise CommandError(f"Kafka: {first_line(exc)}") from exc
        except (MirrorError, ValueError, OSError, TopicMissingOnClusterError) as exc:
            raise CommandError(str(exc)) from exc

    def _with_clusters(self, addresses: MirrorAddresses, options: dict[str, Any], run: Callable[..., None]) -> None:
        active, standby = MirrorCluster(addresses.active), MirrorCluster(addresses.standby)
        try:
            run(active, standby, options)
        finally:
            active.close()
            standby.close()

    def _status(self, active: MirrorCluster, standby: MirrorCluster, _options: dict[str, Any]) -> None:
        state = read_state(active, standby)
        self.stdout.write(f"active cluster   {active.address.servers}: {_activity(state)}")
        self.stdout.write(f"standby cluster  {standby.address.servers}")
        self.stdout.write(f"mirror           {state.records.summary(state.now_us)}")
        if (progress := state.records.progress) is None:
            return
        self.stdout.write(f"complete         everything stored until {_age(state, progress.complete_us)} is mirrored")
        self.stdout.write(f"checkpoint       committed offsets of {_age(state, progress.checkpoint_us)}")
        self.stdout.write(f"behind           {state.behind} messages")
        for name, topic in sorted(progress.topics.items()):
            if topic.behind:
                self.stdout.write(f"  {name}  {topic.behind}")

    def _failover(self, active: MirrorCluster, standby: MirrorCluster, options: dict[str, Any]) -> None:
        state = read_state(active, standby)
        refusals = failover_refusals(state, accept_loss=options["accept_loss"])
        self.stdout.write("\n".join(_plan(state, active, standby)))
        if refusals:
            raise CommandError("; ".join(refusals))
        if options["dry_run"]:
            return
        report = promote_standby(active.address.servers, standby)
        for group, count in sorted(report.to_read.items()):
            self.stdout.write(f"{group}: continues with {count} messages")
        self.stdout.write(f"promoted in {report.took_s:.1f} s. Start the processes with the plan's variables.")

    def _bind(self) -> None:
        cluster = MirrorCluster(ClusterAddress(settings.PENSTOCK_KAFKA, kafka_settings()))
        try:
            _promotion_of(cluster)
        finally:
            cluster.close()
        names = list(Topic.objects.values_list("name", flat=True))
        changed = bind_topics(TopicCreator(settings.PENSTOCK_KAFKA).find(names))
        self.stdout.write(f"bound {changed} of {len(names)} topics")

    def _unmirrored(self, active: MirrorCluster, standby: MirrorCluster, options: dict[str, Any]) -> None:
        """After a failover: PENSTOCK_KAFKA is the promoted cluster, the standby one is the former active one."""
        promotion = _promotion_of(active)
        if options["to"]:
            count = _write_unmirrored(standby, promotion, options["to"])
            self.stdout.write(f"{count} events were not mirrored: {options['to']}")
            return
        for event in unmirrored_events(standby, promotion.stored):
            self.stdout.write(msgspec.json.encode(event).decode())

    def _failback(self, active: MirrorCluster, standby: MirrorCluster, options: dict[str, Any]) -> None:
        promotion = _promotion_of(active)
        count = _write_unmirrored(standby, promotion, options["unmirrored"])
        self.stdout.write(f"{count} events of {standby.address.servers} were not mirrored: {options['unmirrored']}")
        if not options["delete_topics"]:
            self.stdout.write(f"would delete all topics of Penstock on {standby.address.servers}: --delete-topics")
            return
        deleted = empty_former(standby)
        self.stdout.write(f"deleted {deleted} topics. Start the mirror, wait until it is complete, then fail over.")


def _promotion_of(cluster: MirrorCluster) -> Promotion:
    promotion = cluster.read_records().promotion
    if promotion is None or not promotion.stored:
        raise MirrorError(f"{cluster.address.servers} was not promoted: PENSTOCK_KAFKA must be the promoted cluster")
    return promotion


def _write_unmirrored(former: MirrorCluster, promotion: Promotion, path: Path) -> int:
    count = 0
    with path.open("wb") as file:
        for event in unmirrored_events(former, promotion.stored):
            file.write(msgspec.json.encode(event) + b"\n")
            count += 1
    return count


def _plan(state: RegionState, active: MirrorCluster, standby: MirrorCluster) -> list[str]:
    progress = state.records.progress
    lines = [f"fail over from {active.address.servers} ({_activity(state)}) to {standby.address.servers}"]
    if progress is not None:
        lines += [
            f"- everything stored until {_age(state, progress.complete_us)} is mirrored; {state.behind} known messages "
            "are not, and stay on the former cluster",
            f"- groups continue at the committed offsets of {_age(state, progress.checkpoint_us)}: what was delivered "
            "since is delivered again, with the same ids",
        ]
    return [
        *lines,
        "- the mirror stops for good; no process may write to the former cluster",
        f"- then start all processes with PENSTOCK_KAFKA={standby.address.servers} and "
        f"PENSTOCK_STANDBY_KAFKA={active.address.servers}, and run `manage.py region bind`",
    ]


def _activity(state: RegionState) -> str:
    if not state.is_active_up:
        return "does not answer"
    return "no process writes to it" if state.is_quiet else "in use"


def _age(state: RegionState, at_us: int) -> str:
    return age_of(state.now_us, at_us)
