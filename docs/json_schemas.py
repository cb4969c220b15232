"""The schemas of the answers as JSON, and the page about them, made from their types.

python -m docs.json_schemas            write them
python -m docs.json_schemas --check    write nothing; exit with 1 where they are not up to date
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from docs.json_shapes import ANSWERS, DEBUG_ANSWERS, ErrorAnswer
from stepper.commands.command_session import commands
from stepper.plain_values import MOST_IN_JSON, SCHEMA
from stepper.schemas import FOLDER

PAGE = Path(__file__).parent / "reference" / "json.md"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
REAL = {"anyOf": [{"type": "number"}, {"enum": ["-Infinity", "Infinity", "NaN"]}]}


def schemas() -> dict[str, dict[str, Any]]:
    """Return all schemas by the names of their files."""
    types = [kind for kinds in (*ANSWERS.values(), *DEBUG_ANSWERS.values(), (ErrorAnswer,)) for kind in kinds]
    types = list(dict.fromkeys(types))
    roots, parts = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    names = {kind: root["$ref"].rpartition("/")[2] for kind, root in zip(types, roots, strict=True)}
    common = {name: exact(part, "") for name, part in sorted(parts.items())}
    found = {"common": {"$schema": DIALECT, "$id": "common.json", "$defs": {"Real": REAL, **common}}}
    for command, kinds in ANSWERS.items():
        refs = [{"$ref": f"common.json#/$defs/{names[kind]}"} for kind in (*kinds, ErrorAnswer)]
        title = f"What `stepper {command}` writes as JSON" + (", a line" if command == "debug" else "")
        found[command] = {"$schema": DIALECT, "$id": f"{command}.json", "title": title, "anyOf": refs}
    answers = {
        command or "nothing": {"anyOf": [{"$ref": f"common.json#/$defs/{names[kind]}"} for kind in kinds]}
        for command, kinds in DEBUG_ANSWERS.items()
    }
    title = "`answer` of a line of `stepper debug --json`, by the name of the command"
    found["debug-answers"] = {"$schema": DIALECT, "$id": "debug-answers.json", "title": title, "$defs": answers}
    error = {"$ref": f"common.json#/$defs/{names[ErrorAnswer]}"}
    found["error"] = {"$schema": DIALECT, "$id": "error.json", "title": "What a command writes that fails", **error}
    return found


def exact(part: Any, key: str) -> Any:
    """Return a schema that allows only the keys that it names; of a record all are required, also with defaults."""
    if isinstance(part, list):
        return [exact(item, "") for item in part]
    if not isinstance(part, dict):
        return part
    if part.get("type") == "number" or (set(part) == {"anyOf"} and {"type": "number"} in part["anyOf"]):
        return real(part)
    dropped = ("title", "default", "discriminator")
    found = {name: exact(item, name) for name, item in part.items() if key == "properties" or name not in dropped}
    if "description" in found and isinstance(found["description"], str):
        found["description"] = " ".join(inspect.cleandoc(found["description"]).split())
    if part.get("type") == "object" and "properties" in part:
        found["additionalProperties"] = False
        if any("default" in item for item in part["properties"].values()):  # a record: all of it is written
            found["required"] = list(part["properties"])
    return found


def real(part: dict[str, Any]) -> dict[str, Any]:
    """Return a number, or the text for what JSON lacks."""
    others = [item for item in part.get("anyOf", []) if item != {"type": "number"} and "enum" not in item]
    reference = {"$ref": "#/$defs/Real"}
    return {"anyOf": [reference, *others]} if others else reference


def page(found: dict[str, dict[str, Any]]) -> str:
    """Return the page that describes the answers."""
    parts = found["common"]["$defs"]
    lines = [
        "# Answers as JSON",
        "",
        "Made by `python -m docs.json_schemas` from the types in `docs/json_shapes.py`; the schemas (JSON "
        "Schema, 2020-12) are the files in `stepper/schemas`, one for each command, also in the installed package. "
        "`stepper help json` prints them.",
        "",
        "- `run`, `inspect`, `print`, `find`, `compare`, `passes`, `figures`, `help keys` write one object to stdout "
        "with `--json`, `export` with `--as json`; `debug --json` writes an object a line, for each command and each "
        "line of a logpoint.",
        f"- `schema` is the version of all shapes, now {SCHEMA}: it grows where a key goes or means something else.",
        '- Numbers that JSON lacks are text: `"NaN"`, `"Infinity"`, `"-Infinity"`.',
        f"- A tensor is `type`, `shape` and `values`, its elements in row-major order; of more than {MOST_IN_JSON:,} "
        "`values` is null. Types that numpy lacks (bf16, f8, u4, i4) are written as the numbers that they hold.",
        "- A layer is always `id`, `name`, `type`, `file` and `line`: the file of the model and the line in it.",
        "- Where a command fails, its only answer is an object with `error`, also for a wrong usage; the exit code is "
        "in it, and the message stands on stderr as without `--json`.",
        "- Keys are always there, and null, empty or 0 where there is nothing to say; but for those in *italics*.",
        "",
    ]
    shown: list[str] = []
    for command in ANSWERS:
        lines += [f"## {'stepper ' + command}", "", f"Schema: `{command}.json`.", ""]
        for reference in found[command]["anyOf"][:-1]:
            lines += tables(reference["$ref"].rpartition("/")[2], parts, shown)
        if command == "debug":
            lines += list(debug_lines(found, parts, shown))
    lines += ["## Errors", "", "Schema: `error.json`.", "", *tables("ErrorAnswer", parts, shown)]
    rest = [name for name in shown_parts(shown, parts) if name not in shown]
    lines += ["## Parts of the answers", ""]
    for name in rest:
        lines += tables(name, parts, shown)
    return "\n".join(lines).rstrip() + "\n"


def debug_lines(found: dict[str, dict[str, Any]], parts: dict[str, Any], shown: list[str]) -> Iterator[str]:
    """Yield the commands of the debugger with their answers."""
    yield from ("The answers of the commands, by name (schema: `debug-answers.json`):", "", "| command | answer |")
    yield "|---|---|"
    answers = found["debug-answers"]["$defs"]
    for one in commands():
        kinds = [reference["$ref"].rpartition("/")[2] for reference in answers[one.name]["anyOf"]]
        yield f"| `{one.name}` | {', '.join(map(linked, kinds))} |"
    yield ""
    for command in answers.values():
        for reference in command["anyOf"]:
            yield from tables(reference["$ref"].rpartition("/")[2], parts, shown)


def shown_parts(shown: list[str], parts: dict[str, Any]) -> list[str]:
    """Return all parts that those shown lead to, in the order of their names."""
    reached, waiting = set(shown), list(shown)
    while waiting:
        for name in references(parts[waiting.pop()]):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return sorted(reached)


def references(part: Any) -> Iterator[str]:
    """Yield the names of the parts that a part is made of."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"].rpartition("/")[2]
        for item in part.values():
            yield from references(item)
    elif isinstance(part, list):
        for item in part:
            yield from references(item)


def tables(name: str, parts: dict[str, Any], shown: list[str]) -> list[str]:
    """Return the heading and the table of one part; nothing where it was shown before."""
    if name in shown:
        return []
    shown.append(name)
    part = parts[name]
    lines = [f"### {name}", "", part.get("description", ""), ""]
    if "properties" not in part:
        return [*lines, f"{type_text(part)}", ""]
    lines += ["| key | |", "|---|---|"]
    for key, value in part["properties"].items():
        word = f"`{key}`" if key in part.get("required", ()) else f"*`{key}`*"
        lines.append(f"| {word} | {type_text(value)} |")
    return [*lines, ""]


def type_text(part: dict[str, Any]) -> str:
    """Return a type in a few words."""
    if "$ref" in part:
        return linked(part["$ref"].rpartition("/")[2])
    if "anyOf" in part:
        return " or ".join(map(type_text, part["anyOf"]))
    if "enum" in part:
        return ", ".join(f"`{json.dumps(value)}`" for value in part["enum"])
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    kind = part.get("type", "anything")
    if kind == "array":
        items = part.get("items") or {}
        fixed = part.get("prefixItems")
        return f"[{', '.join(map(type_text, fixed))}]" if fixed else f"list of {type_text(items)}"
    if kind == "object":
        inner = part.get("additionalProperties")
        return f"object of {type_text(inner)} by name" if isinstance(inner, dict) and inner else "object"
    return str(kind)


def linked(name: str) -> str:
    """Return a name that leads to its heading."""
    return f"[{name}](#{name.lower().replace('.', '')})"


def main(words: list[str]) -> int:
    """Write or compare; the exit code."""
    found = schemas()
    texts = {
        FOLDER / f"{name}.json": json.dumps(one, indent=1, ensure_ascii=False) + "\n" for name, one in found.items()
    }
    texts[PAGE] = page(found)
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    stale += [path for path in FOLDER.glob("*.json") if path not in texts]
    if "--check" in words:
        for path in stale:
            print(f"{path} is not up to date: python -m docs.json_schemas", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(texts[path], encoding="utf-8") if path in texts else path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
