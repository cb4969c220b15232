"""The tables of a recording: one SQLite file that anyone may query.

Two views answer most questions:

    SELECT iteration, min, max FROM statistics WHERE name = 'h_next' AND nan > 0 ORDER BY tick
    SELECT * FROM events ORDER BY tick

`statistics` has one row for each recorded value: tick, activation, iteration, loop (the path of the graph in which it
is), port, layer (its id), name, type, output, dtype, shape; min, max, mean, std of its finite elements (NULL where
there are none); nan, inf, zero (how many elements are that); computed_by (who computed it instead of numpy, or '').
`events` has tick, kind, path, depth, iteration.

Below them:

meta            name, value (as JSON): schema, product, numpy, model (a path, seen from this file), hashes of .xml and
                .bin, rules, max_iterations, what else a run depends on, and a checksum of all the others
inputs, outputs the tensors of the model's Parameters and Results; `value` is JSON that names a blob (see states.py).
                Inputs with negative positions are the variables that the run began with
levels          the graphs of the model: 0 is its own, the others are bodies; `path` in words, `layers` as ids; the
                level in which the loop or If is (`parent`), where in its order of execution (`position`), its type and
                name, and which of its bodies this is (`role`)
ports           the recorded outputs of the layers of each level; `position` in its order of execution (-1: Parameters),
                the tensor `names` of the output and the `results` that it feeds ([id, name]) as JSON; who computed it
                instead of numpy, in words (`computed_by`, '' for numpy)
forms           an element type with a shape
activations     each time that a body began: the activation and iteration around it, ticks, iterations, why it ended
runs            recorded iterations that follow one another: `count` of them, the first with this id, number and tick,
                each `step` ticks after the one before; of a branch its one run, without a number. The view `iterations`
                has a row for each: id (which counts them), activation, iteration, tick
numbers         values of one element, 64 in a row: the number 130 is `n2` of the row with the id 2; NULL is NaN. So a
                loop over numbers takes a few bytes for each
tensors         the statistics of one value of any other size
number_series   values of a port: those of `count` iterations from the id `first` on are the numbers from `start` on
tensor_series   their statistics: the rows of `tensors` from the id `start` on. What leaves an iteration is what enters
                the next one, and has the same rows; as other values have that are the same
stacks          values: those of `count` iterations from the id `first` on, one after the other in the tensor of a blob
                (each of the shape that `form` says) from the index `start` on; with `repeated` the one tensor that all
                of them are
blobs           tensors as .npy (see values.py), each content once; `hash` is of 16 bytes (see hashes.py)
scan_pieces     the pieces of concatenated outputs as far as snapshots need them, each row with a checksum
snapshots       the state of the run at a tick (see states.py), from which it can go on
state_values    what snapshots hold; goes with them, in the form of blobs
kept            a debugging session: breakpoints, watches, marks, branches, ... (see sessions.py): JSON, in order

Each row of most tables has a `checksum`: the CRC-32 of its other columns, in their order, as a MessagePack array. A
changed bit in a row is found when the row is read (see versions.py).

A file that holds a debugging session and no run has the same tables, of which meta, inputs and kept are filled.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from stepper.tensors.statistics import RECORDED

VERSION: Final = 6
APPLICATION_ID: Final = 0x53545052
RUN_LENGTH: Final = 64
"""How many numbers one row of `numbers` holds."""

_NUMBERS: Final = ", ".join(f"n{k}" for k in range(RUN_LENGTH))

_IS_INFINITE: Final = "coalesce(n = 9e999 OR n = -9e999, 0)"
_FINITE: Final = f"CASE WHEN {_IS_INFINITE} THEN NULL ELSE n END"
STATISTICS: Final = {
    "min": ("min", _FINITE),
    "max": ("max", _FINITE),
    "mean": ("mean", _FINITE),
    "std": ("std", f"CASE WHEN n IS NULL OR {_IS_INFINITE} THEN NULL ELSE 0.0 END"),
    "nan": ("nan INTEGER", "n IS NULL"),
    "inf": ("inf INTEGER", _IS_INFINITE),
    "zero": ("zero INTEGER", "coalesce(n = 0, 0)"),
}
"""Of each recorded statistic its column, and what it is of a value `n` of one element."""
_COLUMNS: Final = ", ".join(STATISTICS[name][0] for name in RECORDED)
_OF_A_NUMBER: Final = ", ".join(STATISTICS[name][1] for name in RECORDED)

CHECKSUM: Final = "checksum INTEGER NOT NULL"
"""Last column of a table whose rows are checked one by one."""
_SERIES: Final = (
    "port INTEGER NOT NULL, form INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL, "
    f"start INTEGER NOT NULL, {CHECKSUM}"
)

TABLES: Final = {
    "meta": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
    "blobs": "id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, content BLOB NOT NULL",
    "inputs": f"position INTEGER PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL, {CHECKSUM}",
    "outputs": f"position INTEGER PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL, {CHECKSUM}",
    "levels": "id INTEGER PRIMARY KEY, path TEXT NOT NULL, layers TEXT NOT NULL, parent INTEGER, position INTEGER, "
    f"type TEXT, name TEXT, role TEXT, {CHECKSUM}",
    "ports": "id INTEGER PRIMARY KEY, level INTEGER NOT NULL, layer INTEGER NOT NULL, name TEXT NOT NULL, "
    "type TEXT NOT NULL, output INTEGER NOT NULL, position INTEGER NOT NULL, names TEXT NOT NULL, "
    f"results TEXT NOT NULL, computed_by TEXT NOT NULL, {CHECKSUM}",
    "forms": f"id INTEGER PRIMARY KEY, dtype TEXT NOT NULL, shape TEXT NOT NULL, {CHECKSUM}",
    "activations": "id INTEGER PRIMARY KEY, level INTEGER NOT NULL, depth INTEGER NOT NULL, parent INTEGER, "
    f"parent_iteration INTEGER, entered INTEGER, closed INTEGER, iterations INTEGER, ended TEXT, {CHECKSUM}",
    "runs": "id INTEGER PRIMARY KEY, count INTEGER NOT NULL, activation INTEGER NOT NULL, iteration INTEGER, "
    f"tick INTEGER NOT NULL, step INTEGER NOT NULL, {CHECKSUM}",
    "numbers": f"id INTEGER PRIMARY KEY, {_NUMBERS}, {CHECKSUM}",
    "number_series": _SERIES,
    "tensors": f"id INTEGER PRIMARY KEY, {_COLUMNS}, {CHECKSUM}",
    "tensor_series": _SERIES,
    "stacks": "port INTEGER NOT NULL, form INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL, "
    f"repeated INTEGER NOT NULL, blob INTEGER NOT NULL, start INTEGER NOT NULL, {CHECKSUM}",
    "scan_pieces": "activation INTEGER NOT NULL, scan INTEGER NOT NULL, first INTEGER NOT NULL, "
    "count INTEGER NOT NULL, blob INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (activation, scan, first)",
    "snapshots": "tick INTEGER PRIMARY KEY, iterations INTEGER NOT NULL, activations INTEGER NOT NULL, "
    "state TEXT NOT NULL, checksum TEXT NOT NULL",
    "state_values": "id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, content BLOB NOT NULL",
    "kept": "kind TEXT NOT NULL, position INTEGER NOT NULL, content TEXT NOT NULL, "
    f"{CHECKSUM}, PRIMARY KEY (kind, position)",
}

NUMBERS_OF_SERIES: Final = (
    f"number_series AS s CROSS JOIN numbers AS n "
    f"ON n.id BETWEEN s.start / {RUN_LENGTH} AND (s.start + s.count - 1) / {RUN_LENGTH}"
)
TENSORS_OF_SERIES: Final = (
    "tensor_series AS s CROSS JOIN tensors AS t ON t.id BETWEEN s.start AND s.start + s.count - 1"
)
"""Series with their rows, one series after the other."""

_EACH_TENSOR: Final = (
    f"SELECT s.port, s.form, s.first + t.id - s.start AS iteration, {', '.join(f't.{name}' for name in RECORDED)} "
    f"FROM {TENSORS_OF_SERIES}"
)
_EACH_NUMBER: Final = " UNION ALL ".join(
    f"SELECT s.port, s.form, s.first + n.id * {RUN_LENGTH} + {k} - s.start AS iteration, n.n{k} AS n "
    f"FROM {NUMBERS_OF_SERIES} WHERE n.id * {RUN_LENGTH} + {k} BETWEEN s.start AND s.start + s.count - 1"
    for k in range(RUN_LENGTH)
)

VIEWS: Final = {
    "iterations": """
WITH RECURSIVE each(id, activation, iteration, tick, step, more) AS (
    SELECT id, activation, iteration, tick, step, count - 1 FROM runs
    UNION ALL
    SELECT id + 1, activation, iteration + 1, tick + step, step, more - 1 FROM each WHERE more > 0)
SELECT id, activation, iteration, tick FROM each""",
    "statistics": f"""
SELECT r.tick + (s.iteration - r.id) * r.step AS tick, r.activation, r.iteration + s.iteration - r.id AS iteration,
       l.path AS loop, s.port, p.layer, p.name, p.type, p.output, f.dtype, f.shape,
       {", ".join(f"s.{name}" for name in RECORDED)}, p.computed_by
FROM ({_EACH_TENSOR}
      UNION ALL
      SELECT port, form, iteration, {_OF_A_NUMBER} FROM ({_EACH_NUMBER})) AS s
JOIN runs AS r ON r.id = (SELECT max(id) FROM runs WHERE id <= s.iteration)
JOIN ports AS p ON p.id = s.port JOIN levels AS l ON l.id = p.level JOIN forms AS f ON f.id = s.form""",
    "events": """
SELECT a.entered AS tick, 'ENTERED' AS kind, l.path, a.depth, NULL AS iteration
FROM activations AS a JOIN levels AS l ON l.id = a.level WHERE a.entered IS NOT NULL
UNION ALL
SELECT i.tick, 'ITERATION', l.path, a.depth, i.iteration
FROM iterations AS i JOIN activations AS a ON a.id = i.activation JOIN levels AS l ON l.id = a.level
WHERE i.iteration IS NOT NULL
UNION ALL
SELECT a.closed, 'LEFT', l.path, a.depth, NULL
FROM activations AS a JOIN levels AS l ON l.id = a.level WHERE a.closed IS NOT NULL""",
}


def as_sql(number: Any) -> Any:
    """Return a number as SQLite takes it: an integer of 64 bits without a sign as a float where it must be."""
    return float(number) if type(number) is int and number >= 2**63 else number


def columns(definition: str) -> dict[str, str]:
    """Return the type of each column of a table by name, without the checksum."""
    listed = definition.partition(", PRIMARY KEY")[0].removesuffix(f", {CHECKSUM}").split(", ")
    return {name: rest for name, _, rest in (one.partition(" ") for one in listed)}


def statements(tables: Mapping[str, str] = TABLES, views: Mapping[str, str] = VIEWS) -> dict[tuple[str, str], str]:
    """Return the SQL that makes each table and view, by its kind and name."""
    found = {("table", name): f"CREATE TABLE {name} ({columns})" for name, columns in tables.items()}
    return found | {("view", name): f"CREATE VIEW {name} AS {text.strip()}" for name, text in views.items()}


def create(connection: sqlite3.Connection) -> None:
    """Make all tables and views in an empty database."""
    for statement in statements().values():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
