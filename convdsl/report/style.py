"""The style sheet of the page: light and dark, wide and narrow, nothing loaded from elsewhere."""

CSS = """\
:root {
  color-scheme: light dark;
  --page: #fbfaf8; --ink: #1c1f23; --soft: #646b73; --rule: #dcd8d0; --card: #ffffff;
  --accent: #0b62a8; --mine: #d9480f; --other: #5f3dc4; --band: #bcd7ee; --staged: #3d8fd1;
  --minus: #fbe3df; --plus: #dff2e1; --minus-ink: #8c2413; --plus-ink: #14602a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --ink: #e4e6e8; --soft: #99a1aa; --rule: #333a41; --card: #1c2125;
    --accent: #7dbcf0; --mine: #ff8a4c; --other: #b197fc; --band: #22425d; --staged: #3a86c4;
    --minus: #43211d; --plus: #1b3a24; --minus-ink: #ffb4a5; --plus-ink: #9be3ab;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body {
  margin: 0 auto; padding: 1.25rem clamp(.9rem, 3vw, 2.5rem) 4rem; max-width: 84rem;
  background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1 { font-size: clamp(1.4rem, 4vw, 2rem); line-height: 1.2; margin: .2rem 0 .4rem; }
h1, h2, h3 { overflow-wrap: anywhere; }
h2 {
  font-size: 1.2rem; margin: 2.6rem 0 .7rem; padding-top: .6rem; border-top: 1px solid
  var(--rule);
}
h3 { font-size: 1rem; margin: 1.4rem 0 .5rem; }
p { margin: .4rem 0; max-width: 46rem; }
a { color: var(--accent); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .8rem 0 0; }
code, pre, .step { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre {
  margin: 0; padding: .7rem .8rem; background: var(--card); border: 1px solid var(--rule);
  border-radius: 6px; font-size: .8rem; line-height: 1.5; overflow-x: auto; tab-size: 4;
}
pre.long { max-height: 34rem; overflow: auto; }
.soft, figcaption { color: var(--soft); }
.facts {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .6rem;
  margin: .8rem 0; padding: 0;
}
.facts div {
  background: var(--card); border: 1px solid var(--rule); border-radius: 6px; padding: .45rem
  .7rem;
}
.facts dt { color: var(--soft); font-size: .8rem; }
.facts dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
figure {
  flex: 1 1 17rem; max-width: 27rem; margin: 0; padding: .9rem; background: var(--card); border:
  1px solid var(--rule); border-radius: 6px;
}
figcaption { font-size: .85rem; margin-top: .6rem; line-height: 1.45; }
figcaption b { color: var(--ink); }
svg { display: block; width: 100%; height: auto; margin: 0 auto; }
.key {
  display: inline-block; width: .8em; height: .8em; border-radius: 2px; vertical-align: -.05em;
  margin-right: .3em;
}
text { paint-order: stroke; stroke: var(--card); stroke-width: 4px; stroke-linejoin: round; }
.label { fill: var(--ink); font: 12px system-ui, sans-serif; }
.small { fill: var(--soft); font: 10.5px system-ui, sans-serif; }
.name { fill: var(--ink); font: 600 13px ui-monospace, Menlo, monospace; }
.matrix, .operand, .sum { fill: var(--page); stroke: var(--soft); }
.nothing { display: none; }
.band { fill: var(--band); } .staged { fill: var(--staged); } .tile, .mine { fill: var(--mine); }
.k-mine { background: var(--mine); } .k-other { background: var(--other); }
.k-band { background: var(--band); } .k-staged { background: var(--staged); }
.other { fill: var(--other); }
.grid { stroke: var(--soft); stroke-width: .6; } .fine { stroke: var(--rule); stroke-width: .6; }
.zoom { stroke: var(--soft); stroke-width: .7; stroke-dasharray: 2 2; }
.beyond { fill: none; stroke: var(--soft); stroke-dasharray: 2 2; stroke-width: .7; }
details { border-top: 1px solid var(--rule); padding: .55rem 0; }
summary { cursor: pointer; padding: .15rem 0; overflow-wrap: anywhere; }
.step { font-weight: 600; font-size: .88rem; }
.tag {
  font-size: .72rem; border: 1px solid var(--rule); border-radius: 99px; padding: .05rem .5rem;
  color: var(--soft); white-space: nowrap;
}
.pair {
  display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: .6rem; margin: .5rem
  0 .3rem;
}
.pair pre { white-space: pre-wrap; overflow-wrap: anywhere; height: 100%; }
.pair pre span {
  display: block; padding-left: calc(var(--d) * 1ch + 2ch); text-indent: calc(var(--d) * -1ch -
  2ch);
}
.pair .same { color: var(--soft); }
.pair .minus { background: var(--minus); color: var(--minus-ink); }
.pair .plus { background: var(--plus); color: var(--plus-ink); }
.pair .head { font-size: .75rem; color: var(--soft); margin-bottom: .15rem; }
.pair > div { display: flex; flex-direction: column; }
@media (max-width: 46rem) {
  figure { max-width: none; }
  .pair { grid-template-columns: minmax(0, 1fr); }
  pre { font-size: .74rem; }
}
@media print { pre.long { max-height: none; } }
"""
