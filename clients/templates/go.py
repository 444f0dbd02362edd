"""clients/go: options as structs, results with errors, and the maps of replies as structs."""
from .walk import UNTYPED, MAPS, choice_name, choices, composed, constants, form_of, full_name, methods, nested, pascal, reply_type, wrapped

GO_HEAD = "// Written by `make clients` from the server's table of commands. DO NOT EDIT.\n\npackage leaderboard\n"
GO_REPLIES = {
    "<OK>": "", "i": "int64", "b": "bool", "{s}": "map[string]string", "@Board": "BoardInfo", "@League": "LeagueInfo",
    "@ListedBoard": "BoardSummary", "@LeaguePlaced": "*LeaguePlace", "@Count": "ValueCount", "?": "*{}", "[": "[]{}",
    "cursor": "Step[{}]",
}
GO_PARTS = {"PCT": "percent: o.Pct", "WITHKEY": "key: o.Withkey", "TAGS": "tags: o.Tags", "DATA": 'data: o.Data != ""',
            "FIELDS": "fields: o.Fields", "SINCE": 'since: o.Since != ""'}
GO_SHAPES = {"s": "string", "i": "int64", "b": "bool", "d": "time.Time", "#": "Number"}
GO_READERS = {"s": "text", "i": "integer", "b": "flag", "d": "moment", "#": "number"}


def camel(name):
    """Go's own words get a '_'."""
    name = pascal(name)
    name = name[:1].lower() + name[1:]
    return name + "_" * (name in ("range", "type", "select", "map", "func"))


def aligned(rows, indent="\t"):
    """Columns as gofmt has them."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "".join(indent + " ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() + "\n" for row in rows)


def commented(text, indent=""):
    return "".join(f"{line}\n" for line in wrapped(text.split(), indent + "// ", 100))


def go_part(parameter, part):
    if part.choices:
        return choice_name(parameter, part)
    if parameter.is_text or part.type in ("key", "pattern"):
        return "string"
    return "int64" if part.type == "integer" else "Time" if parameter.is_time(part) else "Word"


def go_type(parameter):
    if parameter.kind != "values":
        return {"boards": "[]string", "flag": "bool", "words": "Word"}[parameter.kind]
    if len(parameter.parts) > 1:
        return f"*{pascal(parameter.name)}"
    part = parameter.parts[0]
    type_ = go_part(parameter, part)
    if part.kind == "results":
        return "[]Entry"
    if part.kind == "pairs":
        return "map[string]int64" if type_ == "int64" else "Pairs" if parameter.is_token_repeated else "map[string]string"
    if part.kind == "several":
        return "[]string" if type_ == "string" else "Word"
    return "*int64" if type_ == "int64" and not parameter.is_required else type_


def go_value(parameter):
    return f"o.{pascal(parameter.name)}" if parameter.place == "named" else camel(parameter.name)


def go_words(parameter):
    value, token = go_value(parameter) if parameter.place else "", f'"{parameter.token or ""}"'
    if parameter.kind in ("board", "boards"):
        return f"r.{parameter.kind}({'b.key' if parameter.kind == 'board' else 'b.key, o.Boards'})"
    if parameter.kind == "always":
        return f"r.word({token})"
    if parameter.kind == "flag":
        return f"r.flag({value}, {token})"
    if parameter.kind == "words":
        return f"r.split({value}, {token})"
    if parameter.is_required and parameter.group == 0:
        value = f'needed{{"{camel(parameter.name)}", {value}}}'
    if len(parameter.parts) == 1:
        return f"r.{'each' if parameter.is_token_repeated else 'values'}({token}, " + (
            f"counted{{{value}}})" if parameter.parts[0].is_counted else f"{value})")
    parts = ", ".join((f'"{part.before}", ' if part.before else "") + ("counted{{{}}}" if part.is_counted else "{}").format(
        f'needed{{"{camel(parameter.name)}: {part.name}", {value}.{pascal(part.name)}}}') for part in parameter.parts)
    return f"if {value} != nil {{\n\t\tr.values({token}, {parts})\n\t}}"


def go_method(method):
    name, options, command = pascal(method.name), method.named(), method.command
    given = [f"{camel(each.name)} {go_type(each)}" for each in method.signature if each.place == "positional"]
    text = ""
    if options:
        rows = [(pascal(each.name), go_type(each)) for each in options]
        rows += [("ExistOk", "bool")] * method.creates
        about = " ExistOk: a key that is there is no error." * method.creates
        text += f"\n// {name}Options are those of {name}; what is not given is not sent.{about}\n"
        text += f"type {name}Options struct {{\n{aligned(rows)}}}\n"
        given.append(f"options *{name}Options")
    type_ = reply_type(method.reply, GO_REPLIES).replace("*map", "map")
    result = f"({type_}, error)" if type_ else "error"
    text += "\n" + commented(f"{name} is {full_name(command)}. {command['summary']}.") + "//\n"
    text += "".join(f"{line}\n" for line in wrapped(f"{full_name(command)} {command['syntax']}".split(), "//\t", 100))
    text += f"func (b *Board) {name}({', '.join(['ctx context.Context', *given])}) {result} {{\n"
    text += "\to := orNone(options)\n" * bool(options)
    words = ", ".join(f'"{word}"' for word in full_name(command).split())
    text += f"\tr := newRequest({str(method.is_read).lower()}, {words})\n"
    for group in method.groups():
        names = ", ".join(f'given{{"{camel(each.name)}", {go_value(each)}}}' for each in group)
        text += f"\tr.alternatives({str(group[0].is_group_required).lower()}, {names})\n"
    if method.has("ONCE"):
        text += f"\tr.id = b.idOf(o.Once, {'o.Packed == nil' if method.has('PACKED') else 'true'})\n"
    for kind, each in method.words():
        line = {"id": 'r.values("ONCE", r.id)', "key": f"r.board({go_value(each)})", "words": go_words(each)}[kind]
        text += f"\t{line}\n"
    form = form_of(method.reply)
    read = f"read{pascal(form)}"
    if method.has_records:
        parts = [part for token, part in GO_PARTS.items() if method.has(token)] + ["boards: r.keys"] * (form == "results")
        read += f"(asked{{{', '.join(parts)}}})"
    end = {"create": "\treturn b.create(ctx, r, o.ExistOk)\n", "ok": "\t_, err := b.run(ctx, r)\n\treturn err\n",
           "one by one": f"\treturn onOne(b, ctx, r, {read})\n",
           "all": f"\treturn onAll(b, ctx, r, {read}, sum{pascal(form)})\n", "on": f"\treturn on(b, ctx, r, {read})\n"}
    return text + end[method.way] + "}\n"


def go_commands(tables):
    page = [GO_HEAD, '\nimport "context"\n',
            f'\n// Version is that of the server whose commands these are.\nconst Version = "{tables["version"]}"\n']
    for name, words in choices(tables, UNTYPED).items():
        rows = [(f"{name}{pascal(word.lower())}", name, f'= "{word}"') for word in words]
        page.append(f"\n// {name} is one of these words.\ntype {name} string\n\nconst (\n{aligned(rows)})\n")
    for name, parameter in composed(tables, UNTYPED).items():
        rows = [(pascal(part.name), "map[string]string" if part.kind == "pairs" else go_part(parameter, part))
                for part in parameter.parts]
        page.append(f"\n// {pascal(name)} are the values of the option {parameter.token}.\n"
                    f"type {pascal(name)} struct {{\n{aligned(rows)}}}\n")
    return "".join(page + list(map(go_method, methods(tables, UNTYPED))))


def go_entry(entry, own):
    """The type of an entry of a map, and what reads it."""
    is_list = entry.shape[0] == "["
    kind = "s" if entry.shape[0] == "<" else entry.shape[1:-1] if is_list else entry.shape
    type_, reader = (own, f"read{own}") if own else (GO_SHAPES[kind], GO_READERS[kind])
    value = f'm["{entry.name}"]'
    if is_list:
        return f"[]{type_}", f"list({value}, {reader})"
    if (entry.is_nullable or entry.is_optional) and type_ != "string":
        return f"*{type_}", f"orNil({value}, {reader})"
    return type_, f"{reader}({value})"


def go_shapes(tables):
    found = constants(tables)
    page = [GO_HEAD, '\nimport "time"\n',
            f"\nvar passing = []string{{{', '.join(f'{word!r}' for word in found['Passing'])}}}\n".replace("'", '"'),
            "\nconst (\n" + aligned([("pauseMin", f"= {found['PausesMs'][0]} * time.Millisecond"),
                                     ("pauseMax", f"= {found['PausesMs'][1]} * time.Millisecond")]) + ")\n"]
    for name, own in nested(tables):
        rows = [(pascal(each.name), *go_entry(each, inner)) for each, inner in own]
        about = [f"{pascal(each.name)}: {each.about}." for each, _ in own if each.about]
        what = "is a reply" if name in MAPS.values() else "is a part of a reply"
        page.append("\n" + commented(" ".join([f"{name} {what}; what is null or not there is nil.", *about])))
        page.append(f"type {name} struct {{\n{aligned([row[:2] for row in rows])}}}\n")
        page.append(f"\nfunc read{name}(reply any) {name} {{\n\tm := mapOf(reply)\n\treturn {name}{{\n")
        page.append(aligned([(f"{field}:", f"{value},") for field, _, value in rows], "\t\t") + "\t}\n}\n")
    return "".join(page)


def files(tables):
    return {"go/commands.go": go_commands(tables), "go/shapes.go": go_shapes(tables)}
