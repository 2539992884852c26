"""Numbers that another process reports, checked before anything believes them.

Each check takes whatever was read and raises ValueError for all but a number in its range: `true`,
`"3"`, NaN, infinity, a negative or an absurdly large number.
"""

LARGEST = 2**53
"""Whole numbers up to here are exact in a float; no server counts further."""


def count(value: object) -> int:
    """Return a whole number from 0 to 2^53."""
    number = _number(value)
    if not 0 <= number <= LARGEST or number != int(number):
        raise ValueError(f"{value!r:.40} is no whole number from 0 to 2^53")
    return int(number)


def share(value: object) -> float:
    """Return a number in [0, 1]."""
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{value!r:.40} is not in [0, 1]")
    return abs(float(number))  # -0.0 is 0


def amount(value: object) -> float:
    """Return a finite number, 0 or more."""
    number = _number(value)
    if not 0 <= number <= LARGEST:
        raise ValueError(f"{value!r:.40} is not from 0 to 2^53")
    return abs(float(number))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r:.40} is no number")
    return value
