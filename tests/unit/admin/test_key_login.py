"""The login by the cluster's key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.admin.access.key_login import SKEW_S_MAX, Proof, authorization, fits_digest, is_by_key, read_proof
from pandomq.admin.access.key_login import refusal as refusal_of

KEY = b"0123456789abcdef"
NOW_S = 1_700_000_000

requests = st.tuples(st.sampled_from(["GET", "PUT"]), st.binary(max_size=8), st.binary(max_size=8))


def refusal(header: str, key: bytes, method: str, target: bytes, body: bytes, now_s: int) -> str | None:
    proof = read_proof(header)
    if isinstance(proof, str):
        return proof
    assert isinstance(proof, Proof)
    reason = refusal_of(proof, [b"another key of sixteen", key, b""], method, target, now_s)
    return reason or (None if fits_digest(body, proof.digest) else "another body")


@given(requests, requests, st.binary(min_size=1, max_size=20))
def test_a_request_is_let_in_as_it_was_made_and_no_other(
    made: tuple[str, bytes, bytes], sent: tuple[str, bytes, bytes], key: bytes
) -> None:
    header = authorization(KEY, *made, NOW_S)
    assert is_by_key(header)
    assert (refusal(header, KEY, *sent, NOW_S) is None) is (made == sent)
    assert (refusal(header, key, *made, NOW_S) is None) is (key == KEY)


@pytest.mark.parametrize("later_s", [0, SKEW_S_MAX, -SKEW_S_MAX])
def test_clocks_may_differ_a_little(later_s: int) -> None:
    header = authorization(KEY, "GET", b"/", b"", NOW_S)
    assert refusal(header, KEY, "GET", b"/", b"", NOW_S + later_s) is None
    further_s = later_s + (1 if later_s >= 0 else -1) * (SKEW_S_MAX + 1)
    assert (
        refusal(header, KEY, "GET", b"/", b"", NOW_S + further_s)
        == "the clocks differ by more than 300 s: synchronize them"
    )


def test_without_a_key_no_proof_is_accepted() -> None:
    assert refusal(authorization(b"", "GET", b"/", b"", NOW_S), b"", "GET", b"/", b"", NOW_S) is not None
    proof = read_proof(authorization(b"", "GET", b"/", b"", NOW_S))
    assert isinstance(proof, Proof) and refusal_of(proof, [b"", b""], "GET", b"/", NOW_S) == "this broker has no key"


def test_the_login_of_an_older_version_is_named() -> None:
    assert "older format" in str(read_proof(f"PandoMQ-Key {NOW_S}:{'0' * 64}"))


@pytest.mark.parametrize("header", ["PandoMQ-Key", "PandoMQ-Key x:y", "PandoMQ-Key 2:²:0:0", "PandoMQ-Key 3:1:0:0"])
def test_a_malformed_authorization_is_refused(header: str) -> None:
    assert refusal(header, KEY, "GET", b"/", b"", NOW_S) is not None


def test_other_logins_are_no_logins_by_key() -> None:
    assert not is_by_key(None)
    assert not is_by_key("Basic Z3Vlc3Q6Z3Vlc3Q=")
