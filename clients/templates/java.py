"""clients/java: options as objects that are filled by their methods, and the maps of replies as records."""
import itertools

from .walk import UNTYPED, choice_name, choices, constants, form_of, full_name, methods, nested, pascal, reply_type, wrapped

JAVA_HEAD = "// Written by `make clients` from the server's table of commands: do not edit.\npackage leaderboard;\n\n"
JAVA_REPLIES = {
    "<OK>": "void", "i": "Long", "b": "Boolean", "{s}": "Map<String, String>", "@Board": "Shapes.BoardInfo",
    "@League": "Shapes.LeagueInfo", "@ListedBoard": "Shapes.BoardSummary", "@Record": "BoardRecord",
    "@BoardRecord": "NamedRecord", "@LeaguePlaced": "LeaguePlace", "@Count": "ValueCount", "?": "{}", "[": "List<{}>",
    "cursor": "Step<{}>",
}
JAVA_SHAPES = {"s": "String", "i": "Long", "b": "Boolean", "d": "Instant", "#": "BigDecimal"}
JAVA_READERS = {"s": "text", "i": "integer", "b": "flag", "d": "moment", "#": "decimal"}
IMPORTS = ("import java.math.BigDecimal;\nimport java.time.Instant;\nimport java.util.List;\nimport java.util.Map;\n\n")


def camel(name):
    """Java's own words get a '_'."""
    name = pascal(name)
    name = name[:1].lower() + name[1:]
    return name + "_" * (name in ("if", "default", "for", "new"))


def commented(lines, indent):
    """A comment of javadoc."""
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"


def java_part(parameter, part):
    if part.choices:
        return f"Options.{choice_name(parameter, part)}"
    if parameter.is_text or part.type in ("key", "pattern"):
        return "String"
    return "Long" if part.type == "integer" else "Object"


def java_type(parameter):
    """Of what a method is given."""
    part = parameter.parts[0]
    type_ = java_part(parameter, part)
    if part.kind == "results":
        return "List<Entry>"
    if part.kind == "pairs":
        return "Map<String, ?>"
    if part.kind == "several":
        return "List<String>" if type_ == "String" else "Object"
    return "long" if type_ == "Long" and parameter.is_required else type_


def java_setter(owner, parameter):
    """A method of an object of options."""
    name = camel(parameter.name)
    begin = f"        public {owner} {name}"
    put = f'            return put("{name}", '
    if parameter.kind == "flag":
        return f"{begin}() {{\n{put}true);\n        }}\n"
    if parameter.kind in ("boards", "words"):
        return f"{begin}(String... {name}) {{\n{put}{'words' if parameter.kind == 'words' else 'java.util.List.of'}({name}));\n        }}\n"
    if len(parameter.parts) > 1:
        given = ", ".join(f"{'Map<String, ?>' if part.kind == 'pairs' else java_part(parameter, part).replace('Long', 'long')} "
                          f"{camel(part.name)}" for part in parameter.parts)
        return f"{begin}({given}) {{\n{put}java.util.List.of({', '.join(camel(part.name) for part in parameter.parts)}));\n        }}\n"
    [part] = parameter.parts
    type_ = java_part(parameter, part).replace("Long", "long")
    if part.kind == "pairs":
        many = f"{type_}..." if parameter.is_token_repeated and type_ != "long" else type_
        return (f"{begin}(String name, {many} {camel(part.name)}) {{\n            return pair(\"{name}\", name, "
                f"{camel(part.name)});\n        }}\n")
    if part.kind == "results":
        return f"{begin}(java.util.List<Entry> {name}) {{\n{put}{name});\n        }}\n"
    if part.kind == "several":
        return f"{begin}({type_}... {name}) {{\n{put}java.util.List.of({name}));\n        }}\n"
    return f"{begin}({type_} {name}) {{\n{put}{name});\n        }}\n"


def java_options(tables):
    page = [JAVA_HEAD, "import java.util.Map;\n\n",
            commented(["Options of commands: a class for each method that has some. What is not given is not sent."], ""),
            "public final class Options {\n    private Options() {\n    }\n"]
    for name, words in choices(tables, UNTYPED).items():
        page.append(f"\n    /** A choice. */\n    public enum {name} {{\n        {', '.join(words)}\n    }}\n")
    for method in methods(tables, UNTYPED):
        if method.named():
            owner = pascal(method.name)
            page.append("\n" + commented([f"Of {full_name(method.command)}."], "    ")
                        + f"    public static final class {owner} extends Given<{owner}> {{\n")
            page.append("\n".join(java_setter(owner, each) for each in method.named()))
            if method.creates:
                page.append('\n        /** A key that is there is no error. */\n'
                            f'        public {owner} existOk() {{\n            return put("existOk", true);\n        }}\n')
            page.append("    }\n")
    return "".join(page) + "}\n"


def java_words(parameter):
    name = camel(parameter.name)
    value = f'options.get("{name}")' if parameter.place == "named" else name
    token = f'"{parameter.token}"' if parameter.token else "null"
    if parameter.kind == "board":
        return "r.board(key())"
    if parameter.kind == "boards":
        return f"r.boards(key(), {value})"
    if parameter.kind == "always":
        return f"r.word({token})"
    if parameter.kind == "flag":
        return f"r.flag({value}, {token})"
    if parameter.kind == "words":
        return f"r.values({token}, {value})"
    if parameter.is_required and parameter.group == 0:
        value = f'Request.needed("{name}", {value})'
    if len(parameter.parts) > 1:
        values = [f"Request.at({value}, {number})" for number in range(len(parameter.parts))]
    else:
        values = [value]
    values = ", ".join((f'"{part.before}", ' if part.before else "") + (f"Request.counted({each})" if part.is_counted else each)
                       for each, part in zip(values, parameter.parts))
    return f"r.{'each' if parameter.is_token_repeated else 'values'}({token}, {values})"


def java_method(method):
    name, command = camel(method.name), method.command
    positional = [each for each in method.signature if each.place == "positional"]
    owner = f"Options.{pascal(method.name)}" if method.named() else None
    type_ = reply_type(method.reply, JAVA_REPLIES)
    call = f"{full_name(command)} {command['syntax']}"
    text = "\n" + commented([*wrapped(f"{command['summary']}.".replace("<", "&lt;").split(), "", 100), "",
                             "<pre>{@code", *wrapped(call.split(), "", 100), "}</pre>"], "    ")
    given = [f"{java_type(each)} {camel(each.name)}" for each in positional] + [f"{owner} options"] * bool(owner)
    result = {"Long": "long", "Boolean": "boolean"}.get(type_, type_)
    text += f"    public {result} {name}({', '.join(given)}) {{\n"
    text += f'        Request r = new Request({str(method.is_read).lower()}, {", ".join(f"{word!r}" for word in full_name(command).split())});\n'.replace("'", '"')
    for group in method.groups():
        names = ", ".join(f'"{camel(each.name)}", ' + (f'options.get("{camel(each.name)}")' if each.place == "named" else camel(each.name))
                          for each in group)
        text += f"        Request.alternatives({str(group[0].is_group_required).lower()}, {names});\n"
    if method.has("ONCE"):
        text += f"        r.id = idOf(options.get(\"once\"), {'options.get(%spacked%s) == null' % (chr(34), chr(34)) if method.has('PACKED') else 'true'});\n"
    for kind, each in method.words():
        line = {"id": 'r.values("ONCE", r.id)', "key": f"r.board({camel(each.name)})", "words": java_words(each)}[kind]
        text += f"        {line};\n"
    form = form_of(method.reply)
    read = f"Replies::{camel(form)}"
    if method.has_records:
        read = f"new Asked({'options' if owner else 'Options.NONE'}, r)::{camel(form)}".replace("Options.NONE", "null")
    end = {"create": 'create(r, options.get("existOk") != null)', "ok": "on(r, Replies::text)",
           "one by one": f"return onOne(r, {read})", "all": f"return onAll(r, {read}, Replies::sum{pascal(form)})",
           "on": f"return on(r, {read})"}
    text += f"        {end[method.way]};\n"
    return text + "    }\n" + java_overloads(method, name, result, positional, owner)


def java_overloads(method, name, result, positional, owner):
    """Without the options, and without what may be left out before them."""
    text, needed = "", [each for each in positional if each.is_required or each.is_group_required]
    may_leave_options = owner and not any(each.is_required for each in method.named())
    may_leave_values = len(needed) < len(positional)
    for leaves_values, leaves_options in itertools.product((False, True), repeat=2):
        if (not leaves_values and not leaves_options) or leaves_values > may_leave_values or (
                leaves_options and not may_leave_options and owner) or (leaves_options and not owner):
            continue
        kept = needed if leaves_values else positional
        given = [f"{java_type(each)} {camel(each.name)}" for each in kept] + [f"{owner} options"] * (not leaves_options)
        values = [camel(each.name) if each in kept else "null" for each in positional]
        values.append(f"new {owner}()" if leaves_options else "options")
        called = "" if result == "void" else "return "
        text += (f"\n    /** The same without {'further options' if leaves_options else 'a range'}. */\n"
                 f"    public {result} {name}({', '.join(given)}) {{\n        {called}{name}({', '.join(values)});\n    }}\n")
    return text


def java_commands(tables):
    return (JAVA_HEAD + "import java.util.List;\nimport java.util.Map;\n\n" + commented(["The LB. commands as methods."], "")
            + "public abstract class Commands extends Sending {\n    /** Of the server whose commands these are. */\n"
            + f'    public static final String VERSION = "{tables["version"]}";\n\n    Commands() {{\n    }}\n'
            + "".join(map(java_method, methods(tables, UNTYPED))) + "}\n")


def java_entry(entry, own):
    """The type of an entry of a map, and what reads it."""
    is_list = entry.shape[0] == "["
    kind = "s" if entry.shape[0] == "<" else entry.shape[1:-1] if is_list else entry.shape
    type_, reader = (own, f"{own}::of") if own else (JAVA_SHAPES[kind], f"Replies::{JAVA_READERS[kind]}")
    value = f'map.get("{entry.name}")'
    if is_list:
        return f"List<{type_}>", f"Replies.list({value}, {reader})"
    return type_, f"Replies.orNull({value}, {reader})"


def java_shapes(tables):
    found = constants(tables)
    page = [JAVA_HEAD, IMPORTS, commented(["Replies that are maps. What is null or not there is null."], ""),
            "public final class Shapes {\n    private Shapes() {\n    }\n\n",
            f"    static final List<String> PASSING = List.of({', '.join(f'{word!r}' for word in found['Passing'])});\n".replace("'", '"'),
            f"    static final long PAUSE_MIN_MS = {found['PausesMs'][0]};\n",
            f"    static final long PAUSE_MAX_MS = {found['PausesMs'][1]};\n"]
    for name, own in nested(tables):
        rows = [(camel(each.name), *java_entry(each, inner)) for each, inner in own]
        about = [f"{camel(each.name)}: {each.about}." for each, _ in own if each.about]
        page.append("\n" + commented(wrapped(" ".join(["A reply, or a part of one.", *about]).split(), "", 100), "    "))
        components = wrapped(", ".join(f"{type_} {field}" for field, type_, _ in rows).split(), "            ", 110)
        page.append(f"    public record {name}(\n" + "\n".join(components) + ") {\n")
        page.append(f"        static {name} of(Object reply) {{\n            Map<String, Object> map = Replies.map(reply);\n"
                    f"            return new {name}(\n")
        page.append(",\n".join(f"                {value}" for _, _, value in rows) + ");\n        }\n    }\n")
    return "".join(page) + "}\n"


def files(tables):
    made = {"Commands": java_commands, "Options": java_options, "Shapes": java_shapes}
    return {f"java/src/main/java/leaderboard/{name}.java": make(tables) for name, make in made.items()}
