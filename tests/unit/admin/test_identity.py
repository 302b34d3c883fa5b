"""The user of a request, and the rights of the user's tags."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.admin.access.identity import HttpUser, read_credentials
from pandomq.admin.access.tags import EndpointAccess, check_tags
from pandomq.admin.refusals import Refusal

RANKS = {
    EndpointAccess.MANAGEMENT: {"management", "policymaker", "monitoring", "administrator"},
    EndpointAccess.VHOST: {"management", "policymaker", "monitoring", "administrator"},
    EndpointAccess.POLICIES: {"policymaker", "administrator"},
    EndpointAccess.MONITORING: {"monitoring", "administrator"},
    EndpointAccess.ADMINISTRATOR: {"administrator"},
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
def test_each_tag_allows_its_access(access: EndpointAccess, tag: str) -> None:
    identity = HttpUser("u", (tag,))
    if tag in RANKS[access]:
        check_tags(access, identity)
    else:
        with pytest.raises(Refusal) as refused:
            check_tags(access, identity)
        assert (refused.value.status, refused.value.error) == (401, "not_authorised")


def test_tags_add_up() -> None:
    both = HttpUser("u", ("policymaker", "monitoring"))
    check_tags(EndpointAccess.POLICIES, both)
    check_tags(EndpointAccess.MONITORING, both)
    with pytest.raises(Refusal):
        check_tags(EndpointAccess.ADMINISTRATOR, both)
