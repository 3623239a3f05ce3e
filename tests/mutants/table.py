"""
Faults that are planted one at a time (`make mutants`), and the tests that must notice each.

A fault is a change of text: `before` stands exactly once in its file, and a house test holds that.
`tests` are chosen to be quick; the whole suite has more that notice.
"""

from tests.mutants.elsewhere import ELSEWHERE
from tests.mutants.of_control import OF_CONTROL

MUTANTS = (*OF_CONTROL, *ELSEWHERE)

FOR_THE_SIMULATION: dict[str, str] = {}
"""`before` of those that no quick test notices, and why only crashes at any moment would."""
