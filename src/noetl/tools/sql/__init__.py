"""The kinds that speak SQL: `postgres`, `duckdb` and `snowflake`."""
