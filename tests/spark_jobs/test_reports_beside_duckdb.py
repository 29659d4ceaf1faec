"""The reports on a small demo export: each number beside SQL of another engine over the same files,
and each of the known incidents found."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb
import pytest

from routemaster.demo.simulate import INCIDENTS_FILE, Plan, simulate
from routemaster.domain.datasets import ATTEMPTS, COUNTERS, DROPS, GAUGES, HEALTH, PUBLISHES
from routemaster.export.folder import Folder
from spark_jobs import anomaly_report, backlog_report, delivery_report, slo_report, traffic_report
from spark_jobs.objectives import Objectives
from spark_jobs.outages import find_outages
from spark_jobs.ranking import rank
from spark_jobs.reading import Export
from tests.spark_jobs.oracle import assert_same, by, rows_of

LAST_DAY = date(2026, 11, 15)
END = datetime(2026, 11, 16, tzinfo=UTC)

# Forty seconds: with the other long ones.
pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """As many days as the silence on the last one and the spike before it need: a week before."""
    root = tmp_path_factory.mktemp("demo")
    simulate(Plan(9, 8, 1, LAST_DAY), Folder.of(str(root)), lambda *_: None)
    return root


@pytest.fixture(scope="module")
def incidents(demo) -> list[dict[str, Any]]:
    told = json.loads((demo / INCIDENTS_FILE).read_text())
    return list(told["incidents"])


@pytest.fixture(scope="module")
def frames(spark, demo):
    export = Export(spark, str(demo))
    return {d.name: export.read(d) for d in (ATTEMPTS, COUNTERS, DROPS, GAUGES, HEALTH, PUBLISHES)}


@pytest.fixture(scope="module")
def sql(demo):
    """Rows of a query, as dicts; `{attempts}` is the dataset's files."""
    # Nothing is downloaded: without its extension for time zones, times are asked for in numbers.
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "threads": "2"})

    def ask(query: str) -> list[dict[str, Any]]:
        names = ("attempts", "counters", "drops", "gauges", "publishes")
        files = {name: f"read_parquet('{demo}/{name}/*/*.parquet')" for name in names}
        rows = connection.sql(query.format(**files)).to_arrow_table().to_pylist()
        return [dated(row) for row in rows]

    yield ask
    connection.close()


def dated(row: dict[str, Any]) -> dict[str, Any]:
    """With the beginning of its day as the reports say it."""
    if "day" not in row:
        return row
    day = datetime.fromtimestamp(86_400 * row["day"], UTC)
    return {name: value for name, value in row.items() if name != "day"} | {"start": day}


def picked(rows, *names):
    return [{name: row[name] for name in names} for row in rows]


def test_traffic_by_topic_is_what_duckdb_adds_up(frames, sql):
    found = rows_of(traffic_report.topics(frames["publishes"], "day"))

    expected = sql("""
        with sums as (
          select topic, publisher, epoch_ms(minute) // 86400000 as day,
            sum(events)::bigint as events, sum(bytes)::bigint as bytes,
            sum(fanout)::bigint as fanout
          from {publishes} group by all)
        select *, bytes / events as bytes_per_event, fanout / events as fanout_per_event,
          events / sum(events) over (partition by day) as share
        from sums
    """)
    assert_same(found, expected, "topic", "publisher", "start")


def test_what_subscribers_cost_is_what_duckdb_adds_up(frames, sql):
    found = rows_of(traffic_report.costs(frames["attempts"], frames["gauges"], "day"))

    expected = sql("""
        with sent as (
          select subscriber, epoch_ms(finished_at) // 86400000 as day,
            count(*) as attempts, count(*) filter (outcome <> 'delivered') as failed_attempts,
            coalesce(sum(events) filter (outcome = 'delivered'), 0)::bigint as events,
            sum(bytes)::bigint as bytes, sum(took_ms) / 1000 as slot_seconds,
            coalesce(sum(took_ms) filter (outcome <> 'delivered'), 0) / 1000
              as failed_slot_seconds
          from {attempts} group by all)
        select *, attempts / sum(attempts) over (partition by day) as attempts_share,
          slot_seconds / sum(slot_seconds) over (partition by day) as slot_share
        from sent
    """)
    sent = [row for row in found if row["attempts"]]
    assert_same(picked(sent, *expected[0]), expected, "subscriber", "start")


def test_attainment_is_what_duckdb_counts(frames, sql):
    found = rows_of(slo_report.attainment(frames["attempts"], frames["drops"], Objectives(), END))

    expected = sql("""
        with fates as (
          select subscriber, events, if(age_ms <= 5000, 'good', 'late') as fate
            from {attempts} where outcome = 'delivered'
          union all select subscriber, events, 'dropped' from {drops}
          union all select subscriber, arg_max(events, finished_at), 'overdue' from {attempts} a
            where not exists (select 1 from {drops} d where d.batch = a.batch)
            group by subscriber, batch
            having max(age_ms) > 5000 and count(*) filter (outcome = 'delivered') = 0)
        select subscriber, 'whole' as "window", sum(events)::bigint as events,
          coalesce(sum(events) filter (fate = 'good'), 0)::bigint as good,
          coalesce(sum(events) filter (fate = 'late'), 0)::bigint as late,
          coalesce(sum(events) filter (fate = 'dropped'), 0)::bigint as dropped,
          coalesce(sum(events) filter (fate = 'overdue'), 0)::bigint as overdue
        from fates group by subscriber
    """)
    whole = [row for row in found if row["window"] == "whole"]
    assert_same(picked(whole, *expected[0]), expected, "subscriber", "window")


def test_events_in_and_out_are_the_increase_of_the_counters_over_a_new_epoch(frames, sql):
    found = rows_of(backlog_report.depth(frames["gauges"], frames["counters"], "day"))

    expected = sql("""
        with series as (
          select subscriber, name, max(value) - min(value) as grown from {counters}
          where name in ('events.added', 'events.delivered', 'events.dropped')
          group by subscriber, name, epoch, topic, publisher, outcome, reason)
        select subscriber, name, sum(grown)::bigint as grown from series group by all
    """)
    flows = set(backlog_report.FLOWS)
    assert {row["name"] for row in expected} == flows and len(by(found, "subscriber")) == 8
    for row in expected:
        flow = backlog_report.FLOWS[row["name"]]
        mine = sum(day[flow] for day in found if day["subscriber"] == row["subscriber"])
        assert mine == row["grown"], row


def test_deliveries_and_their_percentiles_are_what_duckdb_counts(frames, sql):
    found = rows_of(delivery_report.report(frames["attempts"], frames["counters"], by="day"))

    expected = sql("""
        with sent as (
          select *, epoch_ms(finished_at) // 86400000 as day, outcome <> 'throttled' as tried
            from {attempts}),
        sums as (
          select subscriber, day,
            coalesce(sum(events) filter (outcome = 'delivered'), 0)::bigint as events,
            count(*) filter (outcome = 'delivered') as batches, count(*) filter (tried) as attempts,
            count(*) filter (outcome = 'failed') as failed,
            count(*) filter (outcome = 'gone') as gone,
            count(*) filter (outcome = 'throttled') as throttled,
            count(*) filter (tried and attempt = 1) as first_attempts,
            list_sort(list(took_ms) filter (tried)) as took,
            list_sort(list(greatest(0, age_ms - took_ms)) filter (tried and attempt = 1)) as first,
            list_sort(list(age_ms) filter (outcome = 'delivered')) as delivered
          from sent group by all)
        select * exclude (took, first, delivered),
          batches / attempts as success_rate, took[(95 * len(took) + 99) // 100] as took_p95_ms,
          first[(50 * len(first) + 99) // 100] as first_p50_ms,
          delivered[(99 * len(delivered) + 99) // 100] as delivered_p99_ms
        from sums where attempts > 0
    """)
    starts = [{**row, "start": row["period"]} for row in found if row["attempts"]]
    assert_same(picked(starts, *expected[0]), expected, "subscriber", "start")


def test_outages_are_the_incidents_and_the_ranking_counts_what_duckdb_does(
    spark, frames, incidents, sql
):
    outages = find_outages(frames["attempts"], frames["gauges"]).toArrow()
    found = outages.to_pylist()

    known = [one for one in incidents if one["kind"] in ("outage", "dead")]
    assert {one["kind"] for one in known} == {"outage", "dead"}
    for one in known:
        (mine,) = [
            row
            for row in found
            if row["subscriber"] == one["subscriber"] and row["seconds"] >= 1_800
        ]
        numbers = one["numbers"]
        assert mine["started_at"] == at_ms(numbers["first_failure_ms"])
        assert mine["ended_at"] == at_ms(numbers["recovered_ms"])
        assert mine["failures"] == numbers["failed"]
        assert mine["error"] == one["detail"]["error"]
        assert mine["most_queued"] == numbers["most_events_waiting"]

    ranked = rows_of(rank(frames["attempts"], frames["health"], spark.createDataFrame(outages)))

    expected = sql("""
        select subscriber, count(*) filter (outcome <> 'throttled') as attempts,
          count(*) filter (outcome in ('failed', 'gone')) as failed,
          max(finished_at) filter (outcome = 'delivered') as last_delivered_at
        from {attempts} group by subscriber
    """)
    assert_same(picked(ranked, *expected[0]), expected, "subscriber")
    (dead,) = [one["subscriber"] for one in known if one["kind"] == "dead"]
    assert [row["subscriber"] for row in ranked if row["is_dead"]] == [dead]


def at_ms(ms: int | None) -> datetime | None:
    return None if ms is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def test_every_loss_is_in_one_range_and_has_its_incident(frames, incidents, sql):
    found = rows_of(backlog_report.losses(frames["drops"]))

    totals = sql("""
        select subscriber, sum(events)::bigint as events, count(*) as batches,
          min(first_seq) as first_seq, max(last_seq) as last_seq from {drops} group by subscriber
    """)
    known = [
        {"subscriber": one["subscriber"], **one["numbers"]}
        for one in incidents
        if one["kind"] == "autodrop"
    ]
    assert_same(totals, known, "subscriber")
    for row in totals:
        mine = [one for one in found if one["subscriber"] == row["subscriber"]]
        assert sum(one["events"] for one in mine) == row["events"]
        assert sum(one["last_seq"] - one["first_seq"] + 1 for one in mine) == row["events"]


def alarms_on(frames, day):
    return rows_of(
        anomaly_report.alarms(frames["attempts"], frames["publishes"], frames["gauges"], day)
    )


@pytest.mark.parametrize(("kind", "direction"), [("silence", "down"), ("spike", "up")])
def test_a_topics_unusual_traffic_is_found_and_who_had_none_is_not(
    frames, incidents, kind, direction, sql
):
    (incident,) = [one for one in incidents if one["kind"] == kind][-1:]
    since = datetime.fromisoformat(incident["from"])

    found = alarms_on(frames, since.date())

    topics = [row for row in found if row["kind"] == "topic"]
    assert {row["name"] for row in topics} == {incident["topic"]}
    assert {row["direction"] for row in topics} == {direction}
    assert all(row["until"] > since for row in topics)
    troubled = {one["subscriber"] for one in incidents if one.get("subscriber")}
    quiet = [row for row in found if row["name"] not in troubled and row["kind"] == "subscriber"]
    # Who follows the topic had the same in that time; nobody had anything else.
    assert {row["measure"] for row in quiet} <= {"events"}
    assert all(row["since"] < datetime.fromisoformat(incident["to"]) for row in quiet)
    assert all(row["until"] > since - timedelta(hours=1) for row in quiet)
