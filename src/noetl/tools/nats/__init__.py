"""The kind that talks to NATS."""
