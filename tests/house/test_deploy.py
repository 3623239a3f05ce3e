"""What `deploy/` holds can be read by those that it is for, and fits the program."""

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.house.tree import ROOT

from noetl import __version__
from noetl.api.routes import all_routes
from noetl.api.serve import GRACE as REQUESTS_END
from noetl.settings import SETTINGS, Settings, read_settings
from noetl.worker.work_loop import LAST_WORDS

DRAIN = Settings(home=ROOT).drain
FOLDER = ROOT / "deploy"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file() and "secrets" not in path.parts)
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
SERVERS, WORKERS = ("server-1", "server-2"), ("worker",)
VARIABLES_ALONE = {"NOETL_CONFIG", "NOETL_KEY", "NOETL_KEY_FILE"}
OPEN = {route.path for route in all_routes() if route.access == "open"}


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_variable_exists(path: Path) -> None:
    named = set(re.findall(r"\bNOETL_[A-Z_]+[A-Z]\b", path.read_text("utf-8")))
    assert named - VARIABLES_ALONE - {f"NOETL_{field.upper()}" for field in SETTINGS} == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_images_have_the_tag_of_a_version(path: Path) -> None:
    text = path.read_text("utf-8")
    assert ":latest" not in text
    assert set(re.findall(r"\bnoetl:([\w.]+)", text)) <= {__version__}


# ── compose ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [*SERVERS, *WORKERS])
def test_a_service_is_locked_down(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["volumes"]
    assert {"mem_limit", "cpus", "restart"} <= set(service)


@pytest.mark.parametrize("name", [*SERVERS, *WORKERS])
def test_its_environment_can_be_read_as_settings(name: str) -> None:
    given = {**COMPOSE["services"][name]["environment"], "NOETL_CONFIG": ""}
    settings = read_settings(given)
    assert settings.results == "nats"
    assert settings.auth


@pytest.mark.parametrize("name", SERVERS)
def test_servers_are_published_on_loopback_alone(name: str) -> None:
    assert [port.split(":")[0] for port in COMPOSE["services"][name]["ports"]] == ["127.0.0.1"]


def test_workers_have_no_port_and_no_way_to_the_database() -> None:
    worker = COMPOSE["services"]["worker"]
    assert "ports" not in worker
    assert worker["secrets"] == ["worker.toml", "key"]
    assert worker["healthcheck"] == {"disable": True}
    assert worker["deploy"]["replicas"] >= 2


def test_the_stores_have_volumes_and_no_ports() -> None:
    for name in ("postgres", "nats"):
        service = COMPOSE["services"][name]
        assert f"{name}:" in "".join(service["volumes"])
        assert "ports" not in service
    assert set(COMPOSE["volumes"]) == {"postgres", "nats", *SERVERS}


def test_a_worker_shares_no_network_with_the_database() -> None:
    networks = {name: set(service["networks"]) for name, service in COMPOSE["services"].items()}
    assert not networks["worker"] & networks["postgres"]
    for name in ("postgres", "nats"):
        assert all(COMPOSE["networks"][network] == {"internal": True} for network in networks[name])


def test_images_of_others_have_a_whole_version() -> None:
    images = {COMPOSE["services"][name]["image"] for name in ("postgres", "nats")}
    assert {image for image in images if not re.fullmatch(r"[a-z]+:\d+(\.\d+)+", image)} == set()


def test_nats_has_no_monitoring_port() -> None:
    text = (FOLDER / "nats.conf").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert not re.search(r"(?i)\b(https?_port|https?|monitor_port)\b", "\n".join(lines))
    assert all("8222" not in path.read_text("utf-8") for path in FILES)


def test_who_is_told_to_stop_has_the_time_that_it_takes() -> None:
    services = COMPOSE["services"]
    assert seconds(services["worker"]["stop_grace_period"]) > DRAIN + 2 * LAST_WORDS
    assert all(seconds(services[name]["stop_grace_period"]) > REQUESTS_END for name in SERVERS)


def test_no_secret_stands_in_the_file() -> None:
    text = (FOLDER / "compose.yaml").read_text("utf-8")
    assert re.findall(r"://\w+:[^@\s]+@", text) == []
    assert all(secret["file"].startswith("./secrets/") for secret in COMPOSE["secrets"].values())


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """What the script makes, in a copy of the folder; it may not be root here, so nobody owns."""
    made = shutil.copytree(FOLDER, tmp_path / "deploy", ignore=shutil.ignore_patterns("secrets"))
    chown = tmp_path / "bin" / "chown"
    chown.parent.mkdir()
    chown.write_text("#!/bin/sh\n")
    chown.chmod(0o755)
    path = f"{chown.parent}:/usr/bin:/bin"
    first, second = (run(["sh", made / "secrets.sh"], PATH=path) for _ in range(2))
    assert first.count("made: ") == second.count("kept: ") == 7
    return made / "secrets"


def run(words: list[str | Path], **environment: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_secrets_are_what_compose_asks_for(secrets: Path) -> None:
    wanted = {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()}
    assert wanted <= {path.name for path in secrets.iterdir()}
    assert {path.name for path in secrets.iterdir() if path.stat().st_mode & 0o077} == set()


def test_servers_and_workers_read_their_files(secrets: Path) -> None:
    server = read_settings({"NOETL_CONFIG": str(secrets / "server.toml")})
    worker = read_settings({"NOETL_CONFIG": str(secrets / "worker.toml")})
    password = (secrets / "postgres-password").read_text()
    assert server.db == f"postgresql://noetl:{password}@postgres:5432/noetl"
    assert server.queue is not None
    assert worker.queue is not None
    assert server.queue.startswith("nats://server:")
    assert worker.queue.startswith("nats://worker:")
    assert worker.db is None


def test_nats_takes_its_file(secrets: Path) -> None:
    shutil.copy(secrets / "nats-users.conf", secrets.parent / "users.conf")
    program = Path(sys.executable).with_name("nats-server")
    assert "is valid" in run([program, "-t", "-c", secrets.parent / "nats.conf"])


# ── Kubernetes ───────────────────────────────────────────────────────────────────────────────


@cache
def objects() -> dict[tuple[str, str], Any]:
    """Everything that the kustomization lists, by kind and name."""
    folder = FOLDER / "kubernetes"
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))["resources"]
    assert {*listed, "kustomization.yaml"} == {path.name for path in folder.iterdir()}
    found = [each for name in listed for each in yaml.safe_load_all((folder / name).read_text())]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def pod(name: str) -> dict[str, Any]:
    template = objects()["Deployment", name]["spec"]["template"]
    return dict(template["spec"])


PODS = ("noetl-server", "noetl-worker")


def test_the_versions_of_the_interfaces() -> None:
    assert {(each["kind"], each["apiVersion"]) for each in objects().values()} == {
        ("Namespace", "v1"),
        ("ServiceAccount", "v1"),
        ("ConfigMap", "v1"),
        ("Service", "v1"),
        ("Deployment", "apps/v1"),
        ("PodDisruptionBudget", "policy/v1"),
        ("NetworkPolicy", "networking.k8s.io/v1"),
    }


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_locked_down(name: str) -> None:
    spec = pod(name)
    [container] = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 10001
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {
        "/var/lib/noetl",
        "/tmp",
    }
    assert set(container["resources"]["limits"]) >= {"cpu", "memory"}
    assert set(container["resources"]["requests"]) >= {"cpu", "memory"}


@pytest.mark.parametrize("name", PODS)
def test_selectors_find_their_pods(name: str) -> None:
    template = objects()["Deployment", name]["spec"]["template"]["metadata"]["labels"]
    assert objects()["Deployment", name]["spec"]["selector"]["matchLabels"] == template
    assert objects()["PodDisruptionBudget", name]["spec"]["selector"]["matchLabels"] == template
    assert objects()["NetworkPolicy", name]["spec"]["podSelector"]["matchLabels"] == template


def test_the_service_leads_to_the_servers() -> None:
    service = objects()["Service", "noetl"]["spec"]
    labels = objects()["Deployment", "noetl-server"]["spec"]["template"]["metadata"]["labels"]
    [container] = pod("noetl-server")["containers"]
    assert service["selector"] == labels
    assert service["ports"][0]["targetPort"] == container["ports"][0]["name"]


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_probes_ask_what_is_open(probe: str) -> None:
    [container] = pod("noetl-server")["containers"]
    asked = container[probe]["httpGet"]
    assert asked["path"] in OPEN
    assert asked["port"] == container["ports"][0]["name"]


def test_workers_have_no_port_and_are_asked_nothing() -> None:
    [container] = pod("noetl-worker")["containers"]
    assert set(container) & {"ports", "livenessProbe", "readinessProbe", "startupProbe"} == set()
    assert "ingress" not in objects()["NetworkPolicy", "noetl-worker"]["spec"]


@pytest.mark.parametrize(
    ("name", "secrets"),
    [
        ("noetl-server", {"NOETL_DB": "NOETL_DB", "NOETL_QUEUE": "NOETL_QUEUE"}),
        ("noetl-worker", {"NOETL_QUEUE": "WORKER_QUEUE"}),
    ],
)
def test_secrets_are_named_and_settings_can_be_read(name: str, secrets: dict[str, str]) -> None:
    [container] = pod(name)["containers"]
    references = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in container["env"]}
    named = {**secrets, "NOETL_KEY": "NOETL_KEY"}
    assert references == {name: {"name": "noetl", "key": key} for name, key in named.items()}
    given: dict[str, str] = {}
    for source in container["envFrom"]:
        given |= objects()["ConfigMap", source["configMapRef"]["name"]]["data"]
    assert read_settings(given).auth


def test_pods_have_the_time_that_stopping_takes() -> None:
    server = pod("noetl-server")
    pause = int(server["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert server["terminationGracePeriodSeconds"] > pause + REQUESTS_END
    assert pod("noetl-worker")["terminationGracePeriodSeconds"] > DRAIN + 2 * LAST_WORDS


def policy(name: str) -> dict[str, Any]:
    return dict(objects()["NetworkPolicy", name]["spec"])


def test_what_no_policy_names_is_closed() -> None:
    everything = policy("noetl-nothing-else")
    assert everything == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert all(policy(name)["policyTypes"] == ["Ingress", "Egress"] for name in PODS)
    assert "ingress" not in policy("noetl-worker")


def test_a_worker_reaches_neither_the_database_nor_the_machine() -> None:
    rules = policy("noetl-worker")["egress"]
    ports = {port["port"] for rule in rules for port in rule["ports"]}
    assert ports == {53, 4222, 443}
    blocks = [to["ipBlock"] for rule in rules for to in rule.get("to", []) if "ipBlock" in to]
    closed = {network for block in blocks for network in block["except"]}
    assert {"169.254.0.0/16", "10.0.0.0/8", "fe80::/10", "fc00::/7"} <= closed
    web = [rule for rule in rules if {port["port"] for port in rule["ports"]} == {443}]
    assert all("ipBlock" in to for rule in web for to in rule["to"])


# ── the pages about it ───────────────────────────────────────────────────────────────────────


COMMAND = re.compile(r" *(\$ )?(sudo )?(noetl|kubectl|pg_\w+|psql|nats|docker|podman|curl) ")
ON_THE_LINE = re.compile(
    r"://[^\s/:@]+:[^\s@]+@|--from-literal|--password[= ]|\$\{?NOETL_(DB|QUEUE|TOKEN|KEY)\b"
)


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_no_page_puts_a_password_on_a_command_line(path: Path) -> None:
    """Files of settings stand in blocks, too, and may hold one."""
    lines = path.read_text("utf-8").replace("\\\n", " ").splitlines()
    assert [line for line in lines if COMMAND.match(line) and ON_THE_LINE.search(line)] == []


@pytest.mark.parametrize("name", ["failures", "upgrade", "backup"])
def test_the_tests_that_a_page_names_exist(name: str) -> None:
    text = (ROOT / "docs" / "operate" / f"{name}.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert named
    strangers = [
        f"{file}::{test}"
        for file, test in named
        if not (ROOT / file).exists() or f"def {test}" not in (ROOT / file).read_text("utf-8")
    ]
    assert strangers == []


def test_every_row_of_the_table_of_failures_names_its_test() -> None:
    text = (ROOT / "docs" / "operate" / "failures.md").read_text("utf-8")
    rows = [
        line for line in text.splitlines() if line.startswith("| ") and "what fails" not in line
    ]
    assert len(rows) > 25
    assert [row for row in rows if "`tests/" not in row.split("|")[-2]] == []
