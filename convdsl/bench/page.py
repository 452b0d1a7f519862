"""`convdsl bench --html`: one page with the roofline, bars and all numbers; it needs no network."""

from __future__ import annotations

from convdsl.bench import words
from convdsl.bench.plots import bars, roofline
from convdsl.bench.record import LayerRecord, Record, Row
from convdsl.report.markup import Child, Markup, tag
from convdsl.report.style import CSS

MORE = """\
.roof { stroke: var(--ink); stroke-width: 1.6; }
.floor { stroke: var(--ink); stroke-width: 1.4; stroke-dasharray: 3 2; }
.wrong { fill: var(--minus-ink); }
figure.wide { max-width: 52rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .84rem; margin: .6rem 0; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--rule); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
"""
COLUMNS = ("who", "time, ms", "call, ms", "GFLOP/s", "vs peer", "error", "largest", "plan")


def page_of(record: Record) -> str:
    """The whole page."""
    title = "convdsl bench"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(CSS + MORE)),
    )
    body = tag(
        "body",
        tag("header", tag("h1", title), tag("pre", record.command), _links()),
        tag("main", _machine(record), _summary(record), _rooflines(record), _layers(record)),
        tag("footer", tag("p", f"Made by convdsl {record.convdsl}.", class_="soft")),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _links() -> Markup:
    names = {"machine": "Machine", "means": "Means", "roofline": "Roofline", "layers": "Layers"}
    return tag("nav", *(tag("a", text, href=f"#{name}") for name, text in names.items()))


def _machine(record: Record) -> Markup:
    items: list[Child] = [
        tag("li", tag("b", name), f": {words.facts_line(facts)}")
        for name, facts in record.contestants.items()
    ]
    items += [
        tag("li", tag("b", f"at most, {place}"), f": {words.ceilings_line(c)}, as measured")
        for place, c in record.ceilings.items()
    ]
    items += [tag("li", f"note: {note}") for note in record.notes]
    where = f"{record.system}; Python {record.python}; accuracy {record.accuracy}"
    return tag("section", tag("h2", "Machine", id="machine"), tag("p", where), tag("ul", *items))


def _summary(record: Record) -> Markup:
    lines = [tag("li", line) for line in words.means(record)]
    said = "How many times as fast as each: geometric means, over how many layers."
    body = tag("ul", *lines) if lines else tag("p", "There is no peer to compare with.")
    return tag("section", tag("h2", "Means", id="means"), tag("p", said, class_="soft"), body)


def _rooflines(record: Record) -> Markup:
    shown: list[Child] = []
    for place, ceilings in record.ceilings.items():
        picture = roofline(place, ceilings, record.layers)
        if picture is None:
            continue
        caption = tag(
            "figcaption", tag("b", place.upper()), " ", _key("mine"), "convdsl, numbered as below; ",
            _key("other"), "the best peer. The lines are what the machine can do at most.",
        )  # fmt: skip
        shown.append(tag("figure", picture, caption, class_="wide"))
    if not shown:
        shown = [tag("p", "Nothing was measured.", class_="soft")]
    return tag("section", tag("h2", "Roofline", id="roofline"), *shown)


def _key(kind: str) -> Markup:
    return tag("span", "", class_=f"key k-{kind}")


def _layers(record: Record) -> Markup:
    parts: list[Child] = [tag("h2", "Layers", id="layers")]
    parts += [tag("p", line, class_="soft") for line in words.WHAT.split("\n")]
    for number, layer in enumerate(record.layers, 1):
        parts.append(tag("h3", f"{number}. {layer.name}"))
        said = words.layer_line(layer) + (f". {layer.source}" if layer.source else "")
        parts.append(tag("p", said, class_="soft"))
        if any(r.seconds for r in layer.rows):
            caption = tag(
                "figcaption", "Times: ", _key("mine"), "convdsl, ", _key("staged"), "peers, ",
                _key("band"), "the bare product. A dashed line is the floor.",
            )  # fmt: skip
            picture = bars(layer, dict(record.ceilings))
            parts.append(tag("figure", picture, caption, class_="wide"))
        parts.append(tag("div", _table(layer), class_="scroll"))
    return tag("section", *parts)


def _table(layer: LayerRecord) -> Markup:
    best = layer.best_peer()
    kinds = [None, *["number"] * (len(COLUMNS) - 2), None]
    names = zip(COLUMNS, kinds, strict=True)
    head = tag("tr", *(tag("th", name, scope="col", class_=kind) for name, kind in names))
    rows = [_row(layer, row, best) for row in layer.rows]
    return tag("table", tag("caption", layer.name), tag("thead", head), tag("tbody", *rows))


def _row(layer: LayerRecord, row: Row, best: Row | None) -> Markup:
    numbers = [
        words.milliseconds(row.seconds),
        words.milliseconds(row.call if row.clock == "device" else None),
        words.rate(layer, row),
        words.times(layer.against(row, best)),
        words.error(row.error.l2 if row.error else None),
        words.error(row.error.largest if row.error else None),
    ]
    return tag(
        "tr",
        tag("th", row.name, scope="row"),
        *(tag("td", text, class_="number") for text in numbers),
        tag("td", words.remark(row)),
    )
