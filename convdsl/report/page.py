"""`convdsl show --html`: one page with everything, which needs no network."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from convdsl._version import __version__
from convdsl.report.change import change
from convdsl.report.figures import figures
from convdsl.report.markup import Markup, join, tag
from convdsl.report.steps import Shot, changes, how, shots
from convdsl.report.style import CSS

if TYPE_CHECKING:
    from convdsl.kernel import Kernel


def page_of(kernel: Kernel, text: str | None = None) -> str:
    """The page of the variant that `kernel.source` shows; `text` is the program as it was written."""
    seen = shots(kernel)
    name, target = kernel.options.op.name, kernel.target
    title = f"{name} for {target}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(CSS)),
    )
    body = tag(
        "body",
        tag("header", tag("h1", title), _numbers(kernel), _plan(kernel), _links()),
        tag(
            "main",
            _pictures(kernel, seen[-1]),
            _texts(kernel, text or kernel.options.text),
            _steps(seen),
            _generated(kernel),
        ),
        tag("footer", tag("p", f"Made by convdsl {__version__}.", class_="soft")),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _numbers(kernel: Kernel) -> Markup:
    options = kernel.options
    sizes, absent = kernel.variant
    numbers = {**dict(options.params), **sizes}
    shown = ", ".join(f"{name}={value}" for name, value in numbers.items()) or "none"
    symbols = ", ".join(n for n in options.op.input_sizes if n in options.dynamic)
    parts = [f"Numbers: {shown}."]
    if symbols:
        parts.append(f"Symbols: {symbols}.")
    if absent:
        parts.append(f"Absent: {', '.join(sorted(absent))}.")
    return tag("p", " ".join(parts), class_="soft")


def _plan(kernel: Kernel) -> Markup:
    plan = kernel.plan
    if len(plan.equations) < 2:
        return tag("p", f"{plan.algorithm}: {plan.reason}.")
    rows = [tag("li", tag("code", name), f": {why}") for name, why in plan.equations.items()]
    return tag("ul", *rows)


def _links() -> Markup:
    names = {"tiles": "Tiles", "text": "Text", "steps": "Steps", "generated": "Generated text"}
    return tag("nav", *(tag("a", text, href=f"#{name}") for name, text in names.items()))


def _pictures(kernel: Kernel, last: Shot) -> Markup:
    return tag("section", tag("h2", "Tiles", id="tiles"), *figures(kernel, last))


def _texts(kernel: Kernel, text: str) -> Markup:
    return tag(
        "section",
        tag("h2", "Text", id="text"),
        tag("pre", text.rstrip()),
        tag("h3", "The schedule"),
        tag("pre", (kernel.schedule or "").rstrip()),
    )


def _steps(seen: list[Shot]) -> Markup:
    given = any(shot.given for shot in seen)
    parts = [tag("h2", "Steps", id="steps"), tag("p", _explained(seen, given))]
    first = [change(name, text, text) for name, text in seen[0].nests.items()]
    if len(seen) == 1:
        parts += first
    for number, (before, after) in enumerate(pairwise(seen), start=1):
        parts.append(_step(number, before, after, given))
    return tag("section", *parts)


def _explained(seen: list[Shot], given: bool) -> str:
    count = len(seen) - 1
    if not count:
        return f"There are no steps:{how(seen[0].state, '')}."
    who = "Steps that the schedule leaves open are filled in." if given else "All are chosen."
    return (
        f"{count} step{'' if count == 1 else 's'}, each with the loops before and after; what changed "
        f"is marked. {who}"
    )


def _step(number: int, before: Shot, after: Shot, given: bool) -> Markup:
    assert after.step is not None
    title = [f"{number}. ", tag("span", str(after.step), class_="step")]
    if given and not after.given:
        title += [" ", tag("span", "filled in", class_="tag")]
    pairs = changes(before, after)
    what = (type(after.step).__doc__ or "").split("\n")[0].split("`")
    words = [tag("code", part) if n % 2 else part for n, part in enumerate(what)]
    return tag(
        "details",
        tag("summary", *title),
        tag("p", *words, class_="soft"),
        *(change(name, old, new) for name, (old, new) in pairs.items()),
        *([] if pairs else [tag("p", "It changes nothing here.", class_="soft")]),
        open="",
    )


def _generated(kernel: Kernel) -> Markup:
    return join(
        [
            tag("h2", "Generated text", id="generated"),
            tag("pre", kernel.source.rstrip(), class_="long"),
        ]
    )
