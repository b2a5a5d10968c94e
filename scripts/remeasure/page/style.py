"""How a page looks: one style sheet, light and dark, wide and narrow."""

STYLE = """
:root { color-scheme: light dark; --ink: #222; --faint: #666; --line: #ddd; --ground: #fff; --card: #fafafa;
  --well: #f0f1f3; --good: #00694e; --bad: #a3320b; --mark: #ffe7a3; --alarm: #fbe3da; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --faint: #a0a0a0; --line: #444;
  --ground: #16181a; --card: #1e2124; --well: #282c30; --good: #6fd3b2; --bad: #ff9d76; --mark: #665200;
  --alarm: #4a2416; } }
body { margin: 0 auto; padding: 1.5rem; max-width: 80rem; color: var(--ink); background: var(--ground);
  font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .4rem; }
p { margin: .3rem 0; } .faint { color: var(--faint); } code { font-size: .92em; }
.warning { background: var(--alarm); border-left: 5px solid var(--bad); padding: .6rem .9rem;
  font-weight: 600; margin: 0 0 1rem; overflow-wrap: anywhere; }
section { border: 1px solid var(--line); border-radius: 8px; background: var(--card); margin: 1rem 0;
  padding: .8rem 1rem; overflow-x: auto; content-visibility: auto; contain-intrinsic-size: auto 60rem; }
section > h3 { margin: 0 0 .4rem; font-size: 1rem; overflow-wrap: anywhere; }
section > h3 a { color: inherit; text-decoration: none; } h3 small { font-weight: normal; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; min-width: 34rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem .45rem 0;
  border-top: 1px solid var(--line); font-weight: normal; overflow-wrap: anywhere; }
thead th { border: 0; } th.cell, thead th.corner { width: 17rem; } tr.lists td { border: 0; padding-top: 0; }
th.cell > b { font-weight: 600; }
.pictures { display: flex; flex-wrap: wrap; gap: .6rem; margin-bottom: .3rem; }
figure { margin: 0; } figcaption { font-size: .85em; color: var(--faint); }
img { max-width: 100%; border-radius: 4px; display: block; background: #fff; }
mark { background: var(--mark); color: inherit; border-radius: 3px; padding: 0 .1em; }
mark small { color: var(--faint); margin-left: .25em; }
.state { color: var(--bad); font-weight: 600; } .good, .yes b { color: var(--good); }
.bad, .no b { color: var(--bad); }
.kind { border: 1px solid var(--bad); border-radius: 4px; padding: 0 .35em; font-size: .85em; }
.unseen { color: var(--faint); font-size: .88em; font-style: italic; }
details { color: var(--faint); font-size: .92em; } summary { cursor: pointer; }
details > div { color: var(--ink); background: var(--well); border-radius: 6px; padding: .5rem .7rem;
  margin: .3rem 0 .5rem; max-height: 26rem; overflow-y: auto; }
.slot { border: 1px solid var(--faint); border-radius: 4px; padding: 0 .35em; font-size: .88em;
  color: var(--faint); white-space: nowrap; }
.role { color: var(--faint); font-size: .88em; margin: .5rem 0 0; }
.boxes { display: flex; flex-wrap: wrap; gap: .4rem 1.6rem; font-size: .92em; }
.boxes > div { flex: 1 1 19rem; min-width: 0; }
.boxes h4 { margin: .2rem 0; font-size: 1em; font-weight: 600; }
.boxes ol, .boxes ul { margin: 0; padding-left: 0; list-style: none; counter-reset: line; }
.boxes li { display: grid; grid-template-columns: 1.7rem 1.1rem 1fr; counter-increment: line; }
.boxes li::before { content: counter(line); color: var(--faint); font-size: .85em; }
.boxes ul li { grid-template-columns: 1.1rem 1fr; } .boxes ul li::before { content: none; }
.boxes li b { font-weight: 700; } .boxes .neither b { color: var(--faint); font-weight: normal; }
.boxes li small { color: var(--faint); }
.beside { display: flex; flex-wrap: wrap; gap: .4rem 2rem; } .beside > div { flex: 1 1 22rem; min-width: 0; }
.beside .boxes { align-content: flex-start; }
.numbers { content-visibility: visible; } .numbers table { table-layout: auto; font-size: .88em; }
.numbers th, .numbers td { overflow-wrap: normal; padding-right: .7rem; min-width: 3.6rem; }
.numbers th { font-weight: 600; } .numbers td:last-child { min-width: 9rem; }
.numbers small { color: var(--faint); font-size: .92em; }
.numbers ul { font-size: .88em; margin: .2rem 0; padding-left: 1.2rem; }
nav { font-size: .88em; line-height: 1.9; } nav a { margin-right: .7em; color: var(--faint); }
nav a.bad { color: var(--bad); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 .5rem; margin: .2rem 0 0;
  font-size: .88em; }
dl.facts { grid-template-columns: fit-content(9rem) minmax(0, 1fr); font-size: .92em; }
dl.facts dd { overflow-wrap: anywhere; } dl.facts details { font-size: 1em; }
dt { color: var(--faint); } dd { margin: 0; } .which { display: none; }
@media (max-width: 46rem) { body { padding: .7rem; } section { padding: .6rem .7rem; }
  table { min-width: 0; } table, thead, tbody, tr, th, td { display: block; width: auto !important; }
  thead th.corner { display: none; } th, td { padding-right: 0; } td { border: 0; padding-top: 0; }
  .which { display: block; color: var(--faint); font-size: .85em; } }
"""
