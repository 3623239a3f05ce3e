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


@pytest.mark.parametrize("guard", [True, False, "{{ a }}", " {{ a and b }}\n"])
def test_a_sound_guard(guard: object) -> None:
    assert Templates().guard(guard) is None


@pytest.mark.parametrize("guard", ["a", 1, None, "{{ a }} b", "{{ a }}{{ b }}", ["{{ a }}"]])
def test_a_guard_of_the_wrong_shape(guard: object) -> None:
    problem = Templates().guard(guard)
    assert problem is not None
    assert problem.code == "guard-shape"
    assert problem.message.startswith("a guard is true, false or one whole {{ … }} expression, not")
