"""Arithmetic on figures: what a page computes from result files, as text and as a number.

An expression has numbers, + - * / **, brackets, HANDLE.COLUMN, and the functions below. A column of several rows is a list, and
arithmetic goes row by row.
"""

import ast
import operator
import statistics

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow}
FUNCTIONS = {"min": min, "max": max, "mean": statistics.fmean, "gmean": statistics.geometric_mean, "len": len}


class BadExpression(Exception):
    """The message says what is wrong."""


def row_by_row(operate, *operands):
    rows = {len(each) for each in operands if isinstance(each, list)}
    if len(rows) > 1:
        raise BadExpression(f"lists of {' and '.join(map(str, sorted(rows)))} rows")
    if not rows:
        return operate(*operands)
    (number,) = rows
    return [operate(*row) for row in zip(*(each if isinstance(each, list) else [each] * number for each in operands))]


def value(text, look_up):
    """What the expression TEXT is. LOOK_UP: from a handle and a column to a number or a list of them."""

    def of(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return row_by_row(OPERATORS[type(node.op)], of(node.left), of(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return row_by_row(operator.neg, of(node.operand))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return look_up(node.value.id, node.attr.replace("\u03bc", "\u00b5"))  # Python reads micro as mu
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords:
            arguments = [of(each) for each in node.args]
            every = [number for each in arguments for number in (each if isinstance(each, list) else [each])]
            return FUNCTIONS[node.func.id](every)
        raise BadExpression(f"{ast.unparse(node)!r} is none of numbers, + - * / **, HANDLE.COLUMN, {', '.join(FUNCTIONS)}()")

    try:
        found = of(ast.parse(text, mode="eval").body)
    except (SyntaxError, ArithmeticError, ValueError) as error:
        raise BadExpression(f"cannot be computed: {error}") from None
    if isinstance(found, list):
        raise BadExpression(f"has {len(found)} values: take min(), max() or mean() of them")
    return found


def shown_as(number, figure):
    """NUMBER with as many decimals as FIGURE, a text, has."""
    decimals = len(figure.partition(".")[2])
    return f"{number:{',' if ',' in figure else ''}.{decimals}f}"
