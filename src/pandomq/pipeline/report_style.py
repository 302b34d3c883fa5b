"""The style of reports. Colours are named only here; those of plots are `c0`…`c5`."""

from __future__ import annotations

from typing import Final

from pandomq.pipeline.plots import COLOURS

_PAGE: Final = """
:root {
  color-scheme: light dark;
  --ink: #1b2430; --paper: #f5f6f3; --card: #fff; --soft: #5b6675; --rule: #dfe3e0; --ground: #edf0ec;
  --good: #157043; --good-tint: #e6f4ec; --bad: #b3261e; --bad-tint: #fbe9e7;
  --open: #7a5600; --open-tint: #fbf1d5;
  --c0: #2563b0; --c1: #c2571a; --c2: #23804f; --c3: #8a3fa0; --c4: #8f6c00; --c5: #5c6b7b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e9ef; --paper: #10141a; --card: #181d25; --soft: #9aa5b5; --rule: #2d3541; --ground: #232a34;
    --good: #62cb94; --good-tint: #14291f; --bad: #ff8a80; --bad-tint: #351a19;
    --open: #e6c15c; --open-tint: #2f2812;
    --c0: #7fb2f0; --c1: #f0a070; --c2: #6fcf9d; --c3: #d39ae4; --c4: #e0c060; --c5: #a8b4c4;
  }
}
* { box-sizing: border-box; }
body {
  font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0;
  overflow-wrap: anywhere;
}
header, main { max-width: 62rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 2.2rem; }
h1 { font-size: 1.9rem; line-height: 1.2; letter-spacing: -.015em; margin: 0; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 0 0 .8rem; }
h2::first-letter, .verdict::first-letter { text-transform: uppercase; }
h3 { font-size: 1rem; margin: 1.8rem 0 .3rem; }
.lead { color: var(--soft); max-width: 46rem; margin: .5rem 0 0; }
nav { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1.1rem 0 0; }
nav a {
  color: inherit; text-decoration: none; font-size: .9rem; padding: .2rem .8rem .2rem .65rem; border-radius: 1rem;
  background: var(--card); border: 1px solid var(--rule);
}
nav a:hover, nav a:focus { border-color: var(--soft); }
nav a::before {
  content: ""; display: inline-block; width: .55rem; height: .55rem; border-radius: 50%; margin-right: .45rem;
  background: var(--good);
}
nav a.open::before { background: var(--open); }
nav a.bad::before { background: var(--bad); }
section {
  background: var(--card); border: 1px solid var(--rule); border-radius: .8rem; padding: 1.4rem 1.5rem 1.6rem;
  margin: 1.4rem 0; scroll-margin-top: 1rem;
}
.verdict {
  font-weight: 600; color: var(--good); background: var(--good-tint); border-radius: .45rem; padding: .55rem .9rem;
  margin: 0 0 1.1rem;
}
.verdict.open { color: var(--open); background: var(--open-tint); }
.verdict.bad { color: var(--bad); background: var(--bad-tint); }
td.good { color: var(--good); }
td.open { color: var(--open); }
td.bad { color: var(--bad); font-weight: 600; }
dl {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(9.2rem, 1fr)); grid-auto-flow: dense;
  gap: .9rem 1.2rem; margin: 0;
}
dl .long { grid-column: 1 / -1; }
dt { color: var(--soft); font-size: .83rem; line-height: 1.3; }
dd { margin: 0; font-size: 1.2rem; font-variant-numeric: tabular-nums; }
.long dd { font-size: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; min-width: 50%; overflow-wrap: normal; }
th, td { padding: .32rem 1.4rem .32rem 0; text-align: left; border-bottom: 1px solid var(--rule); vertical-align: top; }
th:last-child, td:last-child { padding-right: .2rem; }
th { color: var(--soft); font-weight: 500; font-size: .83rem; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.short { white-space: nowrap; }
figure { margin: 1.8rem 0 0; }
figcaption { font-weight: 600; margin-bottom: .2rem; }
@media (max-width: 36rem) {
  header { padding-top: 1.3rem; }
  header, main { padding-left: .7rem; padding-right: .7rem; }
  h1 { font-size: 1.5rem; }
  section { padding: 1rem .9rem 1.2rem; border-radius: .6rem; }
  dl { grid-template-columns: repeat(auto-fill, minmax(7.2rem, 1fr)); }
  dd { font-size: 1.05rem; }
  th, td { padding-right: .9rem; }
}
@media print {
  body { background: none; }
  section { break-inside: avoid; border: 0; padding: 0; }
  nav { display: none; }
}
"""

_PLOTS: Final = """
.plot .unit { color: var(--soft); font-size: .8rem; margin: 0; }
.plot .unit.foot { text-align: right; }
.plot ul, .plot ol { list-style: none; margin: .1rem 0 .3rem; padding: 0; font-size: .85rem; }
.plot .legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; }
.plot .marks { margin-top: .5rem; columns: 19rem 2; column-gap: 2rem; }
.plot .marks li { break-inside: avoid; padding-left: 5.25rem; text-indent: -5.25rem; line-height: 1.6; }
.plot .marks b, .plot .marks time { text-indent: 0; display: inline-block; }
.plot .marks time {
  color: var(--soft); font-variant-numeric: tabular-nums; width: 3.2rem; text-align: right; margin-right: .4rem;
}
.plot .marks b {
  width: 1.15rem; line-height: 1.15rem; border-radius: 50%; text-align: center; font-size: .7rem;
  background: var(--soft); color: var(--card);
}
.swatch {
  display: inline-block; width: .75rem; height: .75rem; border-radius: .2rem; margin-right: .4rem;
  vertical-align: -.05rem;
}
.plot svg { display: block; font: 12px system-ui, sans-serif; overflow: visible; }
svg text { fill: var(--ink); }
svg .note { fill: var(--soft); paint-order: stroke; stroke: var(--card); stroke-width: 3px; stroke-linejoin: round; }
svg .strong { font-weight: 600; }
svg text.number { fill: var(--card); font-size: 9.5px; font-weight: 600; }
svg .axis { stroke: var(--soft); }
svg .grid { stroke: var(--rule); }
svg .ground { fill: var(--ground); }
svg .mark { stroke: var(--soft); stroke-dasharray: 2 3; }
svg .badge { fill: var(--soft); }
svg .line { fill: none; stroke-width: 1.8px; stroke-linejoin: round; }
"""

STYLE: Final = (
    _PAGE
    + _PLOTS
    + "".join(
        f"svg .line.c{number} {{ stroke: var(--c{number}); }}\n"
        f"svg .bar.c{number} {{ fill: var(--c{number}); }}\n"
        f".swatch.c{number} {{ background: var(--c{number}); }}\n"
        for number in range(COLOURS)
    )
)
