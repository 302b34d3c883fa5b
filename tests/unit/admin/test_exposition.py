"""Prometheus' text format, read by its own parser."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from pandomq.admin.exposition import COUNTER, GAUGE, Exposition

labels = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(labels, labels, st.integers(0, 2**53)), max_size=5, unique_by=lambda sample: sample[:2]))
def test_any_name_can_be_a_label(samples: list[tuple[str, str, int]]) -> None:
    page = Exposition()
    named = [({"vhost": vhost, "queue": queue}, value) for vhost, queue, value in samples]
    asyncio.run(page.add_slices("messages", GAUGE, "Messages", named))
    text = page.encode().decode()
    if not all("\r" not in vhost + queue and (vhost + queue).isprintable() for vhost, queue, _ in samples):
        # The parser splits at more line ends than the format has.
        return
    [family] = text_string_to_metric_families(text)
    assert [(sample.labels, sample.value) for sample in family.samples] == [
        (label, float(value)) for label, value in named
    ]


def test_families_have_help_and_type() -> None:
    page = Exposition()
    page.add("a_total", COUNTER, "Counts", 5)
    page.add("b", GAUGE, "Measures", 0.25, {"unit": "s"})
    assert page.encode().decode().splitlines() == [
        "# HELP a_total Counts",
        "# TYPE a_total counter",
        "a_total 5",
        "# HELP b Measures",
        "# TYPE b gauge",
        'b{unit="s"} 0.25',
    ]
