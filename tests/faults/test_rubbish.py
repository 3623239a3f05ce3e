"""Rubbish on every way in: each is refused, and the server lives (T14)."""

import asyncio
import http.client
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz.mutate import mutated
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.support.trial import PATIENCE, one_task, sized, trial

from noetl.adapters.nats.library import Client, Msg
from noetl.api.routes import ROUTES

PIECES = sized(300, 10_000)
INBOX = "_INBOX.noetl.worker.default.rubbish"
TAKEN = range(200, 300)
"""Chance may write something valid."""
