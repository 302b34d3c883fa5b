"""The log in memory: indexes rise by one, and a batch commits at its end."""

from pandomq.node.log.log import MemoryLog


def test_commits_once_a_batch_with_the_last_index() -> None:
    commits: list[int] = []
    log = MemoryLog(commits.append)
    assert [log.append(b"a"), log.append(b"bc")] == [1, 2]
    assert commits == []
    log.commit()
    log.commit()
    assert commits == [2]
    assert log.append(b"d") == 3
    log.commit()
    assert commits == [2, 3]
    assert log.appended_bytes == 4
