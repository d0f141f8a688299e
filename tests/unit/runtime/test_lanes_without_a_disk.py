"""Lanes on a full or missing disk continue and report it: their files only make a restart faster."""

import errno
from pathlib import Path

import pytest

from dataplane.ledger.heartbeat import HeartbeatRecord, decode_heartbeat
from dataplane.names import AUDIT_TOPIC, HEARTBEAT_TOPIC, LaneKind
from dataplane.runtime import lookup_replicator
from dataplane.runtime.lookup_replicator import LookupReplicator
from dataplane.runtime.lookups import OPEN_EVERY_S, Lookups
from dataplane.runtime.telemetry import heartbeat
from dataplane.tables.lookup_store import LookupStore
from dataplane.tables.optional_files import CALM_S, OptionalFiles
from tests.support.failing_lanes import WORLDS, World, in_memory
from tests.support.full_disk import full_disk


def beats(world: World) -> list[HeartbeatRecord]:
    return [decode_heartbeat(message.value()) for message in world.kafka.logs[HEARTBEAT_TOPIC, 0]]


@pytest.mark.parametrize("kind", WORLDS)
def test_lane_on_a_full_disk_does_all_its_work_and_reports_the_disk(
    tmp_path: Path, kind: LaneKind, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(heartbeat.HeartbeatSender, "due", lambda _pulse: True)  # at every pass of the loop
    with full_disk(tmp_path) as disk:
        world = WORLDS[kind](disk.folder)
        with in_memory(world):
            assert world.run_lane() == "drained"
        world.check_done()
        assert not world.broken
        assert len(world.kafka.logs[AUDIT_TOPIC, 0]) > 1, "several checkpoints"
        last = beats(world)[-1]
        assert last.failing_files >= 1
        assert "notes of lanes that died: " in last.detail
        if kind == "transmit":
            assert "verdicts of settled units: " in last.detail
        if kind == "process":
            assert "look-up tables on disk: " in last.detail
        disk.make_room()
        after = WORLDS[kind](disk.folder)
        with in_memory(after):
            assert after.run_lane() == "drained"
        assert {beat.failing_files for beat in beats(after)} == {0}


def test_lookup_tables_are_opened_once_the_disk_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    with full_disk(tmp_path) as disk:
        files = OptionalFiles()
        lookups = Lookups(disk.folder / "lookups", files=files)
        are_open = []
        for later_s, has_room in ((0.0, False), (OPEN_EVERY_S, False), (0.0, True), (OPEN_EVERY_S, True)):
            now_s[0] += later_s
            if has_room and later_s == 0:
                disk.make_room()
            with lookups.pinned() as pinned:
                assert pinned.table("ten", "shops") is None
                assert pinned.row("tab", "key") is None
            are_open.append(lookups.store is not None)
            assert files.trouble.startswith("look-up tables on disk: ")
        assert are_open == [False, False, False, True], "not tried at every batch"
        now_s[0] += CALM_S
        assert files.trouble == ""
        lookups.close()


def test_lookup_replicator_continues_after_a_disk_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lookup_replicator, "ELECT_S", 0.0)
    kept: list[str] = []

    def keep(keeper: LookupReplicator) -> None:
        kept.append(files.trouble)
        if len(kept) < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        keeper._ended.set()

    monkeypatch.setattr(LookupReplicator, "_keep", keep)
    files, store = OptionalFiles(), LookupStore(tmp_path)
    keeper = LookupReplicator("127.0.0.1:1", store, tmp_path, files)
    keeper.start()
    keeper._thread.join(20)
    assert kept == ["", *["look-up tables on disk: No space left on device"] * 2]
    keeper.close()
    store.close()
