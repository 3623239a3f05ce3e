"""NoETL: declarative playbooks, routed as tokens, run as pipelines, kept in a log."""

__version__ = "0.1.0"
