"""Examples of steps, operators and macros for the reference page; a test runs each."""

from typing import Any, Final

BODY: Final[dict[str, Any]] = {"total": 12.5, "name": "Ada", "lines": [1, 2, 3]}  # input of the expressions below

# (step, body before, body after). A text as body after is the cause of the failed step, None means that the message is
# filtered, a list is the bodies that explode makes.
STEPS: Final[list[tuple[dict[str, Any], Any, Any]]] = [
    ({"op": "set", "path": "order.shop", "value": "web"}, {"order": {}}, {"order": {"shop": "web"}}),
    ({"op": "set", "path": "lines.*.new", "value": 1}, {"lines": [{}, {}]}, {"lines": [{"new": 1}, {"new": 1}]}),
    ({"op": "remove", "path": "who.mail"}, {"who": {"mail": "a@x.example", "id": 7}}, {"who": {"id": 7}}),
    ({"op": "rename", "path": "sum", "to": "order.total"}, {"sum": 3}, {"order": {"total": 3}}),
    ({"op": "keep", "fields": ["id", "lines.*.sku"]}, {"id": 7, "x": 1, "lines": [{"sku": "a", "n": 2}]},
     {"id": 7, "lines": [{"sku": "a"}]}),
    ({"op": "cast", "path": "n", "to": "int"}, {"n": "42"}, {"n": 42}),
    ({"op": "cast", "path": "n", "to": "int"}, {"n": "4.2"}, "n: text cannot be cast to int"),
    ({"op": "cast", "path": "at", "to": "datetime"}, {"at": "2026-01-31T12:00:00+01:00"},
     {"at": "2026-01-31T11:00:00Z"}),
    ({"op": "cast", "path": "total", "to": "money", "currency": "EUR"}, {"total": 12.5},
     {"total": {"amount": "12.50", "currency": "EUR"}}),
    ({"op": "default", "path": "country", "value": "NL"}, {"country": None}, {"country": "NL"}),
    ({"op": "mask", "path": "card", "how": "partial"}, {"card": "4111111111111111"}, {"card": "***1111"}),
    ({"op": "mask", "path": "name"}, {"name": "Ada"}, {"name": "***"}),
    ({"op": "explode", "path": "lines"}, {"id": 7, "lines": ["a", "b"]},
     [{"id": 7, "lines": "a"}, {"id": 7, "lines": "b"}]),
    ({"op": "peek", "name": "after-cast", "share": 0.01}, {"a": 1}, {"a": 1}),
    ({"op": "filter", "when": "body.total > 100"}, {"total": 120}, {"total": 120}),
    ({"op": "filter", "when": "body.total > 100"}, {"total": 12}, None),
    ({"op": "filter", "when": "body.total > 100"}, {}, "when: no such field: total"),
    ({"op": "map", "path": "vat", "expr": "double(body.total) * 0.21"}, {"total": 100}, {"total": 100, "vat": 21.0}),
    ({"op": "map", "path": "$", "expr": "{\"ids\": body.lines.map(line, line.id)}"}, {"lines": [{"id": 1}, {"id": 2}]},
     {"ids": [1, 2]}),
]  # fmt: skip

# (description, expression, result as JSON or the cause of the error)
SYNTAX: Final[list[tuple[str, str, str]]] = [
    ("Fields of objects", "body.name", '"Ada"'),
    ("Fields of any name", 'body["name"]', '"Ada"'),
    ("Elements, from 0", "body.lines[0]", "1"),
    ("A missing field is an error", "body.gone", "no such field: gone"),
    ("Test for a field", "has(body.gone)", "false"),
    ("Arithmetic, 64-bit integers", "7 / 2 + 7 % 2", "4"),
    ("Doubles", "body.total * 2.0", "25.0"),
    ("Arithmetic of an int and a double is an error", "body.total * 2",
     "* cannot take double and int; write double(...) around the int"),
    ("Comparison, numbers of both kinds", "body.total > 12 && body.total != 13", "true"),
    ("An error of one side is ignored if the other side decides", "body.gone > 1 || body.total > 1.0", "true"),
    ("Conditional", 'body.total > 10.0 ? "large" : "small"', '"large"'),
    ("Element of a list, key of a map", '2 in body.lines && "name" in body', "true"),
    ("Concatenation of text", 'body.name + "!"', '"Ada!"'),
    ("Lists and maps", '{"first": body.lines[0], "all": body.lines + [4]}', '{"first":1,"all":[1,2,3,4]}'),
    ("Test of all, any or exactly one element",
     "body.lines.all(n, n > 0) && body.lines.exists(n, n > 2) && body.lines.exists_one(n, n == 1)", "true"),
    ("Elements that meet a condition", "body.lines.filter(n, n > 1)", "[2,3]"),
    ("A value for each element", "body.lines.map(n, n * n)", "[1,4,9]"),
    ("A value for each element that meets a condition", "body.lines.map(n, n > 1, n * n)", "[4,9]"),
    ("A pattern (RE2) anywhere in a text", 'body.name.matches("^A.a$")', "true"),
    ("Times", 'timestamp("2026-01-31T12:00:00Z") + duration("90m") > timestamp("2026-01-31T13:00:00Z")', "true"),
]  # fmt: skip
