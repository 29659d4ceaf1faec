"""How deliveries went: one row per subscriber and period (hour or day of UTC).

From attempts, by the time they finished:
  events, batches       delivered; a batch is delivered once, in the period of its 2xx
  attempts              requests that were delivered, failed, or answered 410
  throttled             answers that asked to wait (429, 503); these are no attempts
  success_rate          batches / attempts
  attempts_per_batch    attempts / batches: 1 when nothing is tried twice
  took_*                milliseconds of an attempt: p50, p95, p99
  first_*               from a batch's first event to the start of its first attempt
  delivered_*           from a batch's first event to its 2xx
  by_error, by_status   attempts and throttled by error class, and by HTTP status (0: no answer)
From the counters, without any attempts:
  counted_attempts, counted_by_outcome, counted_events, counted_mean_ms, counted_deviation_ms

Percentiles are nearest ranks: the smallest value that is not exceeded by that share, always one
that occurred. Where clocks differ a wait may come out negative, and counts as 0.

Not counted: attempts whose worker died before it could say how they ended, or that the export's
stream had no room for (attempts.overflowed); in counted_*, see spark_jobs/counters.py. A period in
which nothing was tried nor counted has no row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # spark-submit runs this file alone: let it find the others
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routemaster.domain.datasets import ATTEMPTS, COUNTERS
from spark_jobs.counters import increases
from spark_jobs.reading import Export
from spark_jobs.report import by_option, run
from spark_jobs.timeline import BUCKETS

PERCENTS = (50, 95, 99)
COUNTED = ("delivery.attempts", "delivery.time", "delivery.time2", "events.delivered")
KEY = ("subscriber", "period")
# A wait of more than 24 days counts as 24 days: four bytes a value instead of eight.
LONGEST_MS = 2**31 - 1
COUNTS = "map<string,bigint>"


def report(
    attempts: DataFrame,
    counters: DataFrame,
    *,
    by: str = "hour",
    percentiles: bool = True,
    sample: int = 1,
) -> DataFrame:
    """`sample`: percentiles are those of one attempt in so many, chosen by id: always the same."""
    samples = durations() if percentiles else {}
    whole = of_attempts(attempts, by, samples, sample).join(
        of_counters(counters, by), on=list(KEY), how="full"
    )
    return whole.select(
        *KEY,
        *(or_zero(name) for name in TALLIES),
        ratio("batches", "attempts").alias("success_rate"),
        ratio("attempts", "batches").alias("attempts_per_batch"),
        *(at_rank(name, percent) for name in samples for percent in PERCENTS),
        or_empty("by_error", COUNTS),
        or_empty("by_status", "map<int,bigint>"),
        or_zero("counted_attempts"),
        or_empty("counted_by_outcome", COUNTS),
        or_zero("counted_events"),
        "counted_mean_ms",
        "counted_deviation_ms",
    )


TALLIES = ("events", "batches", "attempts", "failed", "gone", "throttled", "first_attempts")


def durations() -> dict[str, Column]:
    took, age = F.col("took_ms"), F.col("age_ms")
    return {
        "took": F.when(tried(), whole_ms(took)),
        "first": F.when(tried() & (F.col("attempt") == 1), whole_ms(age - took)),
        "delivered": F.when(outcome_is("delivered"), whole_ms(age)),
    }


def outcome_is(*outcomes: str) -> Column:
    return F.col("outcome").isin(*outcomes)


def tried() -> Column:
    return outcome_is("delivered", "failed", "gone")


def of_attempts(attempts: DataFrame, by: str, samples: dict[str, Column], sample: int) -> DataFrame:
    """Counted first by what is in the maps too, so that the rows are read once."""
    length_ms = BUCKETS[by] * 1000
    number = F.expr(f"unix_millis(finished_at) div {length_ms}").alias("n")
    chosen = F.lit(True) if sample == 1 else F.pmod(F.xxhash64("id"), F.lit(sample)) == 0
    fine = attempts.groupBy("subscriber", number, "outcome", "error", "http_status").agg(
        F.count(F.lit(1)).alias("rows"),
        F.sum("events").alias("row_events"),
        F.count_if(F.col("attempt") == 1).alias("row_firsts"),
        # Lists, because sorting them costs a third of any sketch; merged on the side of the map.
        *(F.collect_list(F.when(chosen, v)).alias(name) for name, v in samples.items()),
    )
    period = F.timestamp_millis(F.col("n") * length_ms).alias("period")
    return fine.groupBy("subscriber", period).agg(
        total(outcome_is("delivered"), "row_events").alias("events"),
        total(outcome_is("delivered"), "rows").alias("batches"),
        total(tried(), "rows").alias("attempts"),
        total(outcome_is("failed"), "rows").alias("failed"),
        total(outcome_is("gone"), "rows").alias("gone"),
        total(outcome_is("throttled"), "rows").alias("throttled"),
        total(tried(), "row_firsts").alias("first_attempts"),
        tally("error", F.col("error") != "").alias("by_error"),
        tally("http_status", F.lit(True)).alias("by_status"),
        *(F.sort_array(F.flatten(F.collect_list(name))).alias(name) for name in samples),
    )


def of_counters(counters: DataFrame, by: str) -> DataFrame:
    """Mean and deviation come from sums and sums of squares, which merge over anything."""
    wanted = counters.where(F.col("name").isin(*COUNTED))
    grown = increases(wanted, ["subscriber", "name", "outcome"], by)
    sums = (
        grown.withColumnsRenamed({"start": "period", "increase": "rows"})
        .groupBy(*KEY)
        .agg(
            total(F.col("name") == "delivery.attempts", "rows").alias("counted_attempts"),
            total(F.col("name") == "events.delivered", "rows").alias("counted_events"),
            total(F.col("name") == "delivery.time", "rows").alias("ms"),
            total(F.col("name") == "delivery.time2", "rows").cast("double").alias("ms2"),
            tally("outcome", F.col("name") == "delivery.attempts").alias("counted_by_outcome"),
        )
    )
    mean = ratio("ms", "counted_attempts")
    # Rounding may leave a little less than nothing.
    variance = F.greatest(F.lit(0.0), ratio("ms2", "counted_attempts") - mean * mean)
    return sums.where("counted_attempts + counted_events + ms > 0").select(
        *KEY,
        "counted_attempts",
        "counted_by_outcome",
        "counted_events",
        mean.alias("counted_mean_ms"),
        F.sqrt(variance).alias("counted_deviation_ms"),
    )


def whole_ms(value: Column) -> Column:
    return F.greatest(F.lit(0), F.least(value, F.lit(LONGEST_MS))).cast("int")


def total(condition: Column, column: str) -> Column:
    return F.sum(F.when(condition, F.col(column)).otherwise(0))


def tally(key: str, condition: Column) -> Column:
    """A map from key to the sum of `rows`, in the order of its keys."""
    pairs = F.collect_list(F.when(condition & (F.col("rows") > 0), F.struct(key, "rows")))
    keys = F.array_sort(F.array_distinct(F.transform(pairs, lambda pair: pair[key])))

    def sum_of(one: Column) -> Column:
        same = F.filter(pairs, lambda pair: pair[key] == one)
        return F.aggregate(same, F.lit(0).cast("bigint"), lambda sum, pair: sum + pair["rows"])

    return F.map_from_arrays(keys, F.transform(keys, sum_of))


def ratio(part: str, whole: str) -> Column:
    """Null when there is nothing to be a part of."""
    return F.try_divide(F.col(part).cast("double"), F.col(whole).cast("double"))


def at_rank(name: str, percent: int) -> Column:
    """Nearest rank in a sorted list; null when it is empty."""
    count = F.size(name)
    rank = F.expr(f"({percent} * size({name}) + 99) div 100").cast("int")
    value = F.when(count > 0, F.element_at(name, F.greatest(F.lit(1), rank)))
    return value.alias(f"{name}_p{percent}_ms")


def or_zero(name: str) -> Column:
    return F.coalesce(F.col(name), F.lit(0)).alias(name)


def or_empty(name: str, kind: str) -> Column:
    return F.coalesce(F.col(name), F.create_map().cast(kind)).alias(name)


def build(export: Export, options: argparse.Namespace) -> DataFrame:
    rows = report(
        export.read(ATTEMPTS),
        export.read(COUNTERS, with_day_before=True),
        by=options.by,
        percentiles=options.percentiles,
        sample=options.sample,
    )
    return export.only_wanted(rows, "period").orderBy(*KEY)


def more_options(parser: argparse.ArgumentParser) -> None:
    by_option(parser)
    parser.add_argument(
        "--no-percentiles", dest="percentiles", action="store_false", help="twice as fast"
    )
    parser.add_argument(
        "--sample",
        type=positive,
        default=1,
        metavar="N",
        help="percentiles of one attempt in N, where one subscriber has many millions an hour (1)",
    )


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def main(argv: Sequence[str] | None = None) -> int:
    return run("delivery_report", __doc__ or "", build, argv, more_options=more_options)


if __name__ == "__main__":
    sys.exit(main())
