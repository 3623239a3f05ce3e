"""The build backend: hatchling, which asks for Node where a wheel is built and none is there."""

import os
import shutil
from typing import Any

from building import NODE, SWITCH, is_fresh, is_good_enough  # type: ignore[import-not-found]
from hatchling import build as hatchling

build_editable = hatchling.build_editable
build_sdist = hatchling.build_sdist
build_wheel = hatchling.build_wheel
get_requires_for_build_editable = hatchling.get_requires_for_build_editable
get_requires_for_build_sdist = hatchling.get_requires_for_build_sdist


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    asked: list[str] = hatchling.get_requires_for_build_wheel(config_settings)
    there = is_fresh() or is_good_enough(shutil.which("node"))
    return asked if there or os.environ.get(SWITCH) == "0" else [*asked, NODE]
