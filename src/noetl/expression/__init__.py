"""Templates: what they mean, and what they may do."""

from importlib import import_module

from noetl.late import import_in_parts

import_in_parts("jinja2")
import_module("jinja2.nodes")  # or `from jinja2 import nodes` would ask the package for it
