"""clients/node: JavaScript, and its declarations."""
import json
import re

from .walk import MAPS, constants, entries, form_of, full_name, maps, methods, reply_type

NODE_REPLIES = {
    "<OK>": "void", "i": "number", "b": "boolean", "s": "string", "{s}": "{ [name: string]: string }", "@Board": "BoardInfo",
    "@League": "LeagueInfo", "@ListedBoard": "BoardSummary", "@Record": "BoardRecord<V, F>", "@Placed": "Placed<V, F>", "@OwnRecords": "OwnRecords<V, F>",
    "@Result": "Result<V, F>", "@LeaguePlace": "LeaguePlace<V, F>", "@LeaguePlaced": "LeaguePlace<V, F> | null",
    "d": "Date", "@Rated": "Rated<V>", "@Played": "Played<V>", "[chances:[n] quality:n]": "Prediction",
    "@BoardRecord": "{ board: string; record: BoardRecord<V, F> }", "@Count": "ValueCount",
    "?": "{} | null", "[": "{}[]", "cursor": "Step<{}>",
}
NODE_HEAD = "// A method for each LB. command. Written from the commands' entries by `make clients`: do not edit.\n"


def camel(name):
    return re.sub(r"_+([a-z0-9]?)", lambda found: found[1].upper(), name)


def node_value(parameter):
    return ("options." if parameter.place == "named" else "") + camel(parameter.name)


def node_words(parameter):
    value, token = node_value(parameter), json.dumps(parameter.token)
    if parameter.kind == "board":
        return "this.key"
    if parameter.kind == "boards":
        return "$.values(options.boards ?? this.key, null, $.counted($.several))"
    if parameter.kind == "always":
        return token
    if parameter.kind == "flag":
        return f"$.flag({value}, {token})"
    if parameter.kind == "words":
        return f"$.words({value}{', ' + token if parameter.token else ''})"
    if parameter.is_required and parameter.group == 0:
        value = f'$.needed("{camel(parameter.name)}", {value})'
    parts = ""
    for part in parameter.parts:
        words = f"$.counted($.{part.kind})" if part.is_counted else f"$.{part.kind}"
        parts += f', $.after("{part.before}", {words})' if part.before else f", {words}"
    return f"$.{'each' if parameter.is_token_repeated else 'values'}({value}, {token}{parts})"


def node_key(method):
    """By which a cluster finds the node; null: the command is about all of them."""
    first = method.parameters[0] if method.parameters else None
    if first and first.kind == "board":
        return "this.key"
    if first and first.kind == "boards":
        return "options.boards?.[0] ?? this.key"
    is_key = first and first.place == "positional" and len(first.parts) == 1 and first.parts[0].type == "key"
    return node_value(first) if is_key else "null"


def node_method(method):
    options = method.named()
    names = [camel(each.name) for each in method.signature if each.place == "positional"]
    text = f"\n    async {camel(method.name)}({', '.join(names + ['options = {}'] * bool(options))}) {{\n"
    if options:  # no other is passed over in silence
        known = [camel(each.name) for each in options] + ["exist_ok"] * method.creates
        text += f"        $.known(options, [{', '.join(json.dumps(each) for each in known)}]);\n"
    for group in method.groups():
        given = [f"{camel(each.name)}: {node_value(each)}" if each.place == "named" else camel(each.name)
                 for each in group]
        text += f"        $.alternatives({{ {', '.join(given)} }}, {json.dumps(group[0].is_group_required)});\n"
    if method.has("ONCE"):
        text += "        options = this.withId(options);\n"
    text += (f'        return this.run({node_key(method)}, "{full_name(method.command)}", {json.dumps(method.is_read)}, '
             f'"{camel(form_of(method.reply))}", [\n')
    text += "".join(f"            {node_words(each)},\n" for each in method.parameters)
    return text + f"        ]{', options' if options else ''});\n    }}\n"


def node_commands(tables):
    return (NODE_HEAD + '"use strict";\nconst $ = require("./words.js");\n\nclass Commands {'
            + "".join(map(node_method, methods(tables))) + "}\n\nexports.Commands = Commands;\n")


def node_part_type(parameter, part):
    is_time = parameter.is_time(part)
    if part.choices:
        word = " | ".join(json.dumps(each["token"]) for each in part.choices)
    else:
        word = "Time" if is_time else {"key": "string", "pattern": "string", "integer": "number | bigint"}.get(
            part.type, "Word")
    if part.kind == "groups":
        return f"readonly Several<{word}>[]"
    is_map = part.kind in ("pairs", "results")
    is_several = part.has_many or parameter.is_token_repeated if is_map else part.kind == "several"
    word = f"Several<{word}>" if is_several else word
    return f"Pairs<{word}>" if is_map else word


def node_type(parameter):
    if parameter.kind != "values":
        return {"boards": "readonly string[]", "flag": "boolean", "words": "Words"}[parameter.kind]
    types = ", ".join(node_part_type(parameter, part) for part in parameter.parts)
    return f"readonly [{types}]" if len(parameter.parts) > 1 else types


def node_declaration(method):
    options, command = method.named(), method.command
    are_required = any(each.is_required for each in options)
    positional = [each for each in method.signature if each.place == "positional"]
    call = " ".join(filter(None, [full_name(command), command["syntax"]]))
    text = f"\n    /**\n     * {command['summary']}.\n     *\n     *     {call}\n     */\n    {camel(method.name)}("
    given = []
    for at, each in enumerate(positional):
        mark = "" if are_required or any(other.is_required for other in positional[at:]) else "?"
        given.append(f"{camel(each.name)}{mark}: {node_type(each)}{'' if each.is_required else ' | null'}")
    if options:
        lines = "".join(f"        {camel(each.name)}: {node_type(each)};\n" if each.is_required else
                        f"        {camel(each.name)}?: {node_type(each)} | undefined;\n" for each in options)
        if method.creates:
            lines += ("        /** A key that is there is no error. */\n"
                      "        exist_ok?: boolean | undefined;\n")
        given.append(f"options{'' if are_required else '?'}: {{\n{lines}    }}")
    return f"{text}{', '.join(given)}): Promise<{reply_type(method.reply, NODE_REPLIES)}>;\n"


def node_shapes(tables):
    return NODE_HEAD.replace("A method for each LB. command", "Shapes of replies, channels and events") + "".join(
        f"exports.{name} = {json.dumps(value, indent=4)};\n" for name, value in constants(tables).items())


def node_shape_type(shape, indent):
    if shape[0] == "(":
        return f"{{\n{node_members(shape, indent + '    ')}{indent}}}"
    if shape[0] == "[":
        return node_shape_type(shape[1:-1], indent) + "[]"
    if shape[0] == "<":
        return " | ".join(json.dumps(each) for each in shape[1:-1].split("|"))
    return {"s": "string", "i": "number", "b": "boolean", "d": "Date", "#": "string"}[shape]


def node_members(shape, indent):
    text = ""
    for each in entries(shape):
        text += f"{indent}/** {each.about} */\n" if each.about else ""
        text += f"{indent}{camel(each.name.replace('-', '_'))}{'?' * each.is_optional}: "
        text += f"{node_shape_type(each.shape, indent)}{' | null' * each.is_nullable};\n"
    return text


def node_types(tables):
    described = "".join(f"/** Exact numbers are texts, or an error when they are read. */\n"
                        f"export interface {MAPS[name]} {{\n{node_members(shape, '    ')}}}\n"
                        for name, shape in maps(tables).items())
    return (NODE_HEAD + "import type {\n    Ban, BoardRecord, Cut, Held, LeaguePlace, "
            "Pairs, Placed, Played, Prediction, Rated, Result, Several,\n    OwnRecords, Step, Time, ValueCount, Value, Word, Words,\n} from \"./index\";\n\n"
            + described + "\nexport class Commands<V extends Value, F extends string> {"
            + "".join(map(node_declaration, methods(tables))) + "}\n")


def files(tables):
    return {"node/shapes.js": node_shapes(tables), "node/commands.js": node_commands(tables),
            "node/commands.d.ts": node_types(tables)}
