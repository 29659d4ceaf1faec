"""A bus that never was: traffic, deliveries and known incidents, as the export would have written.

Only numpy, pyarrow and `domain` are imported here; neither Redis nor Spark is needed."""
