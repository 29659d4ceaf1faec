"""Files of what the bus did, for reports: see domain/datasets.py for what is in them.

Only `export` and its command import this package's other modules when they run: they need pyarrow,
which is an extra. `folder`, `files`, `arrow` and `writing` import neither store nor web, so that
whoever reads or makes such files needs no Redis.
"""
