"""The page with all iterations: its data are those of the run, stops are counted and named, keys do what they say."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.cli import main
from tests.export.runs import SAMPLES, picture
from tests.export.steps.pages import CHROMIUM, chromium, page_data, states_at
from tests.export.steps.test_steps import collatz
from tests.models import Graph, carried, last

WHILE = ("export", str(SAMPLES / "while_loop" / "model.xml"), "--inputs", str(SAMPLES / "while_loop" / "inputs.npz"))


def exported(path: Path, *words: str) -> str:
    assert main([*WHILE, *words, "-o", str(path)]) == 0
    return path.read_text(encoding="utf-8")


def test_all_iterations_are_there_with_the_values_of_the_run(tmp_path: Path) -> None:
    page = exported(tmp_path / "page.html")
    assert not re.search(r"(src|href)=|@import|url\(", page)
    assert not [url for url in re.findall(r"https?://[^\"' <)]+", page) if url != "http://www.w3.org/2000/svg"]
    data = page_data(page)
    assert (data["ranges"], data["last"]) == ([[0, 110]], 110)
    box = data["boxes"]["5.n0"]
    assert [box["states"][at]["lines"][-1][1] for at in box["at"]] == [f"i64[] {n}" for n in collatz(27)[:-1]]
    assert "of 111" not in page and "left out" not in page
    assert exported(tmp_path / "again.html") == page


def test_gaps_are_named_and_stops_are_those_drawn(tmp_path: Path) -> None:
    page = exported(tmp_path / "page.html", "--iters", "0:3,-1")
    assert "Iterations 3 to 109 are not drawn." in page
    data = page_data(page)
    assert data["ranges"] == [[0, 2], [110, 110]]
    assert data["run"] == [[0, 1], [1, 2], [2, 3], [3, 110], [110, 111]], "the run above has these iterations, too"


def test_a_run_without_iterations_is_the_figure_of_that(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert main([*WHILE[:2], "--input", "start=1", "-o", str(file), "--caption", "Nothing to do"]) == 0
    page = file.read_text(encoding="utf-8")
    assert "body of 6 operations, not run" in page and page.count("first value = last value") == 3
    assert "<figcaption>Nothing to do</figcaption>" in page and "starts if" in page
    assert "<script" not in page and 'id="controls"' not in page


def long_run(tmp_path: Path, count: int) -> tuple[str, str]:
    net = Graph()
    start = net.parameter("start", "i64", ())
    body = net.body()
    number = body.parameter("number", "i64", ())
    result = body.result(body.apply("Add", number, body.constant(np.int64(1)), name="next"), "next_result")
    net.result(net.loop("counting", body, count, True, [carried(start, number, result)], [last(result)])[0])
    net.read(tmp_path)
    (xml,) = tmp_path.glob("*.xml")
    return str(xml), "start=5"


def test_a_long_run_is_bounded_in_size_time_and_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, given = long_run(tmp_path, 10_000)
    file = tmp_path / "page.html"
    begin = time.monotonic()
    assert main(["export", model, "--input", given, "-o", str(file)]) == 0
    assert time.monotonic() - begin < 20
    assert "showing 1000 of 10,000 iterations; --iters shows others, 1,000 at most" in capsys.readouterr().err
    page = file.read_text(encoding="utf-8")
    assert len(page) < 500_000
    assert "Iterations 990 to 9989 are not drawn." in page
    assert page_data(page)["ranges"] == [[0, 989], [9990, 9999]]
    assert main(["export", model, "--input", given, "--iters", ":", "-o", str(file)]) == 2
    assert "more than 1,000 iterations are chosen" in capsys.readouterr().err
    assert main(["export", model, "--input", given, "--iters", "5000:5003", "-o", str(file)]) == 0
    data = page_data(file.read_text(encoding="utf-8"))
    assert data["ranges"] == [[5000, 5002]] and data["run"] == []
    numbers = [state["lines"][-1][1] for index in range(3) for state in states_at(data["boxes"], index)[:1]]
    assert numbers == ["i64[] 5005", "i64[] 5006", "i64[] 5007"]


def test_without_scripts_it_is_the_whole_run(tmp_path: Path) -> None:
    page = re.sub(r"<script>.*</script>", "", exported(tmp_path / "page.html"), flags=re.DOTALL)
    shown = re.sub(r'<g [^>]*visibility="hidden">.*?\n</g>\n', "", page, flags=re.DOTALL)
    assert '<div id="controls" role="group" aria-label="iterations" hidden>' in page
    assert "9232" in shown and 'class="band"' not in re.sub(r"<style>.*</style>", "", shown, flags=re.DOTALL)
    assert "the body in its last iteration,\n110 of 0..110" in page
    assert "condition: false" in page


# --- in Chromium -----------------------------------------------------------------------------------------------------

in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

PROBE = """
<script>
const look = () => ({
  shown: shown.textContent, told: told.textContent, hash: location.hash,
  number: at("5.n0").querySelectorAll("text")[2].textContent,
  bands: [...document.querySelectorAll(".band")].filter(one => getComputedStyle(one).visibility === "visible").length,
  heading: getComputedStyle(document.querySelector("h1")).display, aloud: aloud.textContent,
  ground: getComputedStyle(document.body).backgroundColor, playing: timer !== null,
  focus: document.activeElement.id,
});
const pressed = key => new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true});
const press = key => document.activeElement.dispatchEvent(pressed(key));
const found = [look()];
STEPS
document.body.innerHTML = "<pre></pre>";
document.querySelector("pre").textContent = JSON.stringify(found);
</script>
"""


def looked(tmp_path: Path, address: str, *steps: str, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What the page shows at an address, and after each step."""
    page = exported(tmp_path / "page.html", *options)
    script = PROBE.replace("STEPS", "\n".join(f"{step}; found.push(look());" for step in steps))
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{script}</body>"), encoding="utf-8")
    dom = chromium("--dump-dom", f"file://{tmp_path / 'page.html'}{address}")
    match = re.search(r"<pre>(.*)</pre>", dom, re.DOTALL)
    assert match is not None, dom[-2000:]
    found: list[dict[str, Any]] = json.loads(match[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
    return found


@in_chromium
def test_keys_walk_play_and_write_the_address(tmp_path: Path) -> None:
    steps = [
        'press("ArrowRight")',
        'press("End")',
        'press("ArrowLeft")',
        'press("Home")',
        'press(" ")',
        'press(" ")',
        'at("last").focus(); at("last").click()',
        'press("Home")',
    ]
    found = looked(tmp_path, "#i=7", *steps)
    numbers = collatz(27)
    stops = [7, 8, 110, 109, 0, 0, 0, 110, 0]
    assert [one["shown"] for one in found] == [f"iteration {k} of 0..110" for k in stops]
    assert [one["number"] for one in found] == [f"i64[] {numbers[k]}" for k in stops]
    assert [one["hash"] for one in found] == [f"#i={k}" for k in stops]
    assert [one["playing"] for one in found] == [False] * 5 + [True] + [False] * 3
    assert {one["bands"] for one in found} == {1}
    assert found[1]["aloud"].startswith("iteration 8 of 0..110. number, from iteration 7, i64[] 142")
    assert found[7]["focus"] == "last"


@in_chromium
def test_an_address_leads_to_an_iteration_to_the_figures_alone_and_to_a_theme(tmp_path: Path) -> None:
    (gap,) = looked(tmp_path, "#embed&i=50&theme=dark", options=("--iters", "0:3,-1"))
    assert (gap["shown"], gap["told"]) == ("iteration 2 of 0..110", "iteration 50 is not drawn")
    assert gap["heading"] == "none" and gap["ground"] == "rgb(13, 17, 23)"
    changed = looked(tmp_path, "", 'location.hash = "#i=200"; readAddress()', options=("--embed",))
    assert changed[0]["shown"] == "iteration 0 of 0..110" and changed[0]["heading"] == "none"
    assert (changed[1]["shown"], changed[1]["told"]) == ("iteration 110 of 0..110", "there is no iteration 200")


@in_chromium
def test_thumbnails_are_those_of_the_svg(tmp_path: Path) -> None:
    made = picture("growing_tensor", "unrolled", iterations="", values="thumbnails")
    (tmp_path / "page.html").write_text(made.text("html"), encoding="utf-8")
    live = chromium("--dump-dom", f"file://{tmp_path / 'page.html'}#i=6")
    assert made.loop is not None
    still, compared = made.text("svg"), 0
    for tail in (node.id.removeprefix("i6.") for node in made.figure.nodes if node.id.startswith("i6.")):
        boxes = (still, f"i6.{tail}"), (live, f"{made.loop.layer.id}.{tail}")
        found = [re.search(rf'<g id="(?:s[0-9a-f]+\.)?{re.escape(id)}".*?</g>', text, re.DOTALL) for text, id in boxes]
        heights = [path_heights(match[0]) for match in found if match is not None]
        assert len(heights) == 2
        assert heights[1] == pytest.approx(heights[0], abs=0.02), tail
        compared += bool(heights[0])
    assert compared == 4


def path_heights(markup: str) -> list[float]:
    """How high the points of a sparkline are, from 0 to 1."""
    path, area = re.search(r'class="spark"[^>]* d="([^"]*)"', markup), re.search(r'data-area="([^"]*)"', markup)
    if path is None or area is None:
        return []
    _, y, _, height = map(float, area[1].split())
    return [(float(point) - y) / height for point in re.findall(r"[ML][0-9.e-]+ ([0-9.e-]+)", path[1])]
