"""
What people call a place in an execution, and type: `charge`, `charge:4`, `charge:4.pay`.

`STEP:I` is iteration I of the step's loop, counted from 0 as `iter.index` is; `/J` behind it is
iteration J of a loop inside it. Where a step ran more than once, `STEP@RUN` says which run. Ids
(EVT-0) are for programs.
"""


def place_of(step: str, task_run_id: str | None = None, *, run: bool = False) -> str:
    """The step with the iterations around a task run, which its id names (EVT-0)."""
    if task_run_id is None:
        return step
    number, *rest = task_run_id.split(".")
    outer, nested = outer_index(task_run_id), rest[1::2]
    name = f"{step}@{number}" if run else step
    if outer is not None:
        name, nested = f"{name}:{outer}", rest[2::2]
    return "".join([name, *(f"/{index_in(one)}" for one in nested)])


def outer_index(task_run_id: str) -> int | None:
    """The iteration of the step's own loop; None where it has none: `{run}.{task}…`."""
    numbers = task_run_id.split(".")
    return index_in(numbers[1]) if len(numbers) % 2 else None


def iteration_place(step: str, iteration_id: str) -> str:
    """The same of an iteration: its tasks have one number more."""
    return place_of(step, f"{iteration_id}.0")


def index_in(number: str) -> int:
    """Ids count from 1; a nested iteration's also names the attempt of its task: `3r2`."""
    return int(number.partition("r")[0]) - 1
