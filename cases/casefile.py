"""Reads case.toml: by tomllib or, with a Python older than 3.11, by a parser of as much of TOML as the cases use."""
import json
import re

try:
    from tomllib import loads
except ImportError:
    loads = None

NAME = re.compile(r"([A-Za-z0-9_-]+) *= *")


def value(text, at):
    """Parses the value that begins at `at`: a string, number, truth value, list or inline table. Returns it and where
    it ends."""
    opening = text[at : at + 1]
    if opening == "'":
        end = text.index("'", at + 1)
        return text[at + 1 : end], end + 1
    if opening not in ("[", "{"):
        return json.JSONDecoder().raw_decode(text, at)
    items, close = [], {"[": "]", "{": "}"}[opening]
    at = skip(text, at + 1)
    while text[at] != close:
        name = NAME.match(text, at) if opening == "{" else None
        item, at = value(text, name.end() if name else at)
        items.append((name[1], item) if name else item)
        at = skip(text, at)
    return (dict(items) if opening == "{" else items), at + 1


def skip(text, at):
    while text[at] in " ,\n":
        at += 1
    return at


def simple(text):
    """Parses what the cases use of TOML."""
    whole = table = {}
    at = 0
    while at < len(text):
        end = (text + "\n").index("\n", at)
        line = text[at:end]
        name = NAME.match(text, at)
        if not line.strip() or line.startswith("#"):
            at = end + 1
        elif line.startswith("["):
            table = whole.setdefault(line.strip("[] "), {})
            at = end + 1
        elif name:
            table[name[1]], at = value(text, name.end())
            if text[at : at + 1] not in ("\n", ""):
                raise ValueError(f"not read: {line}")
        else:
            raise ValueError(f"not read: {line}")
    return whole


def load(text):
    return loads(text) if loads else simple(text)
