"""The parser that finds the blocks of documents which other tests run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.markdown import block, blocks_of

PAGE = """\
# Title

```
pandomq status   # a comment
# another
```

## With `code`

- A list:

  ```python
  def f():
      return "# no heading"
  ```

```
$ pandomq members
name   role
$ pandomq promote n1
```
"""


def test_blocks_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    first, second, third = blocks_of(page)
    assert (first.key, first.line, first.language) == (("Title", 1), 3, "")
    assert first.commands == ["pandomq status   # a comment", "# another"]
    assert (second.key, second.place, second.language) == (("With code", 1), "page.md:12", "python")
    assert second.text == 'def f():\n    return "# no heading"\n'
    assert third.commands == ["pandomq members", "pandomq promote n1"]
    assert block(page, ("With code", 2)) == third


def test_a_block_without_an_end(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("text\n```toml\n[node]\n")
    with pytest.raises(ValueError, match=r"page\.md:2: this block has no end"):
        blocks_of(page)
