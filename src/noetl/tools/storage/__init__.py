"""The kinds that keep objects in buckets: `s3` and `gcs`."""
