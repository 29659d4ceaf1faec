"""The demo data is what a bus would have exported: its datasets agree with each other."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import date, datetime

import pyarrow as pa
import pytest
from click.testing import CliRunner

from routemaster.cli.demo_data import command
from routemaster.demo.simulate import INCIDENTS_FILE, Plan, simulate
from routemaster.domain.datasets import DATASETS
from routemaster.export.files import listing, read_all
from routemaster.export.folder import Folder

PLAN = Plan(days=10, subscribers=17, seed=1, last_day=date(2026, 11, 15))


class Export:
    def __init__(self, root):
        self.root = root
        self.folder = Folder.of(str(root))
        self.incidents = json.loads((root / INCIDENTS_FILE).read_text())["incidents"]
        self._rows = {}

    def rows(self, name):
        if name not in self._rows:
            found = listing(self.folder, DATASETS[name])
            assert found.skipped == []
            table = read_all(self.folder, DATASETS[name], found.files)
            for place, field in enumerate(table.schema):
                if pa.types.is_timestamp(field.type):  # as integers: a tenth of the time
                    table = table.set_column(place, field.name, table[place].cast(pa.int64()))
            self._rows[name] = table.to_pylist()
        return self._rows[name]

    def incident(self, kind):
        return next(one for one in self.incidents if one["kind"] == kind)


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    root = tmp_path_factory.mktemp("demo")
    simulate(PLAN, Folder.of(str(root)), lambda *_: None)
    return Export(root)


def ms(iso):
    return int(datetime.fromisoformat(iso).timestamp() * 1000)


def series(row):
    return tuple(row[tag] for tag in ("name", "subscriber", "topic", "outcome", "reason"))


def increases(rows):
    seen = defaultdict(list)
    for row in rows:
        seen[(*series(row), row["epoch"])].append(row["value"])
    found: dict[tuple[str | None, ...], int] = defaultdict(int)
    for key, values in seen.items():
        found[key[:-1]] += max(values) - min(values)
    return dict(found)


def test_what_counters_gained_is_what_attempts_drops_and_publishes_add_up_to(export):
    expected: dict[tuple[str | None, ...], int] = defaultdict(int)
    for row in export.rows("attempts"):
        who = row["subscriber"]
        expected["delivery.attempts", who, None, row["outcome"], None] += 1
        expected["delivery.time", who, None, None, None] += row["took_ms"]
        expected["delivery.time2", who, None, None, None] += row["took_ms"] ** 2
        if row["outcome"] == "delivered":
            expected["events.delivered", who, None, None, None] += row["events"]
            expected["delivery.latency", who, None, None, None] += row["age_ms"]
    for row in export.rows("drops"):
        expected["events.dropped", row["subscriber"], None, None, row["reason"]] += row["events"]
    for row in export.rows("publishes"):
        expected["events.published", None, row["topic"], None, None] += row["events"]
        expected["events.bytes", None, row["topic"], None, None] += row["bytes"]
    found = increases(export.rows("counters"))
    assert {k: v for k, v in found.items() if k[0] != "events.added"} == expected
    added = sum(value for key, value in found.items() if key[0] == "events.added")
    assert added == sum(row["fanout"] for row in export.rows("publishes"))


def test_counters_begin_again_once_and_never_fall_within_an_epoch(export):
    values = defaultdict(list)
    for row in export.rows("counters"):
        values[(*series(row), row["epoch"])].append((row["taken_at"], row["value"]))
    assert len({key[-1] for key in values}) == 2
    assert all(sorted(v) == sorted(v, key=lambda pair: pair[1]) for v in values.values())
    assert all(min(v)[1] == 0 for v in values.values())


def test_what_is_queued_is_what_came_less_what_left(export):
    counted: dict[tuple[str, int], int] = defaultdict(int)
    first_epoch = min(row["epoch"] for row in export.rows("counters"))
    for row in export.rows("counters"):
        if row["epoch"] == first_epoch and row["name"].startswith("events.") and row["subscriber"]:
            sign = 1 if row["name"] == "events.added" else -1
            counted[row["subscriber"], row["taken_at"]] += sign * row["value"]
    gauges = {
        (row["name"], row["subscriber"], row["taken_at"]): row["value"]
        for row in export.rows("gauges")
    }
    assert {gauges["events.queued", *key] - value for key, value in counted.items()} == {0}
    for (name, who, at), value in gauges.items():
        if name == "events.queued":
            batches = gauges["batches.queued", who, at]
            age = gauges["batches.oldest_age_seconds", who, at]
            assert (value > 0) == (batches > 0) == (age > 0)
            assert batches <= value


def test_memory_is_never_used_above_its_mark_for_long(export):
    used, high = (
        {row["taken_at"]: row["value"] for row in export.rows("gauges") if row["name"] == name}
        for name in ("redis.used_bytes", "redis.high_bytes")
    )
    assert max(used[at] / high[at] for at in used) < 1.01
    assert max(used[at] / high[at] for at in used) > 0.95


def test_health_follows_the_attempts(export):
    ended = defaultdict(list)
    for row in export.rows("attempts"):
        if row["outcome"] != "throttled":
            ended[row["subscriber"]].append((row["finished_at"], row["outcome"] == "delivered"))
    looks = defaultdict(list)
    for row in export.rows("health"):
        looks[row["subscriber"]].append(row)
    for who, rows in looks.items():
        points, failures, place = 100, 0, 0
        past = sorted(ended[who], key=lambda pair: pair[0])
        for row in sorted(rows, key=lambda row: row["taken_at"]):
            while place < len(past) and past[place][0] < row["taken_at"]:
                is_good = past[place][1]
                points = min(100, points + 1) if is_good else max(0, points - 2)
                failures = 0 if is_good else failures + 1
                place += 1
            assert (row["health_points"], row["consecutive_failures"]) == (points, failures)
    states = {state: {row["subscriber"] for row in export.rows("health") if row["state"] == state}
              for state in ("paused", "disabled")}  # fmt: skip
    assert states == {
        "paused": {export.incident("paused")["subscriber"]},
        "disabled": {export.incident("gone")["subscriber"]},
    }


def test_numbers_of_a_lane_have_gaps_only_where_drops_say_so(export):
    spans = defaultdict(set)
    for row in export.rows("attempts"):
        span = (row["first_seq"], row["first_seq"] + row["events"])
        spans[row["subscriber"], row["lane"]].add((*span, row["batch"]))
    for row in export.rows("drops"):
        spans[row["subscriber"], row["lane"]].add(
            (row["first_seq"], row["last_seq"] + 1, row["batch"])
        )
    for found in spans.values():
        following = 1
        for first, end, _ in sorted(found):
            assert first == following
            following = end


def test_a_lane_tries_one_batch_at_a_time_and_counts_its_attempts(export):
    lanes = defaultdict(list)
    for row in export.rows("attempts"):
        assert row["took_ms"] == row["finished_at"] - row["started_at"]
        assert row["created_at"] <= row["started_at"] <= row["finished_at"]
        lanes[row["subscriber"], row["lane"]].append(row)
    for rows in lanes.values():
        rows.sort(key=lambda row: row["started_at"])
        for before, after in zip(rows, rows[1:], strict=False):
            assert before["finished_at"] <= after["started_at"]
            if before["batch"] == after["batch"]:
                assert before["outcome"] != "delivered"
                counted = before["outcome"] != "throttled"
                assert after["attempt"] == before["attempt"] + counted
            else:
                assert after["attempt"] == 1
    ids = [row["id"] for row in export.rows("attempts")]
    assert len(set(ids)) == len(ids)


def test_incidents_are_in_the_data_and_say_so_in_numbers(export):
    kinds = {one["kind"] for one in export.incidents}
    assert kinds >= {
        "outage", "slow", "dead", "flapping", "throttled", "paused", "gone", "spike",
        "counter_epoch", "autodrop",
    }  # fmt: skip
    outage = export.incident("outage")
    from_at, to_at = (ms(outage[end]) for end in ("from", "to"))
    during = [
        row["outcome"]
        for row in export.rows("attempts")
        if row["subscriber"] == outage["subscriber"] and from_at <= row["started_at"] < to_at
    ]
    assert set(during) == {"failed"}
    assert len(during) == outage["numbers"]["failed"]
    assert to_at < outage["numbers"]["recovered_ms"] < to_at + 90_000
    dropped = sum(row["events"] for row in export.rows("drops"))
    assert export.incident("autodrop")["numbers"]["events"] == dropped > 0
    spike = next(one for one in export.incidents if one["kind"] == "spike")
    assert spike["numbers"]["events"] > 4 * spike["numbers"]["usual_events"]


def files(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def demo_data(folder, *words):
    small = ["--days", "1", "--subscribers", "3", "--output", str(folder), *words]
    return CliRunner().invoke(command, small)


def test_the_same_seed_writes_the_same_bytes_and_another_one_others(tmp_path):
    for name, seed in (("one", "1"), ("same", "1"), ("other", "2")):
        assert demo_data(tmp_path / name, "--seed", seed).exit_code == 0
    assert files(tmp_path / "one") == files(tmp_path / "same")
    other = files(tmp_path / "other")
    attempts = next(name for name in other if name.startswith("attempts/"))
    assert files(tmp_path / "one")[attempts] != other[attempts]


def test_demo_data_is_not_mixed_with_an_export(tmp_path):
    (tmp_path / "attempts" / "date=2026-11-15").mkdir(parents=True)
    answer = demo_data(tmp_path)
    assert answer.exit_code == 1
    assert "holds an export already" in answer.output
    assert files(tmp_path) == {}
