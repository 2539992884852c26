"""Whatever a trace's columns hold: requests, or one line that names file, row and column."""

import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given

from bellman.errors import RunError
from bellman.load.traces.table import read_table
from tests.row_files.values import JSON_VALUES, SAME_FOLDER


def trace(path, unit="s", prompt=None):
    return read_table(
        path, "at", unit,
        prompt_column=prompt, output_column=None, hash_ids_column=None, priority_column=None,
    )  # fmt: skip


EPOCH_S = 1_700_000_000
BERLIN = pa.timestamp("us", "Europe/Berlin")


@pytest.mark.parametrize(
    ("unit", "times"),
    [
        ("s", [EPOCH_S + 2.5, EPOCH_S, EPOCH_S + 1]),
        ("s", [2.5, 0, 1.0]),
        ("s", [-1, -3.5, -2.5]),
        ("s", [Decimal("2.5"), Decimal(0), Decimal("1.0")]),
        ("s", ["2.5", "0", " 1e0 "]),
        ("ms", [EPOCH_S * 1000 + 2500, EPOCH_S * 1000, EPOCH_S * 1000 + 1000]),
        ("us", [EPOCH_S * 10**6 + 2_500_000, EPOCH_S * 10**6, EPOCH_S * 10**6 + 10**6]),
        ("ns", [EPOCH_S * 10**9 + 25 * 10**8, EPOCH_S * 10**9, EPOCH_S * 10**9 + 10**9]),
        ("iso", ["2024-05-10 00:00:02.5000000", "2024-05-10", "2024-05-10T02:00:01+02:00"]),
        ("iso", pa.array([2_500_000, 0, 1_000_000], pa.timestamp("us"))),
        ("iso", pa.array([2_500_000, 0, 1_000_000], BERLIN)),
        ("s", pa.array([2_500_000_000, 0, 1_000_000_000], pa.timestamp("ns", "UTC"))),
        ("s", pa.array([2.5, 0.0, 1.0]).dictionary_encode()),
    ],
)
def test_times_of_any_column_and_unit_are_the_same_trace(tmp_path, unit, times):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": times}), path)
    assert trace(path, unit).times_s.tolist() == pytest.approx([0.0, 1.0, 2.5], abs=1e-6)


@pytest.mark.parametrize(
    ("unit", "times", "expected"),
    [
        ("s", [1.0, float("nan")], "at=nan is not a time in s"),
        ("s", [1.0, float("inf")], "at=inf is not a time in s"),
        ("s", [1.0, None], "at=None is not a time in s"),
        ("s", [True, False], "at=True is not a time in s"),
        ("s", ["1", "true"], "at='true' is not a time in s"),
        ("s", ["1", "1_000"], "at='1_000' is not a time in s"),
        ("s", ["1", "٢"], "at='٢' is not a time in s"),
        ("s", [[1.0], [2.0]], "at=[1.0] is not a time in s"),
        ("s", [{"s": 1}, {"s": 2}], "at={'s': 1} is not a time in s"),
        ("s", [b"\xff", b"1"], r"at=b'\xff' is not a time in s"),
        ("iso", ["2024-05-10", "10.5.2024"], "at='10.5.2024' is not a time in iso"),
        ("iso", [5, 6], "at=5 is not a time in iso"),
        ("iso", pa.array([0, 2**50], pa.timestamp("ms")), "at cannot be read: "),
        ("iso", pa.array([0, 1], pa.timestamp("us", "Mars/Phobos")), "at cannot be read: "),
        ("s", pa.array([0, 1], pa.duration("s")), "at=datetime.timedelta(0) is not a time in s"),
    ],
)
def test_a_time_that_is_none_is_named_by_file_row_and_column(tmp_path, unit, times, expected):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": times}), path)
    with pytest.raises(RunError) as error:
        trace(path, unit)
    assert f"{path}: row " in str(error.value)
    assert expected in str(error.value)
    assert str(error.value).isprintable()


@SAME_FOLDER
@given(JSON_VALUES, JSON_VALUES)
@example(2**70, 2**70)
@example(1e999, 2**31)
@example(1, 2**31 - 1)
def test_a_trace_of_any_values_is_requests_or_one_line(tmp_path, at, tokens):
    path = tmp_path / "a.jsonl"
    path.write_text('{"at": 3, "n": 1}\n' + json.dumps({"at": at, "n": tokens}) + "\n")
    read_table.cache_clear()
    try:
        found = trace(path, prompt="n")
    except RunError as error:
        if "span" in str(error):
            assert abs(float(at)) > 1e11
        assert str(error).startswith(str(path))
        assert str(error).isprintable()
    else:
        assert found.prompt_tokens is not None
        assert sorted(found.prompt_tokens.tolist()) == sorted([1, int(float(tokens))])
        assert found.times_s[-1] == abs(float(at) - 3)


@pytest.mark.parametrize("times", [[-1e308, 1e308], [0.0, 1.7e308], [0.0, 1e13]])
def test_times_that_are_no_trace_name_the_file(tmp_path, times):
    pq.write_table(pa.table({"at": times}), tmp_path / "a.parquet")
    with pytest.raises(RunError, match=r"a\.parquet: the times span more than 1e\+12 s"):
        trace(tmp_path / "a.parquet")


def test_a_file_without_rows_says_so(tmp_path):
    pq.write_table(pa.table({"at": pa.array([], pa.float64())}), tmp_path / "a.parquet")
    with pytest.raises(RunError, match=r"a\.parquet: 0 requests, a trace needs 2 or more"):
        trace(tmp_path / "a.parquet")
