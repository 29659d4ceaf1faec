"""The API described: `/openapi.json`, and `/docs` to browse it without outside resources.

The schemas are made of the definitions that requests are checked with (`schemas.py`); what each
operation takes and answers is one table (`operations.py`), which tests run against the bus.
"""
