"""
One fault for each number of the table of guarantees, and the test of that number that must notice.

`python -m tests.mutants --faults` plants them one at a time; the tests start real processes.
"""

from typing import NamedTuple

from tests.mutants.mutant import Mutant

FLEET = "tests/system/test_fleet_faults.py::"
POINTS = "tests/system/test_fleet_points.py::"


class PlantedFault(NamedTuple):
    """What is broken, and which promise of the table it breaks."""

    number: str
    mutant: Mutant


def planted(number: str, file: str, before: str, after: str, test: str, why: str) -> PlantedFault:
    return PlantedFault(number, Mutant(file, before, after, (test,), why))


OF_FAULTS = (
    planted(
        "T1",
        "server/lease_keeper.py",
        "mine = lease.hold.epoch == hold.epoch and lease.worker == worker",
        "mine = True",
        "tests/conformance/test_wrk_take_over.py::"
        "test_a_worker_of_a_dead_server_is_refused_what_another_has_now",
        "whoever knows a part may report on it",
    ),
    planted(
        "T2",
        "server/leases.py",
        "if lease.until <= now]",
        "if False]",
        FLEET + "test_a_worker_that_froze_past_its_lease_changes_nothing",
        "the lease of a frozen worker never ends",
    ),
    planted(
        "T3",
        "control/dispatch.py",
        "    return None if run.frame is None else copied(run.frame)\n",
        "    return Frame()\n",
        "tests/system/test_kill_resume.py::test_kill_and_resume_end_as_if_nothing_had_happened",
        "whoever goes on begins again with the first task",
    ),
    planted(
        "T4",
        "adapters/nats/wakes.py",
        "                    await self._call_roll()\n",
        "                    await asyncio.sleep(0)\n",
        "tests/faults/test_wake_ups.py::test_whatever_waits_is_found_by_polling",
        "workers do not poll",
    ),
    planted(
        "T5",
        "adapters/nats/line.py",
        "        abort(client)\n        await self.open()\n",
        "        abort(client)\n        self._ears = []\n        await self.open()\n",
        FLEET + "test_a_queue_that_restarts_or_forgets_loses_nothing",
        "a line that is made anew listens to nothing",
    ),
    planted(
        "T6",
        "adapters/postgres/writer.py",
        "        except AWAY:\n            self._drop()\n            raise\n",
        "        except AWAY:\n            self._drop()\n            return []\n",
        "tests/unit/adapters/postgres/test_lost_answers.py::"
        "test_a_backend_that_is_ended_in_the_middle",
        "a commit that a crash cut off is taken for done",
    ),
    planted(
        "T7",
        "server/lease_keeper.py",
        "            self.end(lease, counted=lease.heard)",
        "            self.end(lease, counted=False)",
        "tests/faults/test_namespace.py::"
        "test_a_worker_whose_packets_are_dropped_changes_nothing_and_comes_back",
        "a worker that is cut off does not count as lost",
    ),
    planted(
        "T8",
        "adapters/sqlite/writer.py",
        "            batch.give_up(partial(self._fault, error))\n",
        "",
        "tests/faults/test_full_disk.py::"
        "test_a_parallel_loop_on_a_full_disk_says_so_and_is_resumed",
        "what found no room is confirmed",
    ),
    planted(
        "T9",
        "server/leases.py",
        "        self._clock = clock\n",
        "        self._clock = lambda: time.time()\n",
        POINTS + "test_a_clock_that_jumps_moves_no_lease_and_no_order",
        "leases end by the clock on the wall",
    ),
    planted(
        "T10",
        "server/dispatcher.py",
        "        known = part.taken if hold.epoch == part.epoch else 0",
        "        known = sent.after",
        "tests/conformance/test_wrk.py::test_ten_deliveries_of_everything_leave_one_log",
        "a report that comes again is refused, and its worker stopped",
    ),
    planted(
        "T11",
        "control/decide.py",
        "    elif part.lost >= LEASES:",
        "    elif part.lost > LEASES:",
        "tests/conformance/test_wrk.py::test_a_task_that_loses_three_workers_fails_its_run",
        "a fourth worker dies of a task",
    ),
    planted(
        "T12",
        "api/questions.py",
        "                    if len(found) == limit or seen >= end:",
        "                    if seen >= end:",
        "tests/faults/test_large_log.py::test_a_server_begins_again_by_snapshot_and_tail",
        "a page is as long as the log",
    ),
    planted(
        "T13",
        "api/events.py",
        "            pages = self._plane.follow(execution_id, after=after)\n",
        "            read = [one async for one in self._plane.follow(execution_id, after=after)]\n"
        "\n"
        "            async def whole():\n"
        "                for one in read:\n"
        "                    yield one\n"
        "\n"
        "            pages = whole()\n",
        "tests/unit/api/test_stream.py::"
        "test_a_reader_that_does_not_read_costs_nothing_and_slows_nobody",
        "a whole log waits in memory for its reader",
    ),
    planted(
        "T14",
        "api/texts.py",
        "    except (msgspec.DecodeError, UnicodeError, RecursionError) as wrong:",
        "    except RecursionError as wrong:",
        "tests/faults/test_rubbish.py::test_rubbish_is_refused_and_the_server_lives",
        "a body that is no JSON is a fault of the server",
    ),
    planted(
        "T15",
        "server/library.py",
        "plan = await self.plan_by(requested.digest)  # without writing: others only look\n",
        "newest = await find_entry(self._storage.catalog, requested.path, None)\n"
        "        plan = await self.plan_by(newest.digest if newest else requested.digest)\n",
        POINTS + "test_an_execution_keeps_the_version_that_it_began_with",
        "whoever takes an execution over follows the newest text",
    ),
    planted(
        "T16",
        "server/limits.py",
        "            elif place == 0:\n",
        "            else:\n",
        "tests/faults/test_limits.py::"
        "test_starts_against_four_places_while_servers_and_workers_die[by_step]",
        "a step begins while it waits for its place",
    ),
    planted(
        "T17",
        "control/joins.py",
        "        return len(join.sources)",
        "        return 1",
        "tests/property/test_control.py::test_joins_do_what_a_petri_net_does",
        "`all` means `any`",
    ),
    planted(
        "T18",
        "adapters/memory/limits.py",
        "of_key < claim.at_once)",
        "of_key <= claim.at_once)",
        "tests/simulation/test_simulation.py::test_seeds",
        "one more runs than the limit says",
    ),
    planted(
        "T19",
        "adapters/postgres/database.py",
        "    if version > VERSION:\n",
        "    if version > VERSION + 9000:\n",
        "tests/unit/adapters/postgres/test_database.py::test_a_newer_format_is_left_untouched",
        "a store of a newer release is written to",
    ),
    planted(
        "T20",
        "adapters/sqlite/database.py",
        "pragma synchronous = full",
        "pragma synchronous = off",
        "tests/system/test_durability.py::test_a_sync_comes_before_every_answer_and_every_effect",
        "answers do not wait for the disk",
    ),
    planted(
        "T21",
        "worker/work_loop.py",
        "            await self._drained.wait()  # leases are renewed to the last moment\n",
        "            beating.cancel()\n            await self._drained.wait()\n",
        "tests/faults/test_rolling_restart.py::test_a_worker_that_drains_keeps_what_it_runs",
        "a worker that drains renews no lease",
    ),
    planted(
        "T22",
        "server/ownership.py",
        "        return clock() < owners.sure_until and owners.lapses == self._lapses",
        "        return True",
        "tests/faults/test_stale_owner.py::test_a_stale_owner_runs_nothing_again",
        "a server hands out what may be another's by now",
    ),
    planted(
        "T23",
        "node/control_plane.py",
        "self.storage.log.forget(execution_id)  # the next one with this key may begin it\n",
        "raise\n",
        "tests/faults/test_lost_answer.py::"
        "test_a_start_whose_answer_is_lost_is_asked_again_and_runs",
        "a start that may have happened is said not to have",
    ),
    planted(
        "T24",
        "server/ownership.py",
        "                self._obeying.add(note.note_id)\n",
        "                await self._storage.inbox.discard([note.note_id])\n",
        "tests/faults/test_orders.py::test_every_accepted_cancel_takes_effect[killed]",
        "an order leaves the inbox before it is obeyed",
    ),
    planted(
        "T25",
        "server/ownership.py",
        "            if row.finished_at is None:\n                await self.cancel_child",
        "            if False:\n                await self.cancel_child",
        "tests/faults/test_cancel.py::test_whoever_is_cancelled_leaves_no_child_behind[let go]",
        "children outlive a parent that is cancelled",
    ),
    planted(
        "T26",
        "server/waiting_parts.py",
        "        return self.command.losses >= SUSPECT",
        "        return False",
        "tests/faults/test_poison.py::test_only_the_poisoned_fail",
        "a part that kills workers runs beside others",
    ),
)
