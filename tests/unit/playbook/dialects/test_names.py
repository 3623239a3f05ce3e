"""Names inside templates are found, respelled and compared, and nothing else of a text changes."""

import pytest

from noetl.playbook.dialects.names import Respelling, paths_read, respelled, revalued

READS = {
    "a name": ("{{ a }}", [("a",)]),
    "attributes and constant keys": (
        "{{ a.b['c'].d[0].1 }}",
        [("a", "b", "c", "d", 0, 1)],
    ),
    "a computed key": ("{{ a[b.c].d }}", [("a",), ("b", "c")]),
    "filters and their arguments": ("{{ a | default(b.c) | int }}", [("a",), ("b", "c")]),
    "tests": ("{{ a is defined and b is not none and c is divisibleby d }}", [*"abcd"]),
    "names of arguments": ("{{ f(x=y, z=w.v) }}", [("f",), ("y",), ("w", "v")]),
    "words and constants": ("{{ a if not b else true }} {{ none }}", [("a",), ("b",)]),
    "texts and mappings": ("{{ {'a': b, c: 'd.e'} }}", [("b",), ("c",)]),
    "several expressions": ("{{ a }} b {{ c.d }}", [("a",), ("c", "d")]),
    "what a loop binds": (
        "{% for x, y in a.b %}{{ x.c + loop.index + d }}{% endfor %}",
        [("a", "b"), ("d",)],
    ),
    "what is set": ("{% set x = a %}{{ x.y }}{{ b }}", [("a",), ("b",)]),
    "comments and raw text": ("{# a #}{% raw %}{{ b }}{% endraw %}{{ c }}", [("c",)]),
    "white space that is cut": ("x {{- a -}} y {%- if b -%} z {%- endif %}", [("a",), ("b",)]),
    "several lines": ("{{ a\n  .b\n  + c }}", [("a", "b"), ("c",)]),
    "no template": ("a.b", []),
    "a fault": ("{{ a. }} {{ 'b }}", []),
}


@pytest.mark.parametrize(("text", "found"), READS.values(), ids=READS)
def test_what_a_template_reads(text: str, found: list[tuple[str | int, ...] | str]) -> None:
    wanted = [(one,) if isinstance(one, str) else one for one in found]
    assert list(paths_read(text)) == wanted


@pytest.mark.parametrize("value", [None, 3, True, ["{{ a }}"], ""])
def test_what_is_no_text_reads_nothing(value: object) -> None:
    assert list(paths_read(value)) == []


def from_vars(path: tuple[str | int, ...]) -> Respelling | None:
    return Respelling(2, f"iter.{path[1]}") if path[0] == "vars" and len(path) > 1 else None


RESPELLED = [
    ("{{vars.x}}", "{{iter.x}}"),
    ("{{  vars . x.y | int  }} vars.x", "{{  iter.x.y | int  }} vars.x"),
    ("{{ vars['x']['y'] }}", "{{ iter.x['y'] }}"),
    (
        "{{ a.vars.x, 'vars.x', vars, f(vars=vars.y) }}",
        "{{ a.vars.x, 'vars.x', vars, f(vars=iter.y) }}",
    ),
    ("{% for vars in a %}{{ vars.x }}{% endfor %}", "{% for vars in a %}{{ vars.x }}{% endfor %}"),
    ("ä {{ vars.ö }} ✓ {{- vars.x }}", "ä {{ iter.ö }} ✓ {{- iter.x }}"),
    ("{{ vars.x\r\n + vars.y }}", "{{ iter.x\r\n + iter.y }}"),
    ("{{ vars.x }", "{{ vars.x }"),
]


@pytest.mark.parametrize(("before", "after"), RESPELLED)
def test_only_the_names_change(before: str, after: str) -> None:
    assert respelled(before, from_vars) == after


STATUS = ("outcome", "status")
COMPARED = [
    ("{{ outcome.status == 'success' }}", "{{ outcome.status == 'ok' }}"),
    ('{{ "success"!=outcome["status"] }}', '{{ "ok"!=outcome["status"] }}'),
    ("{{ outcome.status in ['success', 'x'] }}", "{{ outcome.status in ['ok', 'x'] }}"),
    ("{{ outcome.status not in ('success',) }}", "{{ outcome.status not in ('ok',) }}"),
    ("{{ outcome.status ~ 'success' }}", "{{ outcome.status ~ 'success' }}"),
    ("{{ args.status == 'success' }}", "{{ args.status == 'success' }}"),
    ("{{ outcome.status.x == 'success' }}", "{{ outcome.status.x == 'success' }}"),
    (
        "{{ outcome.status == args.a and 'success' }}",
        "{{ outcome.status == args.a and 'success' }}",
    ),
]


@pytest.mark.parametrize(("before", "after"), COMPARED)
def test_only_what_is_compared_changes(before: str, after: str) -> None:
    assert revalued(before, STATUS, {"success": "ok"}) == after
