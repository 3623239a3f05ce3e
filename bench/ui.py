"""
`python -m bench.ui`: the web UI in Chromium against a server with workers (`make bench-ui`).

Opening, scrolling and following an execution of 10,000 iterations beside one of 100; the longest
task on the main thread; what 50 followers of one busy execution cost the server; the first load.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright
from tests.system.servers import Node, node
from tests.ui.conftest import ALONE, CHROMIUM

from bench.__main__ import COLUMNS, HEADS, row
from bench.figure import Figure
from bench.size import sized
from noetl.api.pages import built_files

FEW, MANY = 100, sized(10_000)
REPEATS = sized(5)
SCROLLS = 60
FOLLOWERS = sized(50, small=5)
BROWSERS = 2
"""Of the followers those that are Chromium; the others ask what a page asks, without drawing it."""
TURNS = sized(3, small=1)
FIRST_LOAD = 250.0
"""Kilobytes of compressed JavaScript that the first page may load."""
LONGEST = 100.0
"""Milliseconds that one task on the main thread may take."""
PATIENCE = 300_000
LOOP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: loop, path: bench/loop{size}}}
workflow:
  - step: start
    tool: [{{go: {{kind: wait, signal: go}}}}]
    next: {{arcs: [{{step: each}}]}}
  - step: each
    loop: {{in: "{{{{ range({size}) | list }}}}", iterator: n, spec: {{mode: parallel}}}}
    tool: [{{one: {{kind: noop}}}}]
"""
SCROLL = f"""async () => {{
  const box = document.querySelector('[role=region][tabindex="0"]');
  const began = performance.now();
  for (let turn = 0; turn < {SCROLLS}; turn++) {{
    box.scrollTop = (box.scrollHeight / {SCROLLS}) * turn;
    await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  }}
  return (performance.now() - began) / {SCROLLS};
}}"""


def start(at: Node, size: int) -> str:
    registered = at.there("register", "-", stdin=LOOP.format(size=size).encode())
    assert registered.code == 0, registered
    begun = at.there("execute", f"bench/loop{size}", "--json")
    return str(begun.objects()[0]["execution_id"])


def go(at: Node, execution_id: str) -> None:
    """It waits until all who follow are there."""
    sent = at.there("signal", execution_id, "go")
    assert sent.code == 0, sent


def figures() -> Iterator[Figure]:
    with (
        TemporaryDirectory() as folder,
        node(Path(folder) / "home", "--open", workers=1) as at,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ALONE))
        yield from in_browser(browser, at)
        yield followed(at, browser)
        browser.close()
    yield Figure.of("UI: first load, compressed", [first_load() / 1000], [FIRST_LOAD], 1.0, "kB")


def in_browser(browser: Browser, at: Node) -> Iterator[Figure]:
    sizes, longest = (MANY, FEW), 0.0
    followed: dict[int, list[float]] = {}
    ids: dict[int, str] = {}
    for size in sizes:
        page, session = window(browser)
        ids[size] = start(at, size)
        before = task_ms(session)
        with traced(browser, page) as tasks:
            page.goto(f"{at.url}/ui/executions/{ids[size]}")
            expect(page.get_by_label("Why it waits")).to_be_visible()
            go(at, ids[size])
            expect(page.locator("header [data-status]")).to_have_text("Completed", timeout=PATIENCE)
            shown(page, size)
        followed[size] = [(task_ms(session) - before) / size]
        longest = max(longest, *tasks)
        page.context.close()
    opened: dict[int, list[float]] = {size: [] for size in sizes}
    scrolled: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(REPEATS):
        for size in sizes:
            page, _session = window(browser)
            with traced(browser, page) as tasks:
                began = time.perf_counter()
                page.goto(f"{at.url}/ui/executions/{ids[size]}")
                shown(page, size)
                opened[size].append((time.perf_counter() - began) * 1000)
                page.get_by_role("tab", name="Events", exact=True).click()
                expect(page.get_by_text("playbook.execution.requested")).to_be_visible()
                scrolled[size].append(page.evaluate(SCROLL))
            longest = max(longest, *tasks)
            page.context.close()
    yield Figure.of("UI: opening a loop", opened[MANY], opened[FEW], 1.5, "ms")
    yield Figure.of("UI: scrolling its events", scrolled[MANY], scrolled[FEW], 1.5, "ms")
    yield Figure.of("UI: following an iteration", followed[MANY], followed[FEW], 1.5, "ms")
    yield Figure.of("UI: longest task of the page", [max(longest, 1.0)], [LONGEST], 1.0, "ms")


def shown(page: Page, size: int) -> None:
    expect(page.get_by_text(f"{size:,} / {size:,}")).to_be_visible(timeout=PATIENCE)


def window(browser: Browser) -> tuple[Page, CDPSession]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    return page, session


@contextmanager
def traced(browser: Browser, page: Page) -> Iterator[list[float]]:
    """
    What each task of the main thread took of the processor, in ms, once this is left.

    Not by the clock: on a machine that has other work, a task waits for its turn. Chromium has
    pages of its own, which are no part of it.
    """
    tasks: list[float] = [0.0]
    browser.start_tracing(page=page, categories=["disabled-by-default-devtools.timeline"])
    yield tasks
    events = json.loads(browser.stop_tracing())["traceEvents"]
    mains = {
        (one["pid"], one["tid"])
        for one in events
        if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }
    shown = [one["args"]["data"] for one in events if one["name"] == "FrameCommittedInBrowser"]
    ours = {one["processId"] for one in shown if one["url"].startswith("http://127.0.0.1:")}
    assert ours, "the trace says which process shows the page"
    tasks += [
        one.get("tdur", 0) / 1000
        for one in events
        if one["name"] == "RunTask" and one["pid"] in ours and (one["pid"], one["tid"]) in mains
    ]


def task_ms(session: CDPSession) -> float:
    """What the main thread has worked by now."""
    told = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in told if one["name"] == "TaskDuration") * 1000)


def followed(at: Node, browser: Browser) -> Figure:
    """
    What one busy execution costs the server, with nobody looking and with all of them.

    Measured in time of its processor: that is what a busy server has too little of, and other
    work on the machine does not change it. Throughput goes as its inverse.
    """
    alone, together = [], []
    for _ in range(TURNS):
        alone.append(cost(at, browser, 0))
        together.append(cost(at, browser, FOLLOWERS))
    name = f"UI: throughput beside {FOLLOWERS} followers"
    beside, without = [MANY / one for one in together], [MANY / one for one in alone]
    return Figure.of(name, beside, without, 0.9, "1/s", at_most=False)


def cost(at: Node, browser: Browser, followers: int) -> float:
    """Seconds of the server's processor, from when all are there until they are told the end."""
    pid = int(at.status()["pid"])
    execution_id = start(at, MANY)
    words = [sys.executable, "-m", "bench.ui", "follow", at.url, execution_id, str(pid)]
    count = max(1, followers - BROWSERS)
    reading = subprocess.Popen([*words, str(count)], stdout=subprocess.PIPE, text=True)
    assert reading.stdout is not None
    real = [window(browser)[0] for _ in range(BROWSERS if followers else 0)]
    for page in real:
        page.goto(f"{at.url}/ui/executions/{execution_id}")
        expect(page.get_by_label("Why it waits")).to_be_visible()
    assert reading.stdout.readline() == "there\n"
    before = processor(pid)
    go(at, execution_id)
    told, _ = reading.communicate(timeout=PATIENCE / 1000)
    for page in real:
        expect(page.locator("header [data-status]")).to_have_text("Completed", timeout=PATIENCE)
        page.context.close()
    return float(told) - before


def processor(pid: int) -> float:
    """Seconds that a process has used, all its threads."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def first_load() -> int:
    """Bytes of the JavaScript that the first page loads, as they are sent."""
    files = built_files()
    loaded = re.findall(r'(?:src|href)="/ui/(assets/[^"]+\.js)"', files["index.html"].body.decode())
    return sum(len(files[name].small) for name in loaded)


async def follow(url: str, execution_id: str, pid: int, followers: int) -> None:
    """As many readers as browsers would be, each asking what a page asks."""
    import aiohttp

    there, ended = 0, 0.0

    async def look(session: aiohttp.ClientSession) -> float:
        began = time.monotonic()
        for part in ("", "/explanation"):
            async with session.get(f"{url}/api/executions/{execution_id}{part}") as answer:
                await answer.read()
        return time.monotonic() - began

    async def read(session: aiohttp.ClientSession) -> None:
        nonlocal there, ended
        took, looked = await look(session), time.monotonic()
        address = f"{url}/api/executions/{execution_id}/stream?after=0&iterations=false"
        async with session.get(address) as answer:
            async for line in answer.content:
                if line == b"event: wait.started\n":
                    there += 1
                    if there == followers:
                        print("there", flush=True)
                if line == b"event: end\n":
                    ended = ended or processor(pid)
                soon = time.monotonic() - looked > max(0.5, 10 * took)
                if line.startswith(b"event: ") and b"counts" not in line and soon:
                    took, looked = await look(session), time.monotonic()
        await look(session)

    limit = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=limit, read_bufsize=2**20) as session:
        await asyncio.gather(*(read(session) for _ in range(followers)))
    print(ended)


def main() -> None:
    print(COLUMNS.format(*HEADS))
    for figure in figures():
        print(row(figure, {}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["follow"]:
        os.nice(5)  # browsers run on machines of their own
        asyncio.run(follow(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
    else:
        main()
