"""Can an outcome be kept, found again, and kept without a secret? (CACHE-1)"""

from collections.abc import Iterator

from noetl.expression.reads import reads
from noetl.playbook.caching import UNCACHED
from noetl.playbook.check_tasks import pipelines_of
from noetl.playbook.model import Cache, Playbook, Task
from noetl.playbook.reader import At, Reader


def check_cache(reader: Reader, playbook: Playbook) -> None:
    lent = {id(task) for task in playbook.workbook.values()}
    secret = frozenset(_secret_names(playbook))
    for tasks in pipelines_of(playbook):
        before: Task | None = None
        for task in tasks:
            cache, at = task.spec.cache, _own(reader, task)
            if cache is not None:
                _check_key(reader, cache, secret, fetched=_is_secret(before))
                if at is not None and (why := _ignored(task, is_lent=id(task) in lent)):
                    reader.report("ignored-key", at, *why)
            before = task


def _own(reader: Reader, task: Task) -> At | None:
    """Where the task itself sets it: defaults may be for other kinds."""
    return reader.places.get(f"{task.place.path}.spec.cache")


def _ignored(task: Task, *, is_lent: bool) -> tuple[str, str] | None:
    if is_lent:
        said = f"the 'cache' of the workbook's task '{task.label}' is never read"
        return said, "move it to the tasks of kind 'workbook' that call it"
    why = UNCACHED.get(task.kind)
    if why is None:
        return None
    return f"a task of kind '{task.kind}' is never cached: it {why}", "remove it"


def _check_key(reader: Reader, cache: Cache, secret: frozenset[str], *, fetched: bool) -> None:
    at = reader.places.get(f"{cache.place.path}.key")
    if at is None:
        return
    for path in reads(cache.key):
        root, name = path[0], path[-1]
        if (root == "_prev" and fetched) or (root in ("ctx", name) and name in secret):
            said = f"the key of the cache reads '{'.'.join(path)}', which holds a secret"
            reader.report("secret-key", at, said, "name the account or the resource instead")
        elif root in ("execution_id", "_attempt"):
            said = f"the key of the cache reads '{root}': no other run finds what is kept under it"
            reader.report("never-found", at, said, "leave it out of the key")


def _is_secret(task: Task | None) -> bool:
    return task is not None and task.kind == "secrets"


def _secret_names(playbook: Playbook) -> Iterator[str]:
    """The keys of `ctx` that tasks of kind `secrets` write."""
    for tasks in pipelines_of(playbook):
        for task in filter(_is_secret, tasks):
            for rule in task.spec.rules or ():
                yield from rule.then.set_ctx
