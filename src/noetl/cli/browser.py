"""Opens a page in the browser of whoever sits at this machine, where there is one."""

import html
import os
import sys
import webbrowser

from noetl.private import private_file, private_folder
from noetl.settings import read_settings

PAGE = "open.html"
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")


def open_page(address: str) -> bool:
    """Whether a browser was told; never one that would take over the terminal."""
    has_screen = sys.platform in ("darwin", "win32") or any(os.environ.get(one) for one in SCREENS)
    try:
        return has_screen and webbrowser.open(unseen(address))
    except (webbrowser.Error, OSError):
        return False


def unseen(address: str) -> str:
    """
    The address, or a page of the home that leads to it: a browser is told by its command line,
    which everybody on the machine can read, and a ticket in it could be used by who is quicker.
    """
    if "#" not in address:
        return address
    page = read_settings().home.absolute() / "run" / PAGE
    private_folder(page.parent)
    shown = html.escape(address)
    with os.fdopen(private_file(page, os.O_WRONLY | os.O_TRUNC), "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={shown}">\n')
    return page.as_uri()
