"""`manage.py region status|failover|bind|unmirrored|failback`: the standby Kafka cluster (docs/region-mirror.md).

Only `bind` needs Postgres: the others work while the whole control plane is gone.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import KafkaException
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.region import ObserverRunsError, TopicMissingOnClusterError, bind_topics, promotion_of
from controlplane.topics import TopicCreator
from dataplane.kafka_settings import kafka_settings
from dataplane.mirror.clusters import ClusterAddress, MirrorAddresses, MirrorCluster, first_line, mirror_addresses
from dataplane.mirror.failover import (
    UnmirroredPart,
    empty_former,
    promote_standby,
    read_state,
    unmirrored_events,
    unmirrored_part,
)
from dataplane.mirror.positions import MirrorError
from dataplane.mirror.records import Promotion, age_of
from dataplane.mirror.refusals import Accepted, RegionState, failover_refusals, former_refusals
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
            "--accept-loss",
            action="store_true",
            help="although events are not mirrored, or the standby cluster has diverged",
        )
        failover.add_argument(
            "--accept-repeats", action="store_true", help="although groups without offsets read everything again"
        )
        failover.add_argument("--mirror-is-dead", action="store_true", help="the process of a silent mirror was ended")
        kinds.add_parser("bind", help="bind the rows of topics to the promoted cluster, now PENSTOCK_KAFKA")
        unmirrored = kinds.add_parser("unmirrored", help="events of the former active cluster that were not mirrored")
        unmirrored.add_argument("--to", type=Path, help="file for the JSON lines, instead of the output")
        failback = kinds.add_parser("failback", help="empty the former active cluster, to mirror into it")
        failback.add_argument("--unmirrored", type=Path, required=True, help="new file for the events it alone has")
        failback.add_argument("--delete-topics", action="store_true", help="delete its topics; without it, only print")
        failback.add_argument(
            "--accept-loss", action="store_true", help="although retention has deleted events that it alone had"
        )

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
        except (MirrorError, ValueError, OSError, TopicMissingOnClusterError, ObserverRunsError) as exc:
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
        self.stdout.write(f"behind           {state.active.behind} messages")
        for name, topic in sorted(progress.topics.items()):
            if topic.behind:
                self.stdout.write(f"  {name}  {topic.behind}")

    def _failover(self, active: MirrorCluster, standby: MirrorCluster, options: dict[str, Any]) -> None:
        state = read_state(active, standby)
        accepted = Accepted(options["accept_loss"], options["accept_repeats"], options["mirror_is_dead"])
        refusals = failover_refusals(state, accepted)
        self.stdout.write("\n".join(_plan(state, active, standby)))
        if refusals:
            raise CommandError("; ".join(refusals))
        if options["dry_run"]:
            return
        report = promote_standby(active.address.servers, standby, mirror_is_dead=accepted.mirror_is_dead)
        for group, count in sorted(report.to_read.items()):
            self.stdout.write(f"{group}: continues with {count} messages")
        self.stdout.write(f"promoted in {report.took_s:.1f} s. Start the processes with the plan's variables.")

    def _bind(self) -> None:
        cluster = MirrorCluster(ClusterAddress(settings.PENSTOCK_KAFKA, kafka_settings()))
        try:
            promotion = _promotion_of(cluster)
        finally:
            cluster.close()
        names = list(Topic.objects.values_list("name", flat=True))
        changed = bind_topics(TopicCreator(settings.PENSTOCK_KAFKA).find(names), promotion.stored)
        self.stdout.write(f"bound {changed} of {len(names)} topics")

    def _unmirrored(self, active: MirrorCluster, standby: MirrorCluster, options: dict[str, Any]) -> None:
        """After a failover: PENSTOCK_KAFKA is the promoted cluster, the standby one is the former active one."""
        part = unmirrored_part(standby, _promotion_between(active, standby).stored)
        if options["to"]:
            self._write_unmirrored(standby, part, options["to"])
            return
        for event in unmirrored_events(standby, part):
            self.stdout.write(msgspec.json.encode(event).decode())
        if part.deleted:
            self.stderr.write(_deleted(part))

    def _failback(self, active: MirrorCluster, standby: MirrorCluster, options: dict[str, Any]) -> None:
        part = unmirrored_part(standby, _promotion_between(active, standby).stored)
        if not options["delete_topics"]:
            count = sum(1 for _ in unmirrored_events(standby, part))
            self.stdout.write(f"{count} events of {standby.address.servers} were not mirrored")
            if part.deleted:
                self.stdout.write(_deleted(part))
            self.stdout.write(f"would delete all topics of Penstock on {standby.address.servers}: --delete-topics")
            return
        if part.deleted and not options["accept_loss"]:
            raise CommandError(f"{_deleted(part)}: accept loss")
        self._write_unmirrored(standby, part, options["unmirrored"])
        deleted = empty_former(standby, part)
        self.stdout.write(f"deleted {deleted} topics. Start the mirror, wait until it is complete, then fail over.")

    def _write_unmirrored(self, former: MirrorCluster, part: UnmirroredPart, path: Path) -> None:
        """Write a new file, whole or not at all. Raises CommandError if it exists."""
        if path.exists():
            raise CommandError(f"{path}: exists already, and is not overwritten")
        count, unfinished = 0, path.with_name(path.name + ".unfinished")
        with unfinished.open("wb") as file:
            for event in unmirrored_events(former, part):
                file.write(msgspec.json.encode(event) + b"\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
        self.stdout.write(f"{count} events of {former.address.servers} were not mirrored: {path}")
        if part.deleted:
            self.stdout.write(_deleted(part))


def _deleted(part: UnmirroredPart) -> str:
    return f"{part.deleted} more events cannot be named: the retention of the former cluster has deleted them"


def _promotion_between(active: MirrorCluster, former: MirrorCluster) -> Promotion:
    """Return the promotion of a cluster over a former one. Raises MirrorError, KafkaException."""
    promotion = _promotion_of(active)
    if refusals := former_refusals(promotion, active.id(), former.id(), former.read_records().promotion):
        raise MirrorError("; ".join(refusals))
    return promotion


def _promotion_of(cluster: MirrorCluster) -> Promotion:
    promotion = promotion_of(cluster)
    if promotion is None:
        raise MirrorError(f"{cluster.address.servers} was not promoted: PENSTOCK_KAFKA must be the promoted cluster")
    return promotion


def _plan(state: RegionState, active: MirrorCluster, standby: MirrorCluster) -> list[str]:
    progress = state.records.progress
    lines = [f"fail over from {active.address.servers} ({_activity(state)}) to {standby.address.servers}"]
    if progress is not None:
        if progress.error:
            lines.append(f"- the mirror reports: {progress.error}")
        lines += [
            f"- everything stored until {_age(state, progress.complete_us)} is mirrored; {state.active.behind} known "
            "messages are not, and stay on the former cluster",
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
    active = state.active
    if not active.is_up:
        return "does not respond"
    if active.error:
        return f"responds with an error: {active.error}"
    return "no process writes to it" if active.is_quiet else "in use"


def _age(state: RegionState, at_us: int) -> str:
    return age_of(state.now_us, at_us)
