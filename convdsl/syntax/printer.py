"""The canonical text of a tree, and the formatter, which also keeps the comments."""

from __future__ import annotations

from convdsl.diagnostics import CdslError
from convdsl.syntax import ast, expressions
from convdsl.syntax.comments import NO_CUTS, Comments, Cuts, kept_count
from convdsl.syntax.layout import WIDTH, Doc, Group, Line, joined, render
from convdsl.syntax.limits import MAX_BYTES
from convdsl.syntax.parser import parse_items


def print_program(tree: ast.Program) -> str:
    """The canonical text: `parse(print_program(tree)) == tree`."""
    return "".join(line + "\n" for line in _lines(tree, NO_CUTS))


def format_text(text: str, name: str = "<string>") -> str:
    """The canonical form of a text, with all its comments; formatting twice changes nothing."""
    for _ in range(8):  # a comment may move outwards and free a line: usually one round, then none
        tree = parse_items(text, name)
        comments = Comments(tree.source.text)
        formatted = comments.put_into(_lines(tree, comments.cuts))
        if formatted == text:
            break
        text = formatted
        if len(text.encode()) > MAX_BYTES:
            raise CdslError(
                "E0102",
                f"`{name}` would be larger than {MAX_BYTES // 1024} KiB when formatted",
                help="put the operators into several files",
            )
    return text


def _lines(tree: ast.Program, cuts: Cuts) -> list[str]:
    page = _Page(cuts)
    for item in tree.items:
        if page.lines:
            page.put("")
        if isinstance(item, ast.Op):
            page.op(item)
        else:
            page.schedule(item)
    return page.lines


class _Page:
    """The lines so far; `seen` counts their words as `Cuts` does, to know where comments fall."""

    def __init__(self, cuts: Cuts) -> None:
        self.cuts = cuts
        self.lines: list[str] = []
        self.seen = 0

    def put(self, text: str) -> None:
        self.lines += text.split("\n")
        self.seen += kept_count(text)

    def op(self, op: ast.Op) -> None:
        params = [_param(param) for param in op.params]
        opening = f"op {op.name.name}("
        closing = f") -> {render(_param(op.output), column=5)}" + ("" if op.where else " {")
        line = opening + ", ".join(render(param) for param in params) + closing
        inside = self.cuts.inside(self.seen, self.seen + kept_count(line))
        if inside or len(line) > WIDTH or "\n" in line:
            self.put(opening)
            alone = [isinstance(param, ast.TensorDecl) for param in op.params]
            self.fill("    ", "    ", params, alone, ",")
            self.put(closing)
        else:
            self.put(line)
        if op.where:
            clauses: list[Doc] = [_clause(chain) for chain in op.where]
            defines = [chain.ops == ("==",) for chain in op.where]
            self.fill("where ", "      ", clauses, defines, "")
            self.put("{")
        for let in op.lets:
            dtype = f": {let.dtype}" if let.dtype else ""
            self.statement(f"let {let.definition.tensor.name}{dtype}", let.definition)
        self.statement(op.result.tensor.name, op.result)
        self.put("}")

    def fill(self, first: str, next_: str, items: list[Doc], alone: list[bool], last: str) -> None:
        """Items separated by commas, as many on a line as fit, some on lines of their own.

        Where the last line would be a single item, it takes another from a line above of three.
        """
        rows: list[list[str]] = []
        ended = True  # whether the row so far takes no more
        start = self.seen
        for index, (item, single) in enumerate(zip(items, alone, strict=True)):
            comma = "," if index < len(items) - 1 else last
            lead = next_ if index else first
            text = render(item, indent=len(lead) + 4, column=len(lead)) + comma
            end = start + kept_count(text)
            if ended or single or "\n" in text or self.cuts.before(start, end):
                rows.append([text])
            elif len(lead + " ".join([*rows[-1], text])) <= WIDTH:
                rows[-1].append(text)
            else:
                shared = index == len(items) - 1 and len(rows[-1]) > 2
                shared = shared and len(lead + rows[-1][-1]) + 1 + len(text) <= WIDTH
                rows.append([rows[-1].pop(), text] if shared else [text])
            ended = single or "\n" in text or self.cuts.after(start, end)
            start = end
        for number, row in enumerate(rows):
            self.put((next_ if number else first) + " ".join(row))

    def statement(self, name: str, definition: ast.Definition) -> None:
        left = f"{name}{expressions.axes(definition.axes)} = "
        value = expressions.value(definition.value)
        words = kept_count(left + render(value))
        if isinstance(value, Group) and self.cuts.inside(self.seen, self.seen + words):
            value = Group(value.doc, broken=True)
        doc = (left, value)
        self.put("    " + render(doc, indent=4, column=4))

    def schedule(self, item: ast.Schedule) -> None:
        self.put(f"schedule {item.op.name} for {item.target.name} {{")
        for step in item.steps:
            self.put("    " + _words(step.words))
        self.put("}")


def _param(param: ast.TensorDecl | ast.ScalarDecl) -> Doc:
    parts: list[Doc] = []
    if isinstance(param, ast.TensorDecl):
        axes = joined([expressions.size(size) for size in param.axes], (",", Line()))
        parts += [f"{param.name.name}: {param.dtype}[", Group(axes), "]"]
    else:
        parts += [f"{param.name.name}: {param.kind}"]
    if param.default is not None:
        parts += [" = ", expressions.value(param.default)]
    return tuple(parts)


def _clause(chain: ast.Chain) -> Doc:
    parts: list[Doc] = [expressions.size(chain.operands[0])]
    for op, operand in zip(chain.ops, chain.operands[1:], strict=True):
        parts += [f" {op} ", expressions.size(operand)]
    return tuple(parts)


def _words(words: tuple[str, ...]) -> str:
    text = ""
    for word in words:
        close = word in (",", ":", ")", "]") or text.endswith(("(", "[")) or not text
        text += word if close else f" {word}"
    return text
