"""The table of roles: what it says, and that the page shows it."""

from __future__ import annotations

from pandomq.replica.roles.transitions import TRANSITIONS, Role, is_legal
from tools import role_diagram


def test_every_role_can_be_reached() -> None:
    reached = {Role.RECOVERING}
    for _ in Role:
        reached |= {new for old in reached for new in TRANSITIONS[old]}
    assert reached == set(Role)


def test_only_a_candidate_becomes_root() -> None:
    assert [role for role in Role if is_legal(role, Role.ROOT)] == [Role.CANDIDATE]


def test_no_role_leads_back_to_recovering_and_a_secondary_stays_one() -> None:
    assert not any(is_legal(role, Role.RECOVERING) for role in Role)
    assert TRANSITIONS[Role.OBSERVER] == {}


def test_the_page_shows_the_tables() -> None:
    text = role_diagram.PAGE.read_text()
    assert text.count("```mermaid") == len(role_diagram.DIAGRAMS)
    assert role_diagram.page(text) == text, "run tools/role_diagram.py"
