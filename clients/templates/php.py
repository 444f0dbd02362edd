"""clients/php: options as named arguments, and the maps of replies as arrays whose shapes their comments say."""
import json

from .node import camel
from .walk import UNTYPED, MAPS, constants, entries, form_of, full_name, maps, methods, reply_type, wrapped

PHP_HEAD = "<?php\n\n// Written by `make clients` from the server's table of commands: do not edit.\n\ndeclare(strict_types=1);\n\nnamespace Leaderboard;\n"
PHP_REPLIES = {
    "<OK>": "void", "i": "int", "b": "bool", "{s}": "array<string, string>", "@Board": "BoardInfo", "@League": "LeagueInfo",
    "@ListedBoard": "BoardSummary", "@BoardRecord": "array{board: string, record: Record}", "@LeaguePlaced": "?LeaguePlace",
    "@Count": "array{values: list<?string>, count: int}", "@Cut": "array{rank: int, key: int|string}", "?": "{}|null",
    "[": "list<{}>", "cursor": "array{{cursor: string, items: list<{}>}}",
}
PHP_SHAPES = {"s": "string", "i": "int", "b": "bool", "d": "\\DateTimeImmutable", "#": "int|string"}
WORD, TIME = "int|float|string", "\\DateTimeInterface|int|string"


def php_part(parameter, part):
    if part.choices or parameter.is_text or part.type in ("key", "pattern"):
        return "string"
    if part.kind == "results" and part.type == "integer":
        return "int|string"  # a packed key may be beyond an int
    return "int" if part.type == "integer" else TIME if parameter.is_time(part) else WORD


def php_types(parameter):
    """The type of a parameter, and what its comment says."""
    if parameter.kind == "flag":
        return "bool", "bool"
    if parameter.kind == "boards":
        return "array", "list<string>"
    if parameter.kind == "words":
        return "array|string", f"list<{WORD}>|string"
    types = [php_part(parameter, part) for part in parameter.parts]
    if len(parameter.parts) > 1:
        shown = ", ".join(f"array<string, {type_}>" if part.kind == "pairs" else type_ for part, type_ in zip(parameter.parts, types))
        return "array", f"array{{{shown}}}"
    [part], [type_] = parameter.parts, types
    shown = "|".join(f"'{each['token']}'" for each in part.choices) if part.choices else type_
    if part.kind == "several":
        return f"array|{type_}", f"list<{type_}>|{type_}"
    if part.kind in ("pairs", "results"):
        many = parameter.is_token_repeated if part.kind == "pairs" else part.has_many
        key = "string" if part.kind == "pairs" else "array-key"
        return "array", f"array<{key}, {f'list<{type_}>|' if many else ''}{type_}>"
    return type_, shown


def php_words(parameter):
    value, token = f"${camel(parameter.name)}", f"'{parameter.token}'" if parameter.token else "null"
    if parameter.kind == "board":
        return "$r->board($this->key)"
    if parameter.kind == "boards":
        return f"$r->boards({value} ?? [$this->key])"
    if parameter.kind == "always":
        return f"$r->word({token})"
    if parameter.kind == "flag":
        return f"$r->flag({value}, {token})"
    if parameter.kind == "words":
        return f"$r->split({token}, {value})"
    if len(parameter.parts) == 1:
        parts = [(parameter.parts[0], value)]
    else:
        parts = [(part, f"Request::at({value}, {number})") for number, part in enumerate(parameter.parts)]
    words = ", ".join((f"[['{part.before}']], " if part.before else "")
                      + f"Request::{'counted' if part.is_counted else 'words'}({each}, '{part.kind}')" for part, each in parts)
    if parameter.is_token_repeated:
        return f"$r->each({token}, {words})"
    return f"$r->values({token}, {words})"


def php_method(method):
    name, command = camel(method.name), method.command
    given, about = [], []
    for at, each in enumerate(method.signature):
        type_, shown = php_types(each)
        may_default = not any(other.is_required for other in method.signature[at:])
        default = "" if not may_default else " = false" if type_ == "bool" else " = null"
        null = "" if each.is_required or type_ == "bool" else "null|"
        given.append(f"{null}{type_} ${camel(each.name)}{default}")
        about.append(f"@param {null}{shown} ${camel(each.name)}")
    if method.creates:
        given.append("bool $existOk = false")
        about.append("@param bool $existOk a key that is there is no error")
    shown = reply_type(method.reply, PHP_REPLIES)
    type_ = {"int": "int", "bool": "bool", "void": "void"}.get(shown, "?LeaguePlace" if "LeaguePlace" in shown else "array")
    call = f"{full_name(command)} {command['syntax']}"
    lines = [*wrapped(f"{command['summary']}.".split(), "", 100), "", *wrapped(call.split(), "    ", 100), "", *about]
    lines += [f"@return {shown}"] * (shown != "void")
    text = "\n    /**\n" + "".join(f"     * {line}".rstrip() + "\n" for line in lines) + "     */\n"
    text += f"    public function {name}(" + (f"\n        {(',' + chr(10) + '        ').join(given)}\n    " if given else "") + f"): {type_}\n    {{\n"
    words = ", ".join(f"'{word}'" for word in full_name(command).split())
    text += f"        $r = new Request({str(method.is_read).lower()}, {words});\n"
    for group in method.groups():
        names = ", ".join(f"'{camel(each.name)}' => ${camel(each.name)}" for each in group)
        text += f"        Request::alternatives({str(group[0].is_group_required).lower()}, [{names}]);\n"
    if method.has("ONCE"):
        text += f"        $r->id = $this->idOf($once, {'$packed === null' if method.has('PACKED') else 'true'});\n"
    for kind, each in method.words():
        line = {"id": "$r->values('ONCE', Request::words($r->id, 'one'))", "key": f"$r->board(${camel(each.name)})",
                "words": php_words(each)}[kind]
        text += f"        {line};\n"
    form = camel(form_of(method.reply))
    read = f"Replies::{form}(...)"
    if method.has_records:
        asked = {"PCT": "pct: $pct", "WITHKEY": "withkey: $withkey", "TAGS": "tags: $tags", "DATA": "data: $data !== null",
                 "FIELDS": "fields: $fields === null ? null : (array) $fields", "SINCE": "since: $since !== null"}
        parts = [part for token, part in asked.items() if method.has(token)] + ["boards: $r->keys"] * (form == "results")
        read = f"(new Asked({', '.join(parts)}))->{form}(...)"
    end = {"create": "$this->make($r, $existOk)", "ok": "$this->on($r, Replies::ok(...))",
           "one by one": f"return $this->onOne($r, {read})",
           "all": f"return $this->onAll($r, {read}, Replies::sum{form[0].upper()}{form[1:]}(...))",
           "on": f"return $this->on($r, {read})"}
    text += f"        {end[method.way]};\n"
    return text + "    }\n"


def php_shape(shape):
    if shape[0] == "(":
        rows = ", ".join(f"'{each.name}'{'?' * each.is_optional}: {php_shape(each.shape)}{'|null' * each.is_nullable}"
                         for each in entries(shape))
        return f"array{{{rows}}}"
    if shape[0] == "[":
        return f"list<{php_shape(shape[1:-1])}>"
    return "|".join(f"'{each}'" for each in shape[1:-1].split("|")) if shape[0] == "<" else PHP_SHAPES[shape]


def php_commands(tables):
    types = "".join(f" * @phpstan-type {MAPS[name]} {php_shape(shape)}\n" for name, shape in maps(tables).items())
    return (f"{PHP_HEAD}\n/**\n * The LB. commands as methods.\n *\n{types} */\nabstract class Commands extends Sending\n{{\n"
            f"    /** Of the server whose commands these are. */\n    public const VERSION = '{tables['version']}';\n"
            + "".join(map(php_method, methods(tables, UNTYPED))) + "}\n")


def php_value(value, indent="    "):
    if isinstance(value, dict):
        rows = "".join(f"{indent}    {json.dumps(name)} => {php_value(each, indent + '    ')},\n" for name, each in value.items())
        return f"[\n{rows}{indent}]"
    if isinstance(value, list):
        return f"[{', '.join(php_value(each, indent) for each in value)}]"
    return json.dumps(value)


def php_shapes(tables):
    found = {MAPS.get(name, name): value for name, value in constants(tables).items() if name not in ("Channels", "Events")}
    rows = [f"    public const {name} = {php_value(value)};\n" for name, value in found.items()]
    return f"{PHP_HEAD}\n/** @internal Shapes of replies. */\nfinal class Shapes\n{{\n" + "\n".join(rows) + "}\n"


def files(tables):
    return {"php/src/Commands.php": php_commands(tables), "php/src/Shapes.php": php_shapes(tables)}
