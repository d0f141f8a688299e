"""Loss table of a bucket: the talk's numbers, by node and end to end, and the node that saw each lost unit last."""

import pytest
from pyroaring import BitMap64

from controlplane.observer.seal import bin_counts
from dataplane.ledger.bins import OVERWRITTEN, BucketFacts, derive
from dataplane.ledger.facts import ACKED, DEDUP, EXPLODED, INGEST, PROCESS, SEEN, Fact, FactKey
from dataplane.ledger.losses import bucket_loss, counted_loss, lost_units, node_counts
from dataplane.ledger.units import position_of
from dataplane.names import Purpose

TOPICS: dict[Purpose, list[tuple[str, int]]] = {
    "ingest": [("in", 1)],
    "egress": [("out", 1)],
    "retry-in": [("ri", 1)],
    "dedup": [("dd", 1)],
}
ACK, SEE = FactKey(INGEST, Fact.SENT, ACKED), FactKey(INGEST, Fact.SENT, SEEN)
THROUGH = FactKey(PROCESS, Fact.SENT)
TRANSFORM, TRANSMIT = "transform:crm", "transmit:crm"
Facts = dict[FactKey, BitMap64]


def at(*offsets: int) -> BitMap64:
    return BitMap64(position_of(1, 0, offset) for offset in offsets)


def sealed(facts: Facts) -> BucketFacts:
    """Return the facts of a bucket that every reader has passed."""
    reach = {(topic, 0): 99 for topic in ("in", "out", "ri", "dd")}
    return BucketFacts(facts=facts, reach=reach, passed=dict.fromkeys(reach, 100), topics=TOPICS)


def of_the_talk() -> Facts:
    """Return facts of ten messages of which each hop loses one or two: five arrive, as in the talk's table."""
    return {
        ACK: at(*range(10)),
        SEE: at(*range(9)),
        THROUGH: at(*range(9)),
        FactKey(TRANSFORM, Fact.SENT): at(*range(7)),
        FactKey(TRANSMIT, Fact.DELIVERED): at(*range(5)),
    }


def test_losses_match_the_table_of_the_talk():
    loss = bucket_loss(derive(sealed(of_the_talk())))
    assert [(node.node, node.due, node.lost) for node in loss.nodes] == [
        ("ingest", 10, 0),
        ("normalize", 10, 1),
        ("enrich", 9, 0),
        ("route", 9, 2),
        (TRANSFORM, 7, 0),
        (TRANSMIT, 7, 2),
    ]
    assert [round(node.share, 3) for node in loss.nodes if node.lost] == [0.1, 0.222, 0.286]
    assert (loss.due, loss.lost, loss.share) == (10, 5, 0.5)


def test_lost_units_are_listed_by_position_with_the_node_that_saw_them_last():
    found = [(one.position & 0xFF, one.destination, one.last_seen) for one in lost_units(sealed(of_the_talk()))]
    assert found == [
        (7, "", "route"),
        (8, "", "route"),
        (9, "", "ingest"),
        (5, "crm", TRANSFORM),
        (6, "crm", TRANSFORM),
    ]


def test_lost_unit_was_seen_by_every_node_before_its_last():
    last = list(lost_units(sealed(of_the_talk())))[-1]
    assert last.seen == ("ingest", "normalize", "enrich", "route", TRANSFORM)


@pytest.mark.parametrize(
    ("facts", "last_seen", "lost_at"),
    [
        pytest.param({ACK: at(1)}, "ingest", "normalize", id="never read"),
        pytest.param({ACK: at(1), SEE: at(1)}, "ingest", "normalize", id="read, and no stage reported it"),
        pytest.param({ACK: at(1), FactKey(DEDUP, Fact.SENT, "asked"): at(1)}, "dedup", "dedup", id="sent to dedup"),
        pytest.param({ACK: at(1), SEE: at(1), THROUGH: at(1)}, "route", "route", id="at no destination"),
        pytest.param(
            {ACK: at(1), THROUGH: at(1), FactKey(TRANSFORM, Fact.SENT): at(1)}, TRANSFORM, TRANSMIT, id="on egress"
        ),
        pytest.param(
            {
                ACK: at(1),
                THROUGH: at(1),
                FactKey(TRANSFORM, Fact.SENT): at(1),
                FactKey(TRANSMIT, Fact.PARKED, "1"): at(1),
            },
            TRANSMIT,
            TRANSMIT,
            id="scheduled for a retry that the retrier does not know",
        ),
    ],
)
def test_last_seen_is_the_last_node_with_a_fact(facts: Facts, last_seen: str, lost_at: str):
    books = sealed(facts)
    (one,) = lost_units(books)
    assert one.last_seen == last_seen
    assert [node.node for node in bucket_loss(derive(books)).nodes if node.lost] == [lost_at]


def test_child_of_an_explode_is_lost_after_normalize_and_its_parent_arrives():
    facts = {
        ACK: at(1),
        SEE: at(1),
        THROUGH: at(1),
        FactKey("normalize", Fact.SENT, EXPLODED, 1): at(1),
        FactKey(TRANSFORM, Fact.SENT): at(1),
        FactKey(TRANSMIT, Fact.DELIVERED): at(1),
    }
    books = sealed(facts)
    (one,) = lost_units(books)
    assert (one.child, one.last_seen) == (1, "normalize")
    loss = bucket_loss(derive(books))
    assert [(node.node, node.due, node.lost) for node in loss.nodes[:4]] == [
        ("ingest", 1, 0), ("normalize", 1, 0), ("enrich", 2, 1), ("route", 1, 0),
    ]  # fmt: skip


def test_record_whose_offset_kafka_reused_was_last_seen_at_ingest():
    facts = {ACK: at(1), FactKey("log", Fact.SENT, "reused"): at(1), FactKey("normalize", Fact.FILTERED): at(1)}
    (one,) = lost_units(sealed(facts))
    assert (one.child, one.last_seen) == (OVERWRITTEN, "ingest")


def test_loss_from_the_counts_of_a_seal_equals_the_loss_from_its_units():
    account = derive(sealed(of_the_talk()))
    assert counted_loss(node_counts(account), bin_counts(account)) == bucket_loss(account)


def test_bucket_without_units_has_no_loss():
    loss = bucket_loss(derive(sealed({})))
    assert (loss.due, loss.lost, loss.share) == (0, 0, 0.0)
