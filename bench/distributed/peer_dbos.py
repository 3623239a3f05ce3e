"""
DBOS on the same PostgreSQL: run by an interpreter of its own, which has it installed.

Prints one JSON line: steps a second for workflows x 5 steps, tasks a second for parallel tasks.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS, DBOSConfig

url, workflows, tasks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
config: DBOSConfig = {
    "name": "bench",
    "system_database_url": url,
    "log_level": "ERROR",
    "run_admin_server": False,
}
DBOS(config=config)


@DBOS.step()  # type: ignore[untyped-decorator]
def nothing(number: int) -> int:
    return number


@DBOS.workflow()  # type: ignore[untyped-decorator]
def chain() -> int:
    return sum(nothing(number) for number in range(5))


@DBOS.workflow()  # type: ignore[untyped-decorator]
def single(number: int) -> int:
    return int(nothing(number))


DBOS.launch()
chain()

began = time.perf_counter()
with ThreadPoolExecutor(64) as pool:
    handles = list(pool.map(lambda _: DBOS.start_workflow(chain), range(workflows)))
    for one in handles:
        one.get_result()
steps = workflows * 5 / (time.perf_counter() - began)

began = time.perf_counter()
with ThreadPoolExecutor(100) as pool:
    list(pool.map(lambda number: DBOS.start_workflow(single, number).get_result(), range(tasks)))
parallel = tasks / (time.perf_counter() - began)

print(json.dumps({"steps": steps, "tasks": parallel}))
sys.stdout.flush()
DBOS.destroy()
