"""One value of an option: from text, and whether it is of the right kind."""

from __future__ import annotations

import math
from typing import Any

_WORDS: dict[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number of seconds",
    list: "a list of texts",
}
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parsed(text: str, kind: type) -> Any:
    """What ``text``, from the environment or from the domain, means for an option of ``kind``; else the text itself."""
    try:
        if kind is int:
            return int(text)
        if kind is float:
            return float(text)
    except ValueError:
        return text
    if kind is bool:
        return _TRUTHS.get(text.strip().lower(), text)
    if kind is list:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def fitting(kind: type, value: Any) -> tuple[Any, str]:
    """(``value`` as an option of ``kind`` has it, what is wrong with it or "")."""
    if kind is float and type(value) is int:
        value = float(value)
    if kind is list and isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(value), ""
    if kind is not list and type(value) is kind and not (isinstance(value, float) and not math.isfinite(value)):
        return value, ""
    return value, f"must be {words_for(kind)}, not {value!r}"


def words_for(kind: type) -> str:
    """What an option of ``kind`` is, for people."""
    return _WORDS.get(kind, "a path as text")
