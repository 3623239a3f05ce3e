"""The language: text, model, checks and plan."""

from importlib import import_module

from noetl.late import late_patterns

with late_patterns():
    import_module("yaml")
