"""Who asks, and what its tags allow."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.admin.access import Access, check_tags
from pandomq.admin.identity import Identity, read_credentials
from pandomq.admin.refusals import Refusal

RANKS = {
    Access.MANAGEMENT: {"management", "policymaker", "monitoring", "administrator"},
    Access.VHOST: {"management", "policymaker", "monitoring", "administrator"},
    Access.POLICIES: {"policymaker", "administrator"},
    Access.MONITORING: {"monitoring", "administrator"},
    Access.ADMINISTRATOR: {"administrator"},
}


@given(st.text(st.characters(exclude_characters=":", exclude_categories=["Cs"])), st.binary(max_size=40))
def test_credentials_come_back(user: str, password: bytes) -> None:
    encoded = b64encode(user.encode() + b":" + password).decode()
    assert read_credentials(f"Basic {encoded}") == (user, password)
    assert read_credentials(f"bAsIc {encoded} ") == (user, password)


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("", 401),
        ("Basic", 401),
        ("Bearer abc", 401),
        ("Basic ?", 400),
        ("Basic /w==", 400),
        ("Basic YQ==", 401),
    ],
)
def test_headers_that_are_no_login(header: str | None, status: int) -> None:
    with pytest.raises(Refusal) as refused:
        read_credentials(header)
    assert refused.value.status == status


@pytest.mark.parametrize("access", RANKS)
@pytest.mark.parametrize("tag", ["", "other", "management", "policymaker", "monitoring", "administrator"])
def test_what_tags_allow(access: Access, tag: str) -> None:
    identity = Identity("u", (tag,))
    if tag in RANKS[access]:
        check_tags(access, identity)
    else:
        with pytest.raises(Refusal) as refused:
            check_tags(access, identity)
        assert (refused.value.status, refused.value.error) == (401, "not_authorised")


def test_tags_add_up() -> None:
    both = Identity("u", ("policymaker", "monitoring"))
    check_tags(Access.POLICIES, both)
    check_tags(Access.MONITORING, both)
    with pytest.raises(Refusal):
        check_tags(Access.ADMINISTRATOR, both)
