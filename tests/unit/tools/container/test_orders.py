"""Inputs are checked before anything is asked of anybody; secrets stay off the command line."""

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.code import ContainerInputs
from noetl.masking import KNOWN
from noetl.messages.outcome import Outcome
from noetl.tools.container.orders import order_of
from noetl.tools.container.outcomes import NOT_RUN, Ran, outcome_of, unstarted
from noetl.tools.container.programs import (
    ContainerRuntime,
    beside,
    environment_file,
    environment_words,
    program_of,
    run_words,
    with_login,
)
from noetl.tools.container.tool import ContainerTool
from noetl.tools.process.capture import Captured, CommandOutput
from noetl.tools.refusal import Refusal

PODMAN = ContainerRuntime("podman", "/usr/bin/podman", {"PATH": "/usr/bin"})
DOCKER = ContainerRuntime("docker", "/usr/bin/docker", {"PATH": "/usr/bin"})


def run(environment: dict[str, str], **inputs: Any) -> Outcome:
    async def call() -> Outcome:
        tool = ContainerTool(environment)
        try:
            return await tool.call(call_of(ContainerInputs(**inputs)), BenchPlace())
        finally:
            await tool.close()

    return asyncio.run(call())


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an option for an image": ({"image": "--privileged"}, {}, "image is '--privileged'"),
    "no image": ({"image": ""}, {}, "image is ''"),
    "a file for an image": ({"image": "docker-archive:/etc/x"}, {}, "image is 'docker-archive:"),
    "a folder for an image": ({"image": "dir:../../x"}, {}, "image is 'dir:../../x'"),
    "another container's network": ({"network": "container:x"}, {}, "network is 'container:x'"),
    "a relative workdir": ({"workdir": "a"}, {}, "expected a path from the root"),
    "a pattern for a variable": ({"env": {"A*": "1"}}, {}, "env has the name 'A*'"),
    "a zero in a variable": ({"env": {"A": "\0"}}, {}, "U+0000"),
    "a zero in an argument": ({"args": ["\0"]}, {}, "U+0000"),
    "a mount without a target": ({"mounts": [{"source": "."}]}, {}, "missing required field"),
    "a mount with more": (
        {"mounts": [{"source": ".", "target": "/a", "mode": "z"}]},
        {},
        "expected source, target and read_only",
    ),
    "a mount that leaves the folder": (
        {"mounts": [{"source": "..", "target": "/a"}]},
        {},
        "leaves the playbook's folder",
    ),
    "a mount to a relative path": (
        {"mounts": [{"source": ".", "target": "a"}]},
        {},
        "mount target is 'a'",
    ),
    "a mount with options": (
        {"mounts": [{"source": ".", "target": "/a,readonly=false"}]},
        {},
        "holds a comma",
    ),
    "a strange resource": ({}, {"resources": {"gpu": 1}}, "spec.resources has no 'gpu'"),
    "no processor": ({}, {"resources": {"cpu": 0}}, "spec.resources.cpu is 0"),
    "a strange amount": ({}, {"resources": {"memory": "much"}}, "spec.resources.memory is 'much'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_inputs_that_cannot_be_are_refused(case: str, tmp_path: Path) -> None:
    given, more, words = REFUSED[case]
    call = call_of(ContainerInputs(**{"image": "a", **given}), folder=str(tmp_path), **more)
    with pytest.raises(Refusal) as refusal:
        order_of(call)
    error = refusal.value.outcome.error
    assert error is not None
    assert error["kind"] == "input"
    assert words in error["message"]


def test_a_mount_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    inputs = ContainerInputs(image="a", mounts=[{"source": "no", "target": "/no"}])
    with pytest.raises(Refusal, match="mount 'no' does not exist"):
        order_of(call_of(inputs, folder=str(tmp_path)))


@pytest.mark.parametrize(
    "given", [{"command": "echo s3cr3t-word"}, {"args": ["-p", "s3cr3t-word"]}]
)
def test_a_secret_is_refused_on_the_command_line(given: dict[str, Any]) -> None:
    KNOWN.add("s3cr3t-word")
    with pytest.raises(Refusal, match="pass it in 'env' or 'stdin'"):
        order_of(call_of(ContainerInputs(image="a", **given)))


@pytest.mark.parametrize(
    "image",
    ["alpine", "alpine:3", "localhost:5000/a/b:1", "r.example/a@sha256:0123", "docker://r.io/a:1"],
)
def test_images_of_registries_are_named_as_usual(image: str) -> None:
    assert order_of(call_of(ContainerInputs(image=image))).image == image


def test_a_mount_shows_no_folder_around_files_of_noetl(tmp_path: Path) -> None:
    """The home of a project often lies in it, beside the playbooks (trust model)."""
    home = tmp_path / "runs" / "home"
    home.mkdir(parents=True)
    for source in (".", "runs", "runs/home"):
        inputs = ContainerInputs(image="a", mounts=[{"source": source, "target": "/in"}])
        with pytest.raises(Refusal, match="files of NoETL itself"):
            order_of(call_of(inputs, folder=str(tmp_path), private=(str(home),)))


ENVIRONMENT = {"TOKEN": "s3cr3t-word", "HOME": "s3cr3t-home", "PEM": "s3cr3t\nlines"}


def test_values_of_the_environment_are_not_on_the_command_line() -> None:
    order = order_of(call_of(ContainerInputs(image="a", env=ENVIRONMENT, stdin="s3cr3t-stdin")))
    with environment_file(order) as file:
        words = run_words(PODMAN, order, "n", "h", environment_words(order, file))
        assert "s3cr3t" not in " ".join(words)
        written = Path(f"/dev/fd/{file}").read_text()
    assert written == "TOKEN=s3cr3t-word\nHOME=s3cr3t-home\n"
    assert beside(order) == {"PEM": "s3cr3t\nlines"}


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "HOME", "CONTAINERS_HELPER_BINARY_DIR", "DOCKER_X", "GODEBUG", "_X"]
)
def test_no_value_for_a_container_steers_the_program_itself(name: str) -> None:
    """LD_PRELOAD would run code of a playbook beside the keys, without any isolation."""
    assert beside(order_of(call_of(ContainerInputs(image="a", env={name: "/x.so"})))) == {}
    for text in ("/x.so:\nb", "/x.so\r", "/x.so:" + "b" * 70_000):
        order = order_of(call_of(ContainerInputs(image="a", env={name: text})))
        with pytest.raises(Refusal, match=rf"env\.{name} cannot have several lines"):
            beside(order)


def test_the_words_for_docker(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    inputs = ContainerInputs(
        image="alpine:3",
        command=["sh", "-c", "echo $1"],
        args=["x"],
        stdin="",
        env={"A": "1"},
        workdir="/w",
        mounts=[{"source": "in", "target": "/in"}],
    )
    resources = {"cpu": 1.5, "memory": "1Gi"}
    order = order_of(call_of(inputs, folder=str(tmp_path), resources=resources))
    assert " ".join(run_words(DOCKER, order, "n-1", "h", environment_words(order, 7))) == (
        "/usr/bin/docker run --name n-1 --label noetl.host=h --quiet --log-driver none"
        " --security-opt no-new-privileges --network none --interactive --workdir /w --cpus 1.5"
        " --memory 1073741824b --memory-swap 1073741824b"
        f" --mount type=bind,source={tmp_path}/in,target=/in,readonly --env-file /dev/fd/7"
        " --entrypoint sh alpine:3 -c echo $1 x"
    )


def test_a_login_lies_in_a_private_file(tmp_path: Path) -> None:
    fields = {"host": "r.example", "username": "u", "password": "p"}
    environment = with_login(PODMAN, tmp_path, fields).environment
    file = Path(environment["REGISTRY_AUTH_FILE"])
    assert environment["DOCKER_CONFIG"] == str(file.parent)
    token = base64.b64encode(b"u:p").decode()
    assert json.loads(file.read_text()) == {"auths": {"r.example": {"auth": token}}}
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_login_that_lacks_something_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="username and password"):
        with_login(PODMAN, tmp_path, {"token": "t"})


@pytest.mark.parametrize(
    ("asked", "words"),
    [(None, "neither podman nor docker is installed"), ("docker", "docker is not installed")],
)
def test_without_a_program_the_message_says_what_to_install(
    tmp_path: Path, asked: Any, words: str
) -> None:
    outcome = run({"PATH": str(tmp_path)}, image="a", engine=asked)
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("container", False)
    assert words in outcome.error["message"]
    assert "apt install podman" in outcome.error["message"]
    assert outcome.block == {**NOT_RUN, "image": "a"}


@pytest.mark.parametrize(
    ("there", "asked", "found"),
    [
        (("podman", "docker"), None, "podman"),
        (("docker",), None, "docker"),
        (("podman", "docker"), "docker", "docker"),
    ],
)
def test_podman_is_looked_for_first(
    tmp_path: Path, there: tuple[str, ...], asked: str | None, found: str
) -> None:
    for name in there:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o700)
    environment = {"PATH": str(tmp_path), "AWS_SECRET_ACCESS_KEY": "s3cr3t"}
    program = program_of(asked, environment)
    assert (program.name, program.environment) == (found, {"PATH": str(tmp_path)})


SAID: dict[str, tuple[str, str, bool]] = {
    "Error: localhost/none:1: image not known": ("missing", "container", False),
    "docker: Error response from daemon: pull access denied for x": ("m", "container", False),
    "Error: reading manifest 9 in r.example/a: manifest unknown": ("m", "container", False),
    "dial tcp: lookup r.example: no such host": ("away", "connection", True),
    "toomanyrequests: You have reached your pull rate limit": ("away", "connection", True),
    "Cannot connect to the Docker daemon at unix:///x": ("away", "connection", True),
    "Error: crun: executable file `x` not found": ("other", "container", False),
    "": ("silent", "container", False),
}


@pytest.mark.parametrize("said", SAID)
def test_what_the_program_says_decides_the_kind(said: str) -> None:
    _, kind, retryable = SAID[said]
    error = unstarted(Ran(engine="docker", image="a"), said).error
    assert error is not None
    assert (error["kind"], error["retryable"]) == (kind, retryable)
    assert "Error: " not in error["message"] or "daemon" in error["message"]


def test_a_container_that_others_killed_may_be_tried_again() -> None:
    printed = CommandOutput(Captured(), Captured())
    error = outcome_of(Ran(engine="docker", image="a", exit_code=137), printed, None).error
    assert error is not None
    assert (error["kind"], error["retryable"]) == ("exit", True)


def test_a_program_that_cannot_be_started_is_an_outcome(tmp_path: Path) -> None:
    (tmp_path / "podman").write_text("no program")
    (tmp_path / "podman").chmod(0o700)
    outcome = run({"PATH": str(tmp_path)}, image="a")
    assert outcome.error is not None
    assert outcome.error["kind"] == "container"
    assert os.strerror(8) in outcome.error["message"]
