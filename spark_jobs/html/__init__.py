"""Pages: one file without outside resources, drawn by hand-sized code. Knows nothing of Spark."""
