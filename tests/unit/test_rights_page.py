from __future__ import annotations

import re

from pandomq.broker.administration.rights import AMQP, DATA
from pandomq.broker.methods.dispatch import HANDLERS
from pandomq.methods import BasicCancelOk, BasicHeld, BasicSettle, ChannelCloseOk, Method
from pandomq.node.data.handlers import HANDLERS as ASKS
from tools import rights_page

NOT_ASKED = (BasicCancelOk, BasicHeld, BasicSettle, ChannelCloseOk)
"""Answers of clients, and what brokers say to each other."""


def name_of(method: type[Method]) -> str:
    class_name, *words = re.findall("[A-Z][a-z]*", method.__name__)
    return f"{class_name.lower()}.{'-'.join(words).lower()}"


def test_the_page_has_the_tables_that_the_broker_asks_by() -> None:
    text = rights_page.PAGE.read_text()
    assert rights_page.BEGIN in text
    assert rights_page.page(text) == text, "run tools/rights_page.py"


def test_each_method_and_each_ask_is_in_a_table() -> None:
    said = {operation.method for operation in AMQP}
    handled = {name_of(kind) for kind in HANDLERS if kind not in NOT_ASKED}
    in_runs = {"basic.publish", "basic.ack", "basic.nack", "basic.reject", "channel.open"}
    assert said == handled | in_runs
    assert set(DATA) == set(ASKS)
