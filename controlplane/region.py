"""Binds the rows of topics to the topics of a promoted cluster."""

from django.db import transaction
from django.db.models import F

from controlplane.topics import ExistingTopic
from mgmt.models import Cell, Topic


class TopicMissingOnClusterError(Exception):
    """A topic of a cell does not exist on the cluster, or has another number of partitions."""


def bind_topics(found: dict[str, ExistingTopic]) -> int:
    """Give each topic's row the id that the topic has on the promoted cluster; return how many rows changed.

    A topic with another id usually means that it was deleted and recreated, so that no offset is valid for it, and the
    Provisioner stops. The mirror keeps offsets, so here they remain valid. Raises TopicMissingOnClusterError.
    """
    changed = 0
    with transaction.atomic():
        for row in Topic.objects.select_for_update().order_by("name"):
            topic = found.get(row.name)
            if topic is None or topic.partitions < row.partitions:
                raise TopicMissingOnClusterError(f"{row.name}: needs {row.partitions} partitions on the cluster")
            if topic.topic_id != row.topic_id:
                Topic.objects.filter(pk=row.pk).update(topic_id=topic.topic_id)
                changed += 1
        if changed:
            Cell.objects.update(version=F("version") + 1)
    return changed
