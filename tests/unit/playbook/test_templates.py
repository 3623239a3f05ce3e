"""What an author is told about a template that does not parse."""

import pytest

from noetl.playbook.templates import Templates


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("{{ a = 1 }}", "expected token '}}', got '='", "compare with '==', not '='"),
        (
            "{{ a && b }}",
            "unexpected character '&'",
            "write 'and', 'or' and 'not', not '&&', '||' and '!'",
        ),
        (
            "{{ a || b }}",
            "expected token 'name', got '|'",
            "write 'and', 'or' and 'not', not '&&', '||' and '!'",
        ),
        (
            "{{ !a }}",
            "unexpected character '!'",
            "write 'and', 'or' and 'not', not '&&', '||' and '!'",
        ),
        ("{{ a == 'b }}", 'unexpected character "\'"', "close the quote"),
        (
            "x {{ a",
            "unexpected end of the text, expected '}}'",
            "close what you opened: '{{' by '}}', '{% if %}' by '{% endif %}'",
        ),
        ("{{ a | to_json }}", "there is no filter named 'to_json'", "did you mean 'tojson'?"),
        ("{{ a is defnd }}", "there is no test named 'defnd'", "did you mean 'defined'?"),
        (
            "{{ a | zzz }}",
            "there is no filter named 'zzz'",
            "fix the expression between '{{' and '}}'",
        ),
    ],
)
def test_the_words_and_the_remedy(text: str, said: str, hint: str) -> None:
    problem = Templates().text(text)
    assert problem is not None
    assert problem.code == "template-syntax"
    assert problem.message == f"the template does not parse: {said}"
    assert problem.hint == hint


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{{{{ {'(' * 61}first + second{') + third' * 61} }}}}", "nested deeper than 60 levels"),
        (f"{{{{ {'not ' * 61}first }}}}", "nested deeper than 60 levels"),
        (f"{{{{ first{' | upper' * 61} }}}}", "nested deeper than 60 levels"),
        (f"{{{{ first{' < first' * 61} }}}}", "more than 60 comparisons in one chain"),
        (f"{{{{ workload{'.step' * 201} }}}}", "a path has more than 200 steps"),
    ],
)
def test_what_is_nested_too_deeply_to_compile(text: str, told: str) -> None:
    problem = Templates().text(text)
    assert problem is not None
    assert told in problem.message


def test_a_long_template_may_be_shallow() -> None:
    assert Templates().text(f"{{{{ workload.{'a' * 500} | default('{'b' * 500}') }}}}") is None


@pytest.mark.parametrize("guard", [True, False, "{{ a }}", " {{ a and b }}\n"])
def test_a_sound_guard(guard: object) -> None:
    assert Templates().guard(guard) is None


@pytest.mark.parametrize("guard", ["a", 1, None, "{{ a }} b", "{{ a }}{{ b }}", ["{{ a }}"]])
def test_a_guard_of_the_wrong_shape(guard: object) -> None:
    problem = Templates().guard(guard)
    assert problem is not None
    assert problem.code == "guard-shape"
    assert problem.message.startswith("a guard is true, false or one whole {{ … }} expression, not")
