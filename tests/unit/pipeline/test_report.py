"""The report is one well-formed page, in which nothing that a broker named can do harm."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from pandomq.pipeline import plots
from pandomq.pipeline.report import ROWS_MAX, render
from pandomq.pipeline.summary import Chart, Summary, SummaryTable

HARMFUL = "<script>alert('&')</script>"


def summary(rows: int = 1) -> Summary:
    table = SummaryTable("Queues", ("name", "messages", "durable"), [(HARMFUL, 12_345, True)] * rows)
    plot = Chart("Rates", plots.bars([(HARMFUL, 1.0)]))
    return Summary("rollup", "all is well", True, {HARMFUL: 1.5, "messages": 12_345}, [table], [plot])


def parsed(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html.removeprefix("<!DOCTYPE html>\n"))


def test_one_page_that_needs_nothing_else() -> None:
    html = render("PandoMQ", [summary()])
    page = parsed(html)
    assert [element.tag for element in page.iter() if element.tag in ("script", "link", "img", "iframe")] == []
    assert HARMFUL in "".join(page.itertext())
    assert "12,345" in html


def test_a_long_table_is_cut_and_shows_how_many_rows_are_missing() -> None:
    html = render("PandoMQ", [summary(ROWS_MAX + 5)])
    assert html.count("<tr>") == ROWS_MAX + 1
    assert "and 5 more" in html


def test_a_bad_end_shows() -> None:
    bad = Summary("audit", "2 messages are lost", good=False)
    assert 'class="verdict bad"' in render("PandoMQ", [bad])
    assert 'class="verdict bad"' not in render("PandoMQ", [summary()])


def test_an_incomplete_result_is_neither_good_nor_bad() -> None:
    half = Summary("audit", "proven in part", complete=False)
    html = render("PandoMQ", [half])
    assert 'class="verdict open"' in html and 'class="verdict good"' not in html
    back = Summary.from_json(half.to_json())
    assert not back.complete and '<a class="open"' in render("PandoMQ", [summary(), back])


def test_verdicts_in_tables_have_their_colours() -> None:
    rows = [(one, one) for one in ("proven", "proven in part", "not judged", "refuted")]
    html = render("PandoMQ", [Summary("audit", "so", tables=[SummaryTable("Promises", ("promise", "verdict"), rows)])])
    for word, kind in zip(
        ("proven", "proven in part", "not judged", "refuted"), ("good", "open", "open", "bad"), strict=True
    ):
        assert f'<td class="short {kind}">{word}</td>' in html and f'<td class="short">{word}</td>' in html


def test_json() -> None:
    document = json.loads(summary().to_json())
    assert document["tables"] == {"Queues": [{"name": HARMFUL, "messages": 12_345, "durable": True}]}
    assert document["good"] is True and document["facts"]["messages"] == 12_345
    assert list(document["plots"]) == ["Rates"]


def test_a_summary_comes_back_from_its_json() -> None:
    there = summary(3)
    back = Summary.from_json(there.to_json())
    assert render("PandoMQ", [back]) == render("PandoMQ", [there])


def test_several_jobs_have_ways_to_each() -> None:
    bad = Summary("audit", "2 messages are lost", good=False)
    page = parsed(render("PandoMQ", [summary(), bad], "What came of it."))
    ways = [(way.get("class"), way.get("href"), way.text) for way in page.iter("a")]
    assert ways == [("good", "#part0", "rollup"), ("bad", "#part1", "audit")]
    assert {section.get("id") for section in page.iter("section")} == {"part0", "part1"}
    assert "What came of it." in "".join(page.itertext())
