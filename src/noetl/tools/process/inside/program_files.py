"""
Where the program itself lies. Whoever changes a file there has code in the next process of NoETL:
in a child before it is confined, or in the worker, which loads much when it is first needed.
"""

import os
import pwd
import sys

SYSTEM = "/usr/"
"""Of the machine: nobody but root writes there, and root may have to."""


def program_folders() -> list[str]:
    """
    Folders of Python, of the packages and of NoETL that this user could write to, and the cache of
    uv: it gives files of packages a second name there.
    """
    package = os.path.realpath(__file__)
    for _ in range(4):
        package = os.path.dirname(package)
    around = os.path.dirname(package)
    places = [
        around if around.endswith("-packages") else package,
        os.path.dirname(os.path.dirname(os.path.abspath(sys.executable))),
        sys.prefix,
        sys.base_prefix,
        f"{home_of_user()}/.cache/uv",
    ]
    own = [place for place in map(os.path.realpath, places) if is_own(place)]
    return [place for place in dict.fromkeys(own) if not any(map(place.startswith, below(own)))]


def home_of_user() -> str:
    """By the system: a child has another HOME. A number without a name has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def below(places: list[str]) -> list[str]:
    return [f"{place}/" for place in places]


def is_own(place: str) -> bool:
    return place != "/" and not f"{place}/".startswith(SYSTEM) and os.access(place, os.W_OK)
