"""The record of campaigns: runs on the same code add up, and only these."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pandomq.sim.campaigns.campaign_record import COMPILED, SIMULATED, CampaignRun, append, code_hash, total_of

CODE = '''"""A module."""

def two() -> int:
    """Returns two."""
    return 2  # the number
'''


def tree(root: Path, package: str, name: str, text: str) -> Path:
    (root / package).mkdir(parents=True, exist_ok=True)
    (root / package / name).write_text(text)
    return root


@pytest.mark.parametrize("package", ["", *SIMULATED])
def test_comments_and_docstrings_do_not_change_the_hash_and_code_does(package: str, tmp_path: Path) -> None:
    before = code_hash(tree(tmp_path, package, "module.py", CODE))
    other_words = CODE.replace("Returns two.", "The number two.").replace("# the number", "# 2").replace("A mod", "Mod")
    assert code_hash(tree(tmp_path, package, "module.py", other_words)) == before
    assert code_hash(tree(tmp_path, package, "module.py", CODE.replace("return 2", "return 3"))) != before


def test_the_compiled_kernel_counts_and_other_packages_do_not(tmp_path: Path) -> None:
    before = code_hash(tree(tmp_path, "kernel", "module.py", CODE))
    assert code_hash(tree(tmp_path, "admin", "page.py", CODE)) == before
    for suffix in COMPILED:
        after = code_hash(tree(tmp_path, "kernel", f"fast{suffix}", "cdef int one = 1"))
        assert after != before
        before = after


def run(code: str, **changes: object) -> CampaignRun:
    one = CampaignRun("2026-11-19", "0.1.0", "fast", "broker", 0, 5, 3, 1, {}, code=code, by_nodes={"1": 1, "3": 2})
    return msgspec.structs.replace(one, **changes)


def test_runs_on_the_same_code_add_up(tmp_path: Path) -> None:
    file = tmp_path / "campaigns.jsonl"
    old = b'{"date":"2026-11-15","version":"0.1.0","kernel":"fast","world":"log","nodes":0,"first_seed":1,"schedules":9,"seconds":3,"broken":{}}\n'  # noqa: E501
    file.write_bytes(old)
    append(file, run("a"))
    append(file, run("a", kernel="plain", broken={"7": "order"}))
    append(file, run("a", world="log"))
    append(file, run("b", broken={"8": "order"}))
    total = total_of(file, "a")
    assert total.worlds == {"several brokers": 4, "one broker": 2, "logs": 3}
    assert total.text() == (
        "worlds on this state of the code so far, fast and plain kernel: 4 of several brokers, 2 of one broker, "
        "3 of logs; broken: 7"
    )
    assert total_of(file, "b").broken == ["8"]
    assert b'"broken":{}' in file.read_bytes().splitlines()[1]
