"""What the names of the case dialect become, by the place of the template."""

import pytest

from noetl.playbook.dialects.retries import errors_only
from noetl.playbook.dialects.sight import Place, Sight

RETRY = Sight("rule", "http", attempts=4)


@pytest.mark.parametrize(
    ("place", "kind", "old", "new"),
    [
        ("rule", "python", "{{ result.a }}", "{{ outcome.result.a }}"),
        ("rule", "http", "{{ result.a }}", "{{ outcome.result.data.a }}"),
        ("rule", "playbook", "{{ result.a }}", "{{ outcome.result.result.a }}"),
        ("rule", "http", "{{ this.data[0] }}", "{{ outcome.result.data[0] }}"),
        ("rule", "http", "{{ response.status_code }}", "{{ outcome.http.status }}"),
        ("rule", "http", "{{ response.headers['a'] }}", "{{ outcome.http.headers['a'] }}"),
        ("rule", "python", "{{ this.meta.attempt }}", "{{ outcome.meta.attempt }}"),
        ("rule", "python", "{{ this }}", "{{ outcome }}"),
        ("rule", "python", "{{ this.status == 'success' }}", "{{ outcome.status == 'ok' }}"),
        ("rule", "python", "{{ this.error }}", "{{ outcome.error.message }}"),
        ("rule", "python", "{{ this.error.kind }}", "{{ outcome.error.kind }}"),
        ("rule", "python", "{{ this.error is none }}", "{{ outcome.error is none }}"),
        ("rule", "python", "{{ data }} {{ attempt }}", "{{ data }} {{ attempt }}"),
        ("after", "python", "{{ result.a }}", "{{ _prev.a }}"),
        ("after", "http", "{{ response.status_code }}", "{{ _prev.status }}"),
        ("after", "python", "{{ this.status }}", "success"),
        ("after", "python", "was {{ this.status }}", "was {{ 'success' }}"),
        ("after", "python", "{{ this.error }}", "{{ none }}"),
        (
            "after",
            "http",
            "{{ this }}",
            "{{ {'status': 'success', 'data': _prev.data, 'error': none} }}",
        ),
        ("failed", "http", "{{ response.error }}", "{{ iter.failure.message }}"),
        ("failed", "http", "{{ this.status }}", "error"),
        ("router", "http", "{{ result.a }}", "{{ event.result.data.a }}"),
        ("router", "python", "{{ response }}", "{{ event.result }}"),
        ("router", "python", "{{ response.error }}", "{{ event.error.message }}"),
        ("router", "python", "{{ this.success }}", "{{ (not event.error) }}"),
        ("router", "python", "{{ my.result }} {{ results }}", "{{ my.result }} {{ results }}"),
    ],
)
def test_a_name_is_spelled_as_its_place_has_it(place: Place, kind: str, old: str, new: str) -> None:
    assert Sight(place, kind).spelled(old) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{{ attempt < max_attempts }}", "{{ _attempt < 4 }}"),
        ("{{ status_code >= 500 }}", "{{ outcome.http.status >= 500 }}"),
        ("{{ error }}", "{{ outcome.error.message }}"),
        ("{{ error.kind == 'http' }}", "{{ outcome.error.kind == 'http' }}"),
        ("{{ error != none }}", "{{ outcome.error != none }}"),
        ("{{ not success }}", "{{ not (outcome.status == 'ok') }}"),
        ("{{ result.a or data.b }}", "{{ outcome.result.data.a or outcome.result.data.b }}"),
    ],
)
def test_a_retry_has_names_of_its_own(old: str, new: str) -> None:
    assert RETRY.spelled(old) == new


def test_the_result_of_a_loop_is_a_list() -> None:
    assert Sight("router", "python", listed=True).result == "event.result"
    unwrapped = "((outcome.result or []) | map(attribute='data') | list)"
    assert Sight("rule", "http", listed=True).result == unwrapped


@pytest.mark.parametrize(
    ("place", "text", "unknown"),
    [
        ("router", "{{ this.meta }}", "this.meta"),
        ("rule", "{{ response.weather.now }}", "response.weather"),
        ("after", "{{ response.data.weather }}", None),
        ("rule", "{{ weather }}", None),
    ],
)
def test_what_a_place_cannot_see_is_named(place: Place, text: str, unknown: str | None) -> None:
    assert Sight(place, "http").unknown(text) == unknown


def test_a_value_kept_elsewhere_is_read_there() -> None:
    sight = Sight("router", "http", status_code="ctx.a_status_code", error="ctx.a_error")
    text = "{{ response.status_code }} {{ this.error }} {{ this.error.kind }}"
    assert sight.spelled(text) == (
        "{{ ctx.a_status_code }} {{ ctx.a_error.message }} {{ ctx.a_error.kind }}"
    )


@pytest.mark.parametrize(
    ("expression", "only"),
    [
        ("outcome.status == 'error'", True),
        ("outcome.http.status >= 500", True),
        ("outcome.http.status in [429, 503]", True),
        ("outcome.http.status in [202, 503]", False),
        ("outcome.http.status == 202", False),
        ("outcome.error is not none and _attempt < 2", True),
        ("outcome.error.message", True),
        ("not (outcome.status == 'ok')", True),
        ("outcome.error.message or outcome.result.a", False),
        ("outcome.error.message or outcome.http.status == 500", True),
        ("not outcome.error", False),
        ("true", False),
    ],
)
def test_some_conditions_only_an_error_meets(expression: str, only: bool) -> None:
    assert errors_only(expression) is only
