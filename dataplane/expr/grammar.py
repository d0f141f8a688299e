"""The grammar of the tenant language: CEL's own (github.com/google/cel-spec, doc/langdef.md), in Lark's notation.

Omitted on purpose, and refused by `parse` with their own error text: unsigned integers (`1u`) and bytes (`b"..."`),
which JSON cannot represent, and messages (`Type{...}`), which a pipe does not have.
"""

from typing import Final

GRAMMAR: Final = r"""
?expr: or
     | or "?" or ":" expr -> conditional

?or: and
   | or "||" and -> either

?and: relation
    | and "&&" relation -> both

?relation: addition
         | relation RELATION addition -> binary
         | relation IN addition -> binary

?addition: multiplication
         | addition PLUS multiplication -> binary
         | addition MINUS multiplication -> binary

?multiplication: unary
               | multiplication TIMES unary -> binary

?unary: member
      | NOT not -> unary
      | MINUS minus -> unary

?not: member
    | NOT not -> unary

?minus: member
      | MINUS minus -> unary

?member: primary
       | member "." NAME -> select
       | member "." NAME "(" [arguments] ")" -> method
       | member "[" expr "]" -> index

?primary: NAME -> name
        | NAME "(" [arguments] ")" -> call
        | "(" expr ")"
        | "[" [items] "]" -> list
        | "{" [entries] "}" -> map
        | literal

arguments: expr ("," expr)*
items: expr ("," expr)* ","?
entries: entry ("," entry)* ","?
entry: expr ":" expr

literal: INT | FLOAT | STRING | RAW_STRING | UINT | BYTES | CONSTANT

CONSTANT.2: /(true|false|null)\b/
IN.2: /in\b/
RELATION: "<=" | ">=" | "==" | "!=" | "<" | ">"
PLUS: "+"
MINUS: "-"
TIMES: "*" | "/" | "%"
NOT: "!"

NAME: /[A-Za-z_][A-Za-z0-9_]*/
UINT.2: /(0[xX][0-9a-fA-F]+|[0-9]+)[uU]/
FLOAT.1: /[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+([eE][+-]?[0-9]+)?/
INT: /0[xX][0-9a-fA-F]+|[0-9]+/

BYTES.2: /[bB][rR]?("[^"\r\n]*"|'[^'\r\n]*')/
RAW_STRING.2: /[rR](\"\"\"(.|\n)*?\"\"\"|'''(.|\n)*?'''|"[^"\r\n]*"|'[^'\r\n]*')/
STRING: /\"\"\"(\\(.|\n)|[^\\])*?\"\"\"|'''(\\(.|\n)|[^\\])*?'''|"(\\.|[^"\\\r\n])*"|'(\\.|[^'\\\r\n])*'/

%ignore /[ \t\r\n\f]+/
%ignore /\/\/[^\n]*/
"""

# Names of tokens in error texts. If a value may begin here, the text says only that (and names the closing brackets).
BEGINS_VALUE: Final = "CONSTANT"
CLOSING: Final = {"RPAR": "`)`", "RSQB": "`]`", "RBRACE": "`}`"}
_OPERATORS: Final = ("QMARK", "IN", "RELATION", "PLUS", "MINUS", "TIMES", "__ANON_0", "__ANON_1")
WORDS: Final = {
    **CLOSING,
    **dict.fromkeys(_OPERATORS, "an operator"),
    "NAME": "a name",
    "LPAR": "`(`",
    "LSQB": "`[`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "$END": "the end",
}
