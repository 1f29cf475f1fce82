"""Sizes and durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pffbench.errors import UserError
from pffbench.units import Duration, Size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (0, 0), (4096, 4096), ("4096", 4096), ("64 MiB", 64 * 2**20), ("64MiB", 64 * 2**20),
        (" 1.5 GB ", 1_500_000_000), ("2 kB", 2000), ("2 KB", 2000), ("1e3", 1000),
        ("0.5 KiB", 512), ("3 B", 3), ("1 PiB", 2**50),
    ],
)  # fmt: skip
def test_sizes(text, count):
    assert Size.parse(text) == count


@pytest.mark.parametrize(
    "text", ["64 MiX", "MiB", "-1", -1, "", "1.5", "0.3 KiB", "12 mb", True, None, [1], "1 2 MiB",
             "inf", "nan"],
)  # fmt: skip
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UserError):
        Size.parse(text)


@given(st.integers(0, 2**53))
def test_any_number_of_bytes_is_kept_exactly(count):
    assert Size.parse(count) == Size.parse(Size(count)) == Size.parse(f"{count} B") == count


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (64 * 2**20, "64 MiB"), (2**50, "1 PiB")],
)
def test_a_size_is_printed_with_its_unit(count, text):
    assert str(Size(count)) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [(90, 90), (0.5, 0.5), ("90 s", 90), ("2 min", 120), ("1.5 h", 5400),
                          ("20 ms", 0.02)],
)  # fmt: skip
def test_durations(text, seconds):
    assert Duration.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["2 weeks", "soon", "-3 s", -3, True, None])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UserError):
        Duration.parse(text)


def test_the_message_names_the_allowed_units():
    with pytest.raises(UserError, match=r"unknown unit 'MiX' \(allowed: B, KiB, MiB.*PB\)"):
        Size.parse("64 MiX")
