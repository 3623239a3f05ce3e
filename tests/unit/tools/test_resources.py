"""Amounts of memory as people write them."""

import pytest

from noetl.tools.refusal import Refusal
from noetl.tools.resources import DEFAULT, bytes_of


@pytest.mark.parametrize(
    ("amount", "size"),
    [
        (None, DEFAULT),
        (1_000_000, 1_000_000),
        ("1000000", 1_000_000),
        ("512Mi", 512 * 1024**2),
        ("512MiB", 512 * 1024**2),
        ("2G", 2_000_000_000),
        ("0.5 Gi", 512 * 1024**2),
        ("64k", 64_000),
        (1e6, 1_000_000),
    ],
)
def test_amounts(amount: object, size: int) -> None:
    assert bytes_of(amount) == size


@pytest.mark.parametrize("amount", ["", "much", "-1", 0, -5, "1X", True, [], "1e300", float("nan")])
def test_what_is_no_amount(amount: object) -> None:
    with pytest.raises(Refusal, match=r"spec\.resources\.memory is .*; expected bytes"):
        bytes_of(amount)
