"""
Faults that are planted one at a time (`make mutants`), and the tests that must notice each.

A fault is a change of text: `before` stands exactly once in its file, and a house test holds that.
`tests` are chosen to be quick; the whole suite has more that notice.
"""

from tests.mutants.elsewhere import ELSEWHERE
from tests.mutants.mutant import SIMULATION
from tests.mutants.of_control import OF_CONTROL

MUTANTS = (*OF_CONTROL, *ELSEWHERE)

FOR_THE_SIMULATION = tuple(mutant for mutant in MUTANTS if mutant.tests == SIMULATION)
"""Those that the simulation alone notices."""
