"""Commands and shapes of replies, as `leaderboard-server --describe` prints them, for every template: the methods of a
client, their parameters and their order follow from an entry's syntax, and a reply's form from its shape."""
import re


def full_name(command):
    return " ".join(filter(None, [command.get("container"), command["name"]]))


def of_group(tables, group):
    """Every command that can be sent. HELP is the same for all, and not among them."""
    return [each for each in tables["commands"]
            if each["runs"] and each["group"] == group and each["name"] != "HELP"]


def escaped(text, marks="*_[]<>\\`|"):
    return "".join("\\" + each if each in marks else each for each in text)


def wrapped(words, prefix="", width=80, escape=""):
    """Lines of so many columns, in which what is escaped does not count."""
    lines, line, size = [], [], 0
    for word in words:
        if line and size + 1 + len(word) > width:
            lines.append(prefix + " ".join(line))
            line = []
        size = size + 1 + len(word) if line else len(prefix) + len(word)
        line.append(escaped(word, escape))
    return lines + [prefix + " ".join(line)] if line else lines


# ---- commands as methods of a client's class: one for each LB. command, from its syntax and reply ----
#
#     LB.AROUND key where=<MEMBER member | SCORE score> count [COMP] [STRINGS] [WHERE tag value]...
#
#     around([@Record])
#         key      board    the client's board; not in the signature
#         member   values   MEMBER, one value; group 1; positional
#         score    values   SCORE, one value; group 1
#         count    values   one integer; required; positional
#         comp     flag
#         strings  always   not in the signature
#         where    values   pairs, the token before each
#
# A request is the method's words, then its parameters in their order; one that is not given is left out. Of those of a
# group one may be given. A command whose reply is another with an option has two methods: count, and with BY count_by.

# Parameters whose values are names. Others are numbers, or words such as NONE or +inf in their place.
TEXTS = {"member", "from", "to", "once", "since", "within", "by", "fields", "layout", "on", "tz", "cursor"}


class Part:
    """One value of a parameter, or `several`, or `pairs` of name and value, or `results`, whose values stand before
    their member, or `groups`, each with its number in front. It may have the number of them in front, or a word that is
    always the same (`before`), as PER is in RESULTS 50 PER DAY."""

    def __init__(self, word, kind, has_many=False):
        only_tokens = all(each["type"] == "pure-token" and is_plain(each) for each in word.get("arguments", []))
        self.name, self.kind, self.has_many, self.is_counted, self.before = word["name"], kind, has_many, False, None
        self.choices = word["arguments"] if word["type"] == "oneof" and only_tokens else None
        self.type = "string" if word["type"] == "oneof" and not only_tokens else word["type"]


class Parameter:
    """kind: board, boards (a count and keys; none: the client's own), always, flag, values (the token, and the parts),
    words (in the syntax of the command). place: None, "positional" or "named"."""

    def __init__(self, name, token, kind, place="named"):
        self.name, self.token, self.kind, self.place = re.sub(r"[^a-z0-9]", "_", name.lower()), token, kind, place
        self.is_required = self.is_token_repeated = self.is_group_required = False
        self.group, self.parts = 0, []


    @property
    def is_text(self):
        return self.name in TEXTS

    def is_time(self, part):
        """Unix milliseconds, or text as the command takes it."""
        return part.type == "unix-time" or bool(
            self.token and part.type == "string" and part.name in ("time", "start", "end"))


def is_plain(argument):
    return not (argument["is_optional"] or argument["is_multiple"] or argument["is_token_repeated"])


def is_fixed(argument):
    """A word that is sent as it is."""
    return argument["type"] == "string" and argument["name"].isupper()


def is_word(argument):
    """One word, but for its flags and its token?"""
    if argument["type"] != "oneof":
        return "arguments" not in argument and argument["type"] != "pure-token"
    return all("arguments" not in each and is_plain(each) and ("token" not in each or each["type"] == "pure-token")
               for each in argument["arguments"])


def part_of(argument):
    """A word, words, or a repeated group of two: (name value)..., (field... member)..., (n member...)... None: another
    form."""
    if is_word(argument):
        return Part(argument, "several" if argument["is_multiple"] else "one")
    pair = argument.get("arguments", [])
    if argument["is_multiple"] and len(pair) == 2 and is_count(pair, 0) and is_word(pair[1]):
        return Part(pair[1], "groups")
    if (not argument["is_multiple"] or argument["type"] != "block" or len(pair) != 2
            or not (is_word(pair[0]) and is_word(pair[1])) or "token" in pair[0] or "token" in pair[1]
            or not is_plain(pair[1]) or pair[0]["is_optional"] or pair[0]["is_token_repeated"]):
        return None
    has_many, is_result = pair[0]["is_multiple"], pair[1]["name"] == "member"
    if has_many and not is_result:
        return None
    return Part(pair[0] if is_result else pair[1], "results" if is_result else "pairs", has_many)


def is_count(arguments, at):
    """Is it the number of what follows?"""
    return arguments[at]["name"] == "n" and at + 1 < len(arguments) and arguments[at + 1]["is_multiple"]


class Method:
    def __init__(self, command, reply, option, others, without=()):
        """option: the reply is that with this one; others: options with methods of their own."""
        self.command, self.reply, self.option, self.without = command, reply, option, without
        words = [full_name(command)[len("LB."):]] + [option] * bool(option)
        self.name = re.sub(r"[^a-z0-9]", "_", "_".join(words).lower())
        self.group_count, self.parameters = 0, []
        self.add_list(command["arguments"], False, False, 0, False)
        self.parameters = [each for each in self.parameters if each.token not in others]
        self.signature = [parameter for place in ("positional", "named") for is_first in (True, False)
                          for parameter in self.placed(place, is_first)]
        self.creates = self.name in ("create", "league_create")

    def add_list(self, arguments, is_optional, is_flat, group, is_group_required):
        at = 0
        while at < len(arguments):
            is_counted, argument = is_count(arguments, at), arguments[at]
            following = [each["type"] for each in arguments[at + 1:at + 2]]
            is_boards = argument["name"] == "numkeys" and following == ["key"]
            at += bool(is_counted or is_boards)
            argument = arguments[at]
            at += 1
            if is_boards:
                self.parameters.append(Parameter("boards", None, "boards"))
            elif not self.parameters and argument["name"] == "key":
                self.parameters.append(Parameter("key", None, "board", None))
            elif argument["type"] == "pure-token":
                self.add_token(argument, group, is_group_required)
            elif argument["type"] == "oneof" and "token" not in argument and not is_word(argument):
                self.group_count += 1
                self.add_list(argument["arguments"], True, False, self.group_count, not argument["is_optional"])
            elif argument["type"] == "block" and "token" not in argument and not argument["is_multiple"] and group == 0:
                is_optional_there = is_optional or argument["is_optional"]
                self.add_list(argument["arguments"], is_optional_there, True, group, is_group_required)
            else:
                self.add_values(argument, is_optional, is_flat, group, is_group_required, is_counted)

    def add_token(self, argument, group, is_group_required):
        is_strings = argument["token"] == "STRINGS"
        if argument["token"] in self.without or is_strings and not re.search("Record|Placed|Result", self.reply):
            return
        is_always = is_strings or argument["token"] == self.option
        parameter = Parameter(argument["token"], argument["token"], "always" if is_always else "flag",
                              None if is_always else "named")
        if any(each.name == parameter.name for each in self.parameters):  # LIMITS of HOLD
            parameter.name = argument["name"]
        parameter.group, parameter.is_group_required = group, is_group_required
        self.parameters.append(parameter)

    def add_values(self, argument, is_optional, is_flat, group, is_group_required, is_counted):
        """The options at the end of its brackets are parameters of their own."""
        is_block = argument["type"] == "block" and not argument["is_multiple"]
        is_optional = is_optional or argument["is_optional"]
        token = argument.get("token")
        is_own = token is not None and token == self.option
        is_first_of_group = is_group_required and (not self.parameters or self.parameters[-1].group != group)
        is_positional = is_first_of_group or is_flat or (token is None and not is_optional and group == 0)
        parameter = Parameter(token or argument["name"], token, "values",
                              "positional" if is_positional or is_own else "named")
        if any(each.name == parameter.name for each in self.parameters):  # EVERY of LIMITS, and of PERIOD
            parameter.name = argument["name"]
        parameter.is_required = is_own or (not is_optional and group == 0)
        parameter.is_token_repeated = argument["is_token_repeated"]
        parameter.group, parameter.is_group_required = group, is_group_required
        self.parameters.append(parameter)
        rest = self.find_parts(argument["arguments"] if is_block else [argument], is_block, parameter)
        if rest is None:
            parameter.kind, parameter.parts = "words", []
        elif is_block:
            self.add_list(rest, True, is_flat, group, is_group_required)
        if is_counted and len(parameter.parts) == 1:
            parameter.parts[0].is_counted = True
        if [each.kind for each in parameter.parts] == ["groups"]:  # teams, not TEAM
            parameter.name, parameter.place = argument["name"], "positional"

    @staticmethod
    def find_parts(arguments, is_block, parameter):
        """Up to the first option. Returns what is left; None: there is another form among them."""
        at, before = 0, None
        while at < len(arguments) and (not is_block or at == 0 or "token" not in arguments[at]):
            if is_fixed(arguments[at]):
                before, at = arguments[at]["name"], at + 1
                continue
            is_counted = is_count(arguments, at)
            at += is_counted
            part = None if is_block and arguments[at]["is_optional"] else part_of(arguments[at])
            if part is None:
                return None
            part.is_counted, part.before, before = is_counted, before, None
            parameter.parts.append(part)
            at += 1
        return arguments[at:]

    def placed(self, place, is_first):
        """Those that have to be given come before those that may be left out. Values that precede their member follow
        it in a call: submit("ann", 500)."""
        found = [each for each in self.parameters if each.place == place and is_first == (
            each.is_required or (place == "positional" and each.is_group_required))]
        for at in range(len(found) - 1):
            values, member = found[at], found[at + 1]
            if (place == "positional" and values.token is None and len(values.parts) == 1
                    and values.parts[0].kind == "several" and member.name == "member"):
                found[at], found[at + 1] = member, values
        return found

    def has(self, token):
        return any(each.token == token for each in self.parameters)

    @property
    def is_read(self):
        return "write" not in self.command["flags"]

    @property
    def is_on_all(self):
        """Is it about a database, and so about all nodes of a cluster?"""
        return not self.is_of_board and not self.command["has_keys"]

    @property
    def has_records(self):
        return bool(re.search("Record|Placed|Result|LeaguePlace", self.reply))

    @property
    def way(self):
        """How it is sent, and what becomes of the reply."""
        if self.creates:
            return "create"
        if form_of(self.reply) == "ok":
            return "ok"
        if self.is_on_all:
            return "one by one" if "cursor" in self.reply else "all"
        return "on"

    def words(self):
        """The parameters in the order of their words, and what each is: the id of a result, a key that is given, or words."""
        for at, each in enumerate(self.parameters):
            is_key = at == 0 and each.kind == "values" and each.parts[0].type == "key"
            yield "id" if each.token == "ONCE" else "key" if is_key else "words", each

    def named(self):
        return [each for each in self.signature if each.place == "named"]

    def groups(self):
        """Of alternatives one is given at the most: whether that is so is seen before anything is sent."""
        for group in range(1, self.group_count + 1):
            yield [each for each in self.parameters if each.group == group]

    @property
    def is_of_board(self):
        return any(each.kind in ("board", "boards") for each in self.parameters)


def parted(text, mark):
    """Where the mark stands outside of brackets and descriptions."""
    parts, depth, is_text = [""], 0, False
    for each in text:
        is_text ^= each == "'"
        depth += 0 if is_text else (each in "[({<") - (each in "])}>")
        if each == mark and depth == 0 and not is_text:
            parts.append("")
        else:
            parts[-1] += each
    return parts


def alternatives(shape):
    """i|BY=[@Count] as (None, "i"), ("BY", "[@Count]")."""
    for part in parted(shape, "|"):
        option, equals, rest = part.partition("=")
        yield (option, rest) if equals and re.fullmatch("[A-Z]+", option) else (None, part)


# Commands of boards with RATING or HOLD, the words RATING and WITHHELD, LB.REVOKED and LB.TICKET, which reply a time or a text
# alone, have no types in Go, Java and PHP: applications send them as any other command.
UNTYPED = {"LB.MATCH", "LB.PREDICT", "LB.RATE", "LB.RATING", "LB.REFUND", "LB.UNMATCH", "LB.REVOKED", "LB.TICKET",
           "RATING", "LB.HELD", "LB.APPROVE", "LB.REJECT", "WITHHELD"}


def methods(tables, without=()):
    """In the order of docs/reference/commands.md. without: commands and options that this language has not."""
    for command in of_group(tables, "leaderboard"):
        if command["name"] in without:
            continue
        forms = list(alternatives(command["reply"]))
        for option, reply in forms:
            if option not in without:
                yield Method(command, reply, option, {each for each, _ in forms} - {None, option}, without)


# ---- shapes of replies (server/dispatch/shape.h) for clients, which convert values by them ----

class Entry:
    """Of a map, or a word of an event: cap:i?'largest'."""

    def __init__(self, text):
        found = re.fullmatch(r"([\w.-]+)(\??):(.*?)(\??)(?:'([^']*)')?", text, re.S)
        self.name, optional, self.shape, nullable, self.about = found.groups()
        self.is_optional, self.is_nullable = bool(optional), bool(nullable)


def entries(shape):
    return [Entry(each) for each in parted(shape[1:-1], " ")]


def tree(shape):
    """(a:i? b:[s]) as {"a": "i", "b": ["s"]}; one of several words is a text."""
    if shape[0] == "(":
        return {each.name: tree(each.shape) for each in entries(shape)}
    if shape[0] == "[":
        return [tree(shape[1:-1])]
    return "s" if shape[0] == "<" else shape


# What is done with a reply, by the shape that it names.
FORMS = {"Record": "records", "Placed": "placed", "Result": "results", "BoardRecord": "board_records",
         "LeaguePlace": "league_place", "LeaguePlaced": "league_place", "Count": "counts", "Cut": "cuts",
         "Board": "board", "League": "league", "ListedBoard": "boards", "Ban": "bans", "Played": "played",
         "Rated": "rated", "Held": "held", "OwnRecords": "own_records"}


def form_of(shape):
    found = re.search(r"@(\w+)", shape)
    if found:
        return FORMS[found[1]] + "_or_none" * (shape == "[@Record?]") + "_each" * (shape == "[@Rated?]")
    return {"<OK>": "ok", "i": "integer", "b": "flag", "s": "text", "[{s}?]": "tags_each", "d?": "time",
            "[chances:[n] quality:n]": "prediction"}.get(shape, "integers")


def reply_type(shape, types):
    """In the words of a language: of what is alone, of what may be null ("?"), of an array, and of a step of a walk."""
    if shape.endswith("?"):
        return types["?"].format(reply_type(shape[:-1], types))
    if shape[0] != "[" or shape in types:
        return types.get(shape, shape[1:])
    if ":" in shape:  # [cursor:s boards:[@ListedBoard]], or integers
        first, *_, last = entries(shape)
        if first.name == "cursor":
            return types["cursor"].format(reply_type(last.shape[1:-1], types))
        return types["["].format(reply_type(last.shape, types))
    items = reply_type(shape[1:-1], types)
    return types["["].format(f"({items})" if " | " in items else items)


# An error that begins so says that nothing was run, and that it may be later: after a pause, at first the shortest and
# then twice as long each time, the request is sent again.
PASSING = ["TRYAGAIN", "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "MISCONF", "OOM", "UNBLOCKED",
           "BUSY"]
PAUSES_MS = [10, 1000]

MAPS = {"Board": "BoardInfo", "ListedBoard": "BoardSummary", "League": "LeagueInfo"}


def maps(tables):
    """The shapes that clients read as they stand here, by name."""
    return {each["name"]: each["shape"] for each in tables["shapes"] if each["name"] in MAPS}


def constants(tables):
    """By name: the maps, the names of channels, and of each kind of event what follows its word."""
    found = {name: tree(shape) for name, shape in maps(tables).items()}
    found["Channels"] = {each["word"].strip("_@"): f"{each['word']}DB__:{each['names']}" for each in tables["channels"]}
    messages = [each.split() for row in tables["channels"] for each in parted(row["messages"], "|")]
    found["Events"] = {word: {each.name: each.shape for each in map(Entry, rest)}
                       for word, *rest in messages if word[0] != "["}
    return {**found, "Passing": PASSING, "PausesMs": PAUSES_MS}


def nested(tables):
    """The maps and the maps in them, inner ones first: what a typed language has a class for. Yields the name, the entries,
    and of each entry the name of its own class, if it has one. Equal shapes are one class."""
    names = {}

    def walk(name, shape):
        shape = shape[1:-1] if shape[0] == "[" else shape
        if shape[0] != "(":
            return None
        if shape not in names:
            own = [(each, walk(name + pascal(each.name).removesuffix("s"), each.shape)) for each in entries(shape)]
            names[shape] = name
            found.append((name, own))
        return names[shape]

    found = []
    for name, shape in maps(tables).items():
        walk(MAPS[name], shape)
    return found


def pascal(name):
    return "".join(each[:1].upper() + each[1:] for each in re.split("[^A-Za-z0-9]+", name))


def choices(tables, without=()):
    """By the name of a parameter (of one with several parts: and of the part) the words of which it is one."""
    found = {}
    for method in methods(tables, without):
        for parameter in method.parameters:
            for part in parameter.parts:
                if part.choices:
                    words = found.setdefault(choice_name(parameter, part), [])
                    words += [each["token"] for each in part.choices if each["token"] not in words]
    return found


def choice_name(parameter, part):
    return pascal(parameter.name) + (pascal(part.name) if len(parameter.parts) > 1 else "")


def composed(tables, without=()):
    """Parameters with several parts, by name."""
    return {each.name: each for method in methods(tables, without) for each in method.parameters if len(each.parts) > 1}
