"""One turn: what the bus did is in files, once, and gone from Redis."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routemaster.domain.datasets import ATTEMPTS
from routemaster.export.exporter import Exporter, said
from routemaster.export.files import listing
from routemaster.export.folder import Folder
from routemaster.store.exports import Claim
from tests.busses import follow
from tests.export.drained import batches, dropped, once, published, rows, tried
from tests.lua.calls import accepted


@pytest.fixture
def exporter(bus, folder):
    return Exporter(bus, folder)


def test_attempts_become_rows_and_leave_redis(bus, exporter, folder):
    tried(bus, 10)
    assert exporter.turn().rows["attempts"] == 10
    assert batches(folder) == once(10)
    assert bus.link.call("XLEN", bus.keys.attempts) == 0
    row = rows(folder, "attempts")[0]
    assert (row["subscriber"], row["took_ms"], row["age_ms"], row["http_status"]) == (
        "s0",
        9,
        50,
        200,
    )
    assert (row["finished_at"] - row["started_at"]).total_seconds() == 0.009


def test_a_second_turn_exports_only_what_is_new(bus, exporter, folder):
    for first in (0, 5, 10):
        tried(bus, 5, first)
        exporter.turn()
    assert exporter.turn().rows["attempts"] == 0
    assert batches(folder) == once(15)


def test_rows_stand_in_the_partition_of_their_day(bus, exporter, folder):
    tried(bus, 9, days=3)
    exporter.turn()
    files = listing(folder, ATTEMPTS).files
    assert [file.date for file in files] == ["2025-11-18", "2025-11-19", "2025-11-20"]
    assert bus.exports.done_upto("attempts") == files[-1].last
    assert batches(folder) == once(9)


def test_rows_of_two_days_may_come_mixed(bus, exporter, folder):
    tried(bus, 2, days=2)
    tried(bus, 2, 2, days=4)
    tried(bus, 4, 4, days=2)
    exporter.turn()
    assert batches(folder) == once(8)
    assert {file.date for file in listing(folder, ATTEMPTS).files} == {
        "2025-11-18",
        "2025-11-19",
        "2025-11-20",
        "2025-11-21",
    }


def test_drops_become_rows(bus, exporter, folder):
    dropped(bus, 4)
    exporter.turn()
    found = rows(folder, "drops")
    assert [(r["subscriber"], r["events"], r["first_seq"], r["last_seq"]) for r in found] == [
        ("dropper", 1, n, n) for n in (1, 2, 3, 4)
    ]
    assert {row["reason"] for row in found} == {"memory"}
    assert bus.link.call("XLEN", bus.keys.dropped) == 0


def test_minutes_are_exported_when_they_are_over(bus, exporter, folder):
    published(bus, 3)
    follow(bus, "s", "a")
    follow(bus, "t", "a")
    bus.topics.claim(bus.directory.fresh(), "a", "shop")
    table = bus.directory.fresh()
    bus.events.publish(table, table.topics["a"], accepted([1, 22, 333]))
    exporter.turn()
    assert [
        (r["topic"], r["publisher"], r["events"], r["fanout"]) for r in rows(folder, "publishes")
    ] == [("t", "p", 1, 3)] * 3
    [now] = bus.link.call("HGETALL", bus.keys.publishes)[1::2]
    assert now == b"3 6 6"  # this minute: 3 events of 6 bytes, to two subscribers


def test_rows_that_cannot_be_read_do_not_stop_the_others(bus, exporter, folder, caplog):
    for junk in (b"", b"\xc1", b"text", b"\x90", b"\x9e" + b"\xc0" * 14, b"\x9e" + b"\xa0" * 14):
        bus.link.call("XADD", bus.keys.attempts, "*", "a", junk)
    bus.link.call("XADD", bus.keys.attempts, "*", "other", "x", "more", "y")
    tried(bus, 2)
    published(bus, 1)
    bus.link.call("HSET", bus.keys.publishes, "junk", "1 2 3", "1|t|p", "many")
    turn = exporter.turn()
    assert (turn.rows["attempts"], turn.rows["publishes"]) == (2, 1)
    assert batches(folder) == once(2)
    assert "out of=attempts rows=7" in caplog.text and "out of=publishes rows=2" in caplog.text
    assert bus.link.call("EXISTS", bus.keys.attempts, bus.keys.publishes_cut) == 1


def test_json_lines(make_bus, settings, folder):
    bus = make_bus(replace(settings, export_format="jsonl"))
    tried(bus, 3)
    Exporter(bus, folder).turn()
    assert batches(folder) == once(3)
    assert all(file.format == "jsonl" for file in listing(folder, ATTEMPTS).files)


def test_what_overflowed_is_told(bus, exporter, caplog):
    bus.link.call("HSET", bus.keys.counters, "attempts.overflowed", 12)
    exporter.turn()
    exporter.turn()
    assert caplog.text.count("export overflowed rows=12") == 1


@pytest.mark.parametrize(
    "url", ["s3://KEY:s3cret%2Fx@bucket/x", "abfs://b/x?account_key=s3cret%2Fx"]
)
def test_no_secret_of_the_url_is_said(url):
    for text in (f"cannot reach {url}", url, f"bad: '{url}'", "login s3cret%2Fx@bucket failed"):
        if "KEY" in url or "login" not in text:
            assert "s3cret" not in said(OSError(text), url)


def test_a_folder_that_cannot_be_written_keeps_everything_in_redis(bus, tmp_path):
    (tmp_path / "file").touch()
    tried(bus, 3)
    with pytest.raises(OSError):
        Exporter(bus, Folder.of(str(tmp_path / "file" / "below"))).turn()
    assert bus.link.call("XLEN", bus.keys.attempts) == 3


def test_rows_that_another_exporter_published_cannot_be_claimed_again(bus, exporter, folder):
    """It cut them otherwise, so that no file's range would lie within another's."""
    tried(bus, 9)
    slow = bus.exports.oldest("attempts", 8)
    for size in (5, 4):
        cut = bus.exports.oldest("attempts", size)
        claim = Claim(cut[0].label, cut[-1].label)
        assert bus.exports.claim("attempts", claim) == claim
        assert bus.exports.done("attempts", claim)
    assert bus.exports.claim("attempts", Claim(slow[0].label, slow[-1].label)) is None


def test_a_claim_that_no_longer_stands_is_not_done(bus):
    tried(bus, 2)
    first, second = (Claim(row.label, row.label) for row in bus.exports.oldest("attempts", 2))
    assert bus.exports.claim("attempts", first) == first
    assert bus.exports.claim("attempts", second) == first
    assert not bus.exports.done("attempts", second)
    assert bus.link.call("XLEN", bus.keys.attempts) == 2


def test_rows_of_a_restored_backup_that_were_cut_otherwise(bus, folder, monkeypatch):
    tried(bus, 9)
    saved = {key: bus.link.call("DUMP", key) for key in bus.link.call("KEYS", "*")}
    tried(bus, 3, 9)
    monkeypatch.setattr("routemaster.export.drain.MOST_ROWS", 6)
    Exporter(bus, folder).turn()
    monkeypatch.undo()
    bus.link.call("FLUSHALL")
    for key, value in saved.items():
        bus.link.call("RESTORE", key, 0, value)
    tried(bus, 2, 12)
    Exporter(bus, folder).turn()
    assert batches(folder) == once(14)
