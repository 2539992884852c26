"""The columns of a record's file, from the record's own fields."""

from typing import Any, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa

from bellman.allowed import without_null

PLAIN = {int: pa.int64(), float: pa.float64(), str: pa.string()}


def columns_of(record: type) -> pa.Schema:
    """Return a column for every field of a dataclass, in its order.

    All may be null, not only those of `X | None`: the records of an earlier version lack some.
    """
    kinds = get_type_hints(record).items()
    return pa.schema([(name, _arrow_type(kind)) for name, kind in kinds])


def _arrow_type(annotation: Any) -> pa.DataType:
    kind, _ = without_null(annotation)
    if get_origin(kind) is Literal:
        return pa.string()
    if get_origin(kind) in (list, tuple):
        return pa.list_(_arrow_type(get_args(kind)[0]))
    return PLAIN[kind]
