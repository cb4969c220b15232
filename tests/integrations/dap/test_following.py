"""What follows a session on a page beside the editor: the figure at a stop, and the overview that answers."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from tests.integrations.dap.client import Refused, sample_client


def test_the_figure_has_the_box_of_the_operation_that_ran_last(tmp_path: Path) -> None:
    client = sample_client("rwkv_overflow", tmp_path)
    start = client.request("stepper/stop")
    assert (start["box"], start["column"], start["tick"]) == ("", "", 0)
    assert 'role="img"' in client.request("stepper/figure", figure=start["figure"])["svg"]
    client.request("setExceptionBreakpoints", filters=["nan"])
    client.go("continue")
    stop = client.request("stepper/stop")
    assert stop["figure"] != start["figure"]
    figure = client.request("stepper/figure", figure=stop["figure"])
    assert figure["addresses"][stop["box"]].endswith("wkv")
    group = re.search(rf'<g id="{re.escape(stop["box"])}".*?</g>', figure["svg"], re.DOTALL)
    assert group is not None and "Divide" in group[0]
    assert all(f'id="{box}"' in figure["svg"] for box in figure["addresses"])
    client.go("stepBack")
    before = client.request("stepper/stop")
    assert before["figure"] == stop["figure"], "one figure for the body"
    assert figure["addresses"][before["box"]].endswith("denominator_now")


@pytest.mark.parametrize("sample", ["nested_loop", "date_normaliser", "do_while_loop", "specification_lstm"])
def test_every_address_of_a_figure_and_every_column_leads_somewhere(sample: str, tmp_path: Path) -> None:
    client = sample_client(sample, tmp_path)
    client.request("setFunctionBreakpoints", breakpoints=[{"name": "@1"}])
    client.go("continue")
    stop = client.request("stepper/stop")
    addresses = client.request("stepper/figure", figure=stop["figure"])["addresses"]
    for address in addresses.values():
        client.request("evaluate", expression=f"goto {address}", context="repl")
    columns = [unescape(one) for one in re.findall(r'data-goto="([^"]*)"', client.request("stepper/overview")["html"])]
    assert columns
    for column in dict.fromkeys(columns):
        client.request("evaluate", expression=f"goto {column}", context="repl")
        assert client.request("stepper/stop")["column"] == column


def test_the_overview_leaves_the_moment_where_it_is(tmp_path: Path) -> None:
    client = sample_client("rwkv_overflow", tmp_path)
    html = client.request("stepper/overview")["html"]
    text = unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", html, flags=re.DOTALL))
    assert "Inf appears in Exp in iteration 7 of Loop" in text and "exp(89.2) > f32 maximum exp(88.72)" in text
    assert "NaN in 32 of 96" in text and "ended after iteration 11: trip count reached" in text
    assert client.request("stepper/stop")["tick"] == 0


def test_a_figure_that_no_stop_has_is_refused(tmp_path: Path) -> None:
    client = sample_client("for_loop", tmp_path)
    for number in (0, -1, 10**9):
        with pytest.raises(Refused, match="no stop has a figure"):
            client.request("stepper/figure", figure=number)
    with pytest.raises(Refused, match="figure"):
        client.request("stepper/figure")
