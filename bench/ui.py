"""
`python -m bench.ui`: the web UI in Chromium against a server with workers (`make bench-ui`).

Opening, scrolling and following an execution of 10,000 iterations beside one of 100; the longest
task on the main thread; and what 50 followers of one busy execution cost the server.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright
from tests.system.servers import Node, node
from tests.ui.conftest import ALONE, CHROMIUM

from bench.__main__ import COLUMNS, HEADS, row
from bench.figure import Figure
from bench.size import sized

FEW, MANY = 100, sized(10_000)
REPEATS = sized(5)
SCROLLS = 60
FOLLOWERS = sized(50, small=5)
TURNS = sized(3, small=1)
LONGEST = 100.0
"""Milliseconds that one task on the main thread may take."""
PATIENCE = 300_000
LOOP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: loop, path: bench/loop{size}}}
workflow:
  - step: each
    loop: {{in: "{{{{ range({size}) | list }}}}", iterator: n, spec: {{mode: parallel}}}}
    tool: [{{one: {{kind: noop}}}}]
"""
WATCH = """
window.longest = 0;
new PerformanceObserver((all) => {
  for (const one of all.getEntries()) window.longest = Math.max(window.longest, one.duration);
}).observe({type: "longtask", buffered: true});
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


def figures() -> Iterator[Figure]:
    with (
        TemporaryDirectory() as folder,
        node(Path(folder) / "home", "--open", workers=1) as at,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ALONE))
        yield from in_browser(browser, at)
        browser.close()
        yield followed(at)


def in_browser(browser: Browser, at: Node) -> Iterator[Figure]:
    sizes, longest = (MANY, FEW), 0.0
    followed: dict[int, list[float]] = {}
    ids: dict[int, str] = {}
    for size in sizes:
        page, session = window(browser)
        ids[size] = start(at, size)
        page.goto(f"{at.url}/ui/executions/{ids[size]}")
        before = task_ms(session)
        expect(page.locator("header [data-status]")).to_have_text("Completed", timeout=PATIENCE)
        expect(page.get_by_text(f"{size:,} / {size:,}")).to_be_visible(timeout=PATIENCE)
        followed[size] = [(task_ms(session) - before) / size]
        longest = max(longest, page.evaluate("window.longest"))
        page.context.close()
    opened: dict[int, list[float]] = {size: [] for size in sizes}
    scrolled: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(REPEATS):
        for size in sizes:
            page, _session = window(browser)
            began = time.perf_counter()
            page.goto(f"{at.url}/ui/executions/{ids[size]}")
            expect(page.get_by_text(f"{size:,} / {size:,}")).to_be_visible(timeout=PATIENCE)
            opened[size].append((time.perf_counter() - began) * 1000)
            page.get_by_role("tab", name="Events").click()
            expect(page.get_by_text("events").first).to_be_visible()
            scrolled[size].append(page.evaluate(SCROLL))
            longest = max(longest, page.evaluate("window.longest"))
            page.context.close()
    yield Figure.of("UI: opening a loop", opened[MANY], opened[FEW], 1.5, "ms")
    yield Figure.of("UI: scrolling its events", scrolled[MANY], scrolled[FEW], 1.5, "ms")
    yield Figure.of("UI: following an iteration", followed[MANY], followed[FEW], 1.5, "ms")
    yield Figure.of("UI: longest task of the page", [max(longest, 1.0)], [LONGEST], 1.0, "ms")


def window(browser: Browser) -> tuple[Page, CDPSession]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.add_init_script(WATCH)
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    return page, session


def task_ms(session: CDPSession) -> float:
    """What the main thread has worked by now."""
    told = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in told if one["name"] == "TaskDuration") * 1000)


def followed(at: Node) -> Figure:
    """Iterations a second with the followers, beside those without."""
    alone, together = [], []
    for _ in range(TURNS):
        alone.append(rate(at, 0))
        together.append(rate(at, FOLLOWERS))
    name = f"UI: throughput beside {FOLLOWERS} followers"
    return Figure.of(name, together, alone, 0.9, "1/s", at_most=False)


def rate(at: Node, followers: int) -> float:
    execution_id = start(at, MANY)
    words = [sys.executable, "-m", "bench.ui", "follow", at.url, execution_id, str(followers)]
    reading = subprocess.Popen(words) if followers else None
    ended = at.there("status", execution_id, "--json").objects()[0]
    while ended["status"] == "running":
        at.there("events", execution_id, "--follow", "--name", "playbook.completed")
        ended = at.there("status", execution_id, "--json").objects()[0]
    if reading is not None:
        assert reading.wait(60) == 0
    return float(MANY / (int(ended["duration_ms"]) / 1000))


async def follow(url: str, execution_id: str, followers: int) -> None:
    """As many readers as browsers would be, each with its own stream from the beginning."""
    import aiohttp

    async def read(session: aiohttp.ClientSession) -> None:
        async with session.get(f"{url}/api/executions/{execution_id}/stream") as answer:
            async for _ in answer.content.iter_any():
                pass

    limit = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=limit, read_bufsize=2**20) as session:
        await asyncio.gather(*(read(session) for _ in range(followers)))


def main() -> None:
    print(COLUMNS.format(*HEADS))
    for figure in figures():
        print(row(figure, {}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["follow"]:
        os.nice(5)  # browsers run on machines of their own
        asyncio.run(follow(sys.argv[2], sys.argv[3], int(sys.argv[4])))
    else:
        main()
