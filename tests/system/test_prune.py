"""`noetl prune` as a program: on a home, and at a server (KEEP-1)."""

from pathlib import Path

import pytest
from tests.system.servers import FAILING, Node, node

DONE = FAILING.replace(b"exit 3", b"exit 0").replace(b"failing", b"done")


@pytest.mark.rule("KEEP-1")
def test_prune_looks_asks_and_removes(tmp_path: Path) -> None:
    with node(tmp_path / "home") as up:
        for where in (up.here, up.there):
            ids = []
            for text, path in ((FAILING, "tests/failing"), (DONE, "tests/done")):
                assert up.there("register", "-", stdin=text).code == 0
                ran = up.there("execute", path, "--wait", "--json")
                ids.append(ran.objects()[0]["execution_id"])
            chosen = ("prune", "--older-than", "0s", "--status", "failed", "--path", "tests/f*")
            looked = where(*chosen, "--dry-run")
            assert (looked.code, looked.out.splitlines()) == (
                0,
                [ids[0], "would remove 1 execution"],
            ), looked
            unasked = where(*chosen)
            assert unasked.code == 3
            assert "give --yes" in unasked.err
            place = "results" if where == up.there else str(tmp_path / "kept")
            done = where(*chosen, "--yes", "--archive", place, "--json")
            [told] = done.objects()
            assert (done.code, told["executions"], told["ids"]) == (0, 1, ids[:1]), done
            shown = [row["execution_id"] for row in up.there("list", "--json").objects()]
            assert shown == ids[1:]
            folder = tmp_path / "home" / "results" if place == "results" else Path(place)
            assert (folder / "archive" / f"{ids[0]}.jsonl").exists()
            rest = where("prune", "--older-than", "0s", "--yes")
            assert rest.out.splitlines() == ["removed 1 execution and 0 results"]
            assert where("prune", "--older-than", "0s").out.splitlines() == ["nothing to remove"]


@pytest.mark.rule("KEEP-1")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--older-than", "soon"], "'soon' is not an age"),
        (["--older-than", "1d", "--label", "team"], "'team' is not a label"),
        ([], "Missing option '--older-than'"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, words: list[str], says: str) -> None:
    answer = Node(tmp_path).here("prune", *words)
    assert answer.code == 3
    assert says in answer.err
