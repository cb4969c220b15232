"""The figures of the sample models: `python -m sample_models.gallery` draws them all again, with --check only compares.

Each is what one `stepper export` command writes; GALLERY.md shows them all with their commands. Of models that multiply
matrices no computed number is drawn, for its last digit may differ from processor to processor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sample_models import picture
from stepper.cli import main as stepper

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent
PAGE = FOLDER / "GALLERY.md"

VIEWS = {
    "model": "the model",
    "rolled": "the loop's body with its back edges",
    "ports": "the port map",
    "unrolled": "the iterations of a run",
}

UNROLLED = {
    "specification_lstm": "--values shape --iters 0:2,-1",
    "reverse": "--values full",
    "rwkv_overflow": "--carried --iters 6:9 --values shape",
    "for_loop": "--values full --iters 0:2,-1",
    "while_loop": "--values full --depth 1 --iters 0:2,-1",
    "do_while_loop": "--values shape --iters 0:2,-1",
    "for_with_condition": "--values full --iters 0:2,-1",
    "nested_loop": "--values full",
    "growing_tensor": "--values thumbnails --iters 0:4,-1",
    "onnx_moving_average": "--values full --iters 0:2,-1",
    "torch_power_iteration": "--values shape --iters 0:2,-1",
    "date_normaliser": "--values shape --carried --iters 0:3,-1",
}
"""The samples, and how the iterations of each are drawn."""

INSIDE = "--loop passes@0::pairs_of_neighbours --values full --iters 0:2,-1 --theme print --highlight values_next@1"
DEEP = "--depth 2"


class Drawn(NamedTuple):
    """One figure: its file and the command that writes it."""

    file: Path
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        """As one types it at the root of the repository."""
        return f"stepper export {' '.join(self.words)} -o {self.file.relative_to(ROOT).as_posix()}"


def figures(name: str) -> Iterator[tuple[str, Drawn]]:
    """The figures of one sample, each with what it shows."""
    model = f"sample_models/{name}/model.xml"
    inputs = ("--inputs", f"sample_models/{name}/inputs.npz")
    for view, shown in VIEWS.items():
        extra = (*inputs, *UNROLLED[name].split()) if view == "unrolled" else ()
        if view == "model" and name == "nested_loop":
            extra = tuple(DEEP.split())
        yield shown, Drawn(FOLDER / name / f"{view}.svg", (model, "--view", view, *extra))
    if name == "while_loop":
        words = (model, "--view", "ports", "--loop", "number_next")
        yield "the port maps of the If in its body", Drawn(FOLDER / name / "if.svg", words)
    if name == "nested_loop":
        words = (model, "--view", "unrolled", *inputs, *INSIDE.split())
        yield "the inner loop in the first pass, for print", Drawn(FOLDER / name / "inner.svg", words)


def draw(drawn: Drawn, *, check: bool) -> int:
    """Write one figure, or compare it with what is there; the exit code of the command."""
    aim = ("--check", str(drawn.file)) if check else ("-o", str(drawn.file))
    words = [str(ROOT / word) if word.startswith("sample_models/") else word for word in drawn.words]
    return stepper(["export", *words, *aim, "--quiet"])


def draw_picture(*, check: bool) -> int:
    """Write the picture of the README, or compare it; 1 where it is out of date."""
    if not check:
        picture.FILE.write_text(picture.drawn_now(), encoding="utf-8")
        return 0
    if picture.FILE.is_file() and picture.is_current(picture.FILE.read_text(encoding="utf-8")):
        return 0
    print(f"{picture.FILE.name} is out of date", file=sys.stderr)
    return 1


def page() -> str:
    """The text of the gallery."""
    lines = [
        "# Gallery",
        "",
        "What `stepper export` draws of the [sample models](README.md). `python -m sample_models.gallery` draws all of",
        "it again, `python -m sample_models.gallery --check` says whether it is current. The figures follow the",
        "reader's colour scheme, and lines between iterations are what back edges carry.",
    ]
    for name in UNROLLED:
        lines += ["", f"## {name}"]
        for shown, drawn in figures(name):
            path = drawn.file.relative_to(FOLDER).as_posix()
            lines += ["", f"{shown[0].upper()}{shown[1:]}: `{drawn.command}`", "", f"![{name}: {shown}]({path})"]
    return "\n".join([*lines, ""])


def main(words: list[str]) -> int:
    """Draw all figures and the page; with --check compare, and return 1 where one is out of date."""
    if words not in ([], ["--check"]):
        print("usage: python -m sample_models.gallery [--check]", file=sys.stderr)
        return 2
    check = bool(words)
    code = max(draw(drawn, check=check) for name in UNROLLED for _, drawn in figures(name))
    code = max(code, draw_picture(check=check))
    if not check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE.name} is out of date", file=sys.stderr)
        code = max(code, 1)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
