"""AWS Secrets Manager: the signature beside botocore's, and the API against moto."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.keychain.conftest import Asker

from noetl.errors import CredentialMissing, CredentialUnavailable
from noetl.keychain.asking import ProviderAnswer
from noetl.keychain.providers.aws import AwsProvider, Signer, text_in

pytestmark = pytest.mark.rule("KEY-3")

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "AWS_REGION": "eu-central-1",
}


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    from moto.server import ThreadedMotoServer  # slow, and every process collects this file

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def manager(moto: str) -> Any:
    import boto3

    return boto3.client(
        "secretsmanager",
        endpoint_url=moto,
        region_name="eu-central-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


@pytest.mark.parametrize("session", [None, "a-session-token"])
@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://secretsmanager.eu-central-1.amazonaws.com/", b'{"SecretId":"x"}'),
        ("http://127.0.0.1:5000", b""),
        ("https://example.com/a path/ü", b"body"),
    ],
)
def test_the_signature_is_the_same_as_botocores(url: str, body: bytes, session: str | None) -> None:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    at = datetime(2024, 2, 29, 23, 59, 58, tzinfo=UTC)
    given = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "a.B"}
    signer = Signer(
        access_key_id="AKIDEXAMPLE",
        secret_access_key="secret/key+x",
        region="eu-central-1",
        service="secretsmanager",
        session_token=session,
    )
    headers = signer.headers("POST", url, body, given, at)

    theirs = SigV4Auth(
        Credentials("AKIDEXAMPLE", "secret/key+x", session), "secretsmanager", "eu-central-1"
    )
    request = AWSRequest("POST", url, headers=given, data=body)
    request.context["timestamp"] = at.strftime("%Y%m%dT%H%M%SZ")
    request.headers["X-Amz-Date"] = request.context["timestamp"]
    if session:
        request.headers["X-Amz-Security-Token"] = session
    canonical = theirs.canonical_request(request)
    signature = theirs.signature(theirs.string_to_sign(request, canonical), request)
    assert headers["authorization"].endswith(f"Signature={signature}")
    assert headers["x-amz-date"] == "20240229T235958Z"


@pytest.mark.parametrize(
    ("name", "made", "text"),
    [
        ("plain", {"SecretString": "from-aws"}, "from-aws"),
        ("fields", {"SecretString": '{"user":"u"}'}, '{"user":"u"}'),
        ("bytes", {"SecretBinary": b"in bytes"}, "in bytes"),
        ("no text", {"SecretBinary": b"\xff\xfe"}, "//4="),
    ],
)
async def test_a_secret_is_read(
    name: str, made: dict[str, Any], text: str, manager: Any, moto: str, asking: Asker
) -> None:
    made_there = manager.create_secret(Name=f"{name}/x", **made)
    asked = AwsProvider(asking, {**ENVIRONMENT, "AWS_ENDPOINT_URL": moto})
    assert await asked.fetch(f"{name}/x", None) == text
    assert await asked.fetch(made_there["ARN"], None) == text


async def test_a_credential_opens_it(manager: Any, moto: str, asking: Asker) -> None:
    manager.create_secret(Name="by/login", SecretString="from-aws")
    login = {
        "access_key_id": "a",
        "secret_access_key": "b",
        "region": "eu-central-1",
        "endpoint_url": moto,
    }
    assert await AwsProvider(asking, {}).fetch("by/login", login) == "from-aws"


async def test_a_secret_that_is_not_there_is_said(moto: str, asking: Asker) -> None:
    asked = AwsProvider(asking, {**ENVIRONMENT, "AWS_ENDPOINT_URL_SECRETS_MANAGER": moto})
    with pytest.raises(CredentialMissing, match=r"'nowhere' cannot be read .ResourceNotFound"):
        await asked.fetch("nowhere", None)


@pytest.mark.parametrize("lost", ENVIRONMENT)
async def test_without_keys_or_region_it_says_what_to_set(lost: str, asking: Asker) -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != lost}
    with pytest.raises(CredentialMissing, match="set AWS_ACCESS_KEY_ID"):
        await AwsProvider(asking, environment).fetch("x", None)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("ThrottlingException", CredentialUnavailable),
        ("com.amazonaws#ThrottlingException", CredentialUnavailable),
        ("AccessDeniedException", CredentialMissing),
        ("UnrecognizedClientException", CredentialMissing),
    ],
)
def test_a_refusal_says_whether_to_try_again(kind: str, fault: type[Exception]) -> None:
    with pytest.raises(fault, match="'x' cannot be read"):
        text_in(ProviderAnswer(400, {"__type": kind, "message": "no"}), "x")


async def test_a_manager_that_is_not_there_may_come_back(asking: Asker) -> None:
    asked = AwsProvider(asking, {**ENVIRONMENT, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    with pytest.raises(CredentialUnavailable, match="cannot be asked"):
        await asked.fetch("x", None)


@pytest.mark.parametrize(
    ("key", "login", "says"),
    [
        ("db", {"endpoint_url": "http://127.0.0.1:1"}, "needs access_key_id, secret_access_key"),
        ("arn:aws:secretsmanager:evil.example/:1:secret:db", None, "is not a region"),
        ("db", {"region": "evil.example/#"}, "is not a region"),
    ],
)
async def test_the_worker_s_own_key_signs_nothing_for_others(
    asking: Asker, key: str, login: dict[str, Any] | None, says: str
) -> None:
    """A signature and a session token would reach whoever the playbook names."""
    with pytest.raises(CredentialMissing, match=says):
        await AwsProvider(asking, ENVIRONMENT).fetch(key, login)
