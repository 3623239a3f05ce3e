"""The simulation behind the plan for growth: it never promises more than the cores can do."""

import pytest
from bench.scale import Costs, predicted, shared_out

COSTS = Costs(server=700e-6, database=150e-6, load=50e-6)


@pytest.mark.parametrize("shards", [1, 2, 4])
@pytest.mark.parametrize("cores", [1, 2, 4, 64])
def test_a_prediction_is_near_the_tightest_bound_and_never_above_it(
    shards: int, cores: int
) -> None:
    bound = min(shards / COSTS.server, cores / sum(COSTS), 1 / COSTS.load)
    assert 0.9 * bound < predicted(COSTS, shards, cores) <= bound


def test_cores_go_to_those_who_need_them() -> None:
    assert shared_out([1.0, 0.0, 5.0], 2.0, 4.0) == [1.0, 0.0, 2.0]
    assert shared_out([9.0, 9.0], 2.0, 2.0) == [1.0, 1.0]
    assert shared_out([0.25, 9.0, 9.0], 2.0, 2.25) == pytest.approx([0.25, 1.0, 1.0])
