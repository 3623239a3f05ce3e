"""The kinds that speak SQL: `postgres` and `duckdb`."""
