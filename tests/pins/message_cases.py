"""Every text of three words or more that the package's code may say: errors, warnings, sentences.

Texts are found in the source, without running it. What is computed in one is ``{}``. Docstrings are
left out; those of commands are in their help.
"""

import ast
import functools
import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "srs_ooc"
_WORD = re.compile(r"[A-Za-z]{2,}")
_SQL = re.compile(r"\s*(SELECT|INSERT|CREATE|PRAGMA|UPDATE|DELETE|BEGIN|DROP|ATTACH)\b")


def texts_of(code):
    """Yield the texts of a module that are no docstrings."""
    tree = ast.parse(code)
    apart = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            apart |= {id(part) for part in node.values if isinstance(part, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart
        ):
            yield node.value


def errors_of(code):
    """Yield the kind and the text of every error that is raised with its text."""
    for node in ast.walk(ast.parse(code)):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and call.args:
            kind = ast.unparse(call.func).rpartition(".")[2]
            for text in texts_of(ast.unparse(call.args[0])):
                if kind.endswith("Error"):
                    yield kind, text


def unfit_of(code):
    """Yield the whole text of every error of ``errors.unfit``, whose parts may be named before."""
    named = {}

    def text(node):
        match node:
            case ast.Constant(value=str(said)):
                return said
            case ast.JoinedStr(values=parts):
                return "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in parts)
            case ast.Name(id=name) if name in named:
                return named[name]
        return "{}"

    for node in sorted(ast.walk(ast.parse(code)), key=lambda node: getattr(node, "lineno", 0)):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = zip(names, values, strict=False)
                named |= {ast.unparse(name): text(one) for name, one in pairs}
            case ast.Assign(targets=[name], value=value):
                named[ast.unparse(name)] = text(value)
            case ast.Call(func=ast.Name(id="unfit"), args=[what, expected, found, *remedy]):
                said = text(remedy[0]) if remedy else "Get the file again."
                yield f"{text(what)}: expected {text(expected)}, found {text(found)}. {said}"


def is_said(text):
    return len(_WORD.findall(text)) >= 3 and " " in text and not _SQL.match(text)


def _modules():
    for file in sorted(SOURCE.rglob("*.py")):
        yield file.read_text(encoding="utf-8")


@functools.cache
def _found():
    """Each text of the package, and the kinds of errors that it is raised in."""
    found = {}
    for code in _modules():
        for text in texts_of(code):
            if is_said(text):
                found.setdefault(text, set())
        for kind, text in errors_of(code):
            if is_said(text):
                found.setdefault(text, set()).add(kind)
        for text in unfit_of(code):
            found.setdefault(text, set()).add("InputError")
    return {text: ", ".join(sorted(kinds)) for text, kinds in sorted(found.items())}


def pin_of_messages(name, _folder):
    return {text: kinds for text, kinds in _found().items() if bool(kinds) == (name == "errors")}


NAMES = ("errors", "other texts")
