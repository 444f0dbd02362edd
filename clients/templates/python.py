"""clients/python. It is written once, with asyncio: what its other half is, `synchronous` says."""
import json
import re
from pathlib import Path

from .walk import constants, form_of, full_name, methods, reply_type, wrapped

HOME = Path(__file__).resolve().parents[1] / "python" / "leaderboard_client"

# What a reply becomes.
PYTHON_REPLIES = {
    "<OK>": "None", "i": "int", "b": "bool", "s": "str", "{s}": "Dict[str, str]", "@Board": "Dict[str, Any]",
    "@League": "Dict[str, Any]", "@ListedBoard": "Dict[str, Any]", "@LeaguePlaced": "Optional[LeaguePlace]",
    "@Count": "ValueCount", "d": "int", "[chances:[n] quality:n]": "Prediction",
    "?": "Optional[{}]", "[": "List[{}]", "cursor": "Page[{}]",
}
PYTHON_TYPES = {"integer": "int", "double": "Number", "unix-time": "Time", "key": "Name", "pattern": "Name"}
PYTHON_PARTS = {"PCT": "pct=pct", "WITHKEY": "withkey=withkey", "TAGS": "tags=tags", "DATA": "data=data is not None",
                "FIELDS": "fields=fields", "SINCE": "since=since is not None", "RATING": "rating=rating"}
PYTHON_HEAD = '''\
"""The LB. commands as async methods. Written by `make clients` from the server's table of commands: do not edit."""

from typing import Any, Dict, Iterable, List, Literal, Mapping, Optional, Tuple

from . import parse
from .records import (
    Ban,
    BoardRecord,
    Cut,
    Held,
    LeaguePlace,
    OwnRecords,
    Page,
    Placed,
    Played,
    Prediction,
    Rated,
    Record,
    Result,
    ValueCount,
)
from .async_senders import AsyncBoardSender, AsyncDatabaseSender
from .words import (
    Name,
    Number,
    Results,
    Several,
    Time,
    Word,
    alternatives,
    groups,
    milliseconds,
    pairs,
    results as results_words,
    several,
    split,
)
'''


def python_name(parameter):
    """Python's own words get a '_'."""
    return parameter.name + ("_" if parameter.name in ("if", "from", "for", "in", "is", "or", "and", "not") else "")


def python_part_type(part, is_token_repeated):
    word = PYTHON_TYPES.get(part.type, "Word")
    if part.choices:
        word = f"Literal[{', '.join(json.dumps(each['token']) for each in part.choices)}]"
    if part.kind == "groups":
        return f"Iterable[Several[{word}]]"
    is_several = {"pairs": is_token_repeated, "results": part.has_many}.get(part.kind, part.kind == "several")
    word = f"Several[{word}]" if is_several else word
    return {"pairs": f"Mapping[str, {word}]", "results": f"Results[{word}]"}.get(part.kind, word)


def python_parameter(method, at):
    parameter = method.signature[at]
    if parameter.kind == "flag":
        return f"{python_name(parameter)}: bool = False"
    if parameter.kind in ("words", "boards"):
        type_ = "Several[Word]" if parameter.kind == "words" else "Several[Name]"
    else:
        types = [python_part_type(part, parameter.is_token_repeated and len(parameter.parts) == 1)
                 for part in parameter.parts]
        type_ = types[0] if len(types) == 1 else f"Tuple[{', '.join(types)}]"
    if parameter.is_required:
        return f"{python_name(parameter)}: {type_}"
    # A positional one has a default if all behind it have.
    may_default = not any(each.place == "positional" and each.is_required for each in method.signature[at:])
    return f"{python_name(parameter)}: Optional[{type_}]{' = None' if may_default else ''}"


def python_doc(method):
    command = method.command
    exist_ok = " exist_ok: a key that is there is no error." if method.creates else ""
    syntax = f"{full_name(command)} {command['syntax']}"
    return "\n".join(wrapped(f'"""{command["summary"]}.'.split(), " " * 8, 100) + [""]
                     + wrapped(syntax.split(), " " * 12, 100) + [""]
                     + wrapped(f"{command['complexity']}.{exist_ok}".split(), " " * 8, 100) + ['        """\n'])


def python_part(part, value, repeated):
    if part.kind == "one":
        return f"milliseconds({value})" if part.type == "unix-time" else value
    function = "results_words" if part.kind == "results" else part.kind
    token = f', token="{repeated}"' if repeated else ""
    return f"*{function}({value}{token}{', counted=True' if part.is_counted else ''})"


def python_elements(parameter):
    """Of the list of words, once the parameter is given."""
    name = python_name(parameter)
    if parameter.kind == "board":
        return "self.name"
    if parameter.kind == "boards":
        return f"*several(self.name if {name} is None else {name}, counted=True)"
    words = [f'"{parameter.token}"'] if parameter.token and not parameter.is_token_repeated else []
    for number, part in enumerate(parameter.parts):
        value = f"{name}[{number}]" if len(parameter.parts) > 1 else name
        words += [f'"{part.before}"'] * (part.before is not None)
        words.append(python_part(part, value, parameter.token if parameter.is_token_repeated else None))
    return ", ".join(words + [f"*split({name})"] * (parameter.kind == "words"))


def python_request(method):
    """A list for what is always there, and one for each option."""
    text = "        request: List[Word] = [" + ", ".join(f'"{word}"' for word in full_name(method.command).split())
    is_open = True
    for each in method.parameters:
        if each.kind == "flag" or (each.place and each.kind != "boards" and not each.is_required):
            given = "" if each.kind == "flag" else " is not None"
            text += ("]\n" if is_open else "") + f"        if {python_name(each)}{given}:\n            request += ["
            text += python_elements(each) + "]\n"
            is_open = False
        else:
            text += (", " if is_open else "        request += [") + python_elements(each)
            is_open = True
    return text + ("]\n" if is_open else "")


def python_method(method):
    type_, parser = reply_type(method.reply, PYTHON_REPLIES), form_of(method.reply)
    is_long = bool(method.named())
    parameters = ["self"] + [python_parameter(method, at) for at in range(len(method.signature))]
    if is_long:
        parameters.insert(len(parameters) - len(method.named()), "*")
    parameters += ["exist_ok: bool = False"] * method.creates
    listed = "\n        " + ",\n        ".join(parameters) + ",\n    " if is_long else ", ".join(parameters)
    text = f"\n    async def {method.name}({listed}) -> {type_}:\n{python_doc(method)}"
    for group in method.groups():
        names = "".join(f"{python_name(each)}={python_name(each)}, " for each in group)
        text += f"        alternatives({names}required={group[0].is_group_required})\n"
    has_once = method.has("ONCE")
    if has_once:  # a result that may be sent again has an id; PACKED takes none
        text += f"        once = self._once(once{', packed' if method.has('PACKED') else ''})\n"
    text += python_request(method)
    if method.creates:
        return text + "        return await self._create(request, exist_ok)\n"
    if method.has_records:  # it is told which parts a record has
        parser += f"({', '.join(part for token, part in PYTHON_PARTS.items() if method.has(token))})"
    again = "True" if "readonly" in method.command["flags"] else "once is not None" if has_once else "False"
    return text + f"        return await self._send{'_to_all' * method.is_on_all}(request, parse.{parser}, again={again})\n"


def python_commands(tables):
    page = [PYTHON_HEAD, f'\n# sync: VERSION = "{tables["version"]}"\n']
    for is_of_board, name, what in ((True, "Board", "on one board"),
                                    (False, "Database", "on all boards of a database")):
        page.append(f'\n\nclass Async{name}Commands(Async{name}Sender):\n    """Commands {what}."""\n')
        page += [python_method(each) for each in methods(tables) if each.is_of_board == is_of_board]
    return "".join(page)


def python_shapes(tables):
    lines = [f"{re.sub('(?<=[a-z])(?=[A-Z])', '_', name).upper()}: Any = {json.dumps(value, indent=4)}\n"
             for name, value in constants(tables).items()]
    return ('"""Shapes of replies, channels and events. Written by `make clients` from the server\'s tables: do not '
            'edit."""\n\nfrom typing import Any\n\n' + "".join(lines))


def synchronous(text):
    """The other half of a module with asyncio. Its lines that end in "# async" are left out, and what stands behind
    "# sync: " is put in."""
    lines = []
    for line in text.splitlines(keepends=True):
        if line.rstrip().endswith("  # async"):
            continue
        line = re.sub(r"# sync: ?", "", line)
        line = re.sub(r"\b(async|await) ", "", line)
        line = re.sub(r"\bAsync([A-Z]\w*)", r"\1", line)
        line = re.sub(r"\basync_(board|commands|player|senders)\b", r"\1", line)
        line = re.sub(r"__a(iter|enter|exit)__", r"__\1__", line).replace("asyncio.sleep", "time.sleep")
        lines.append(line.rstrip() + "\n")
    return "".join(lines)


def files(tables):
    texts = {"async_commands": python_commands(tables), "commands": synchronous(python_commands(tables)),
             "shapes": python_shapes(tables)}
    for name in ("board", "player", "senders"):
        texts[name] = synchronous((HOME / f"async_{name}.py").read_text(encoding="utf-8"))
    return {f"python/leaderboard_client/{name}.py": text for name, text in texts.items()}
