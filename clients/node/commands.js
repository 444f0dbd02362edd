// A method for each LB. command. Written by leaderboard-docs from the commands' entries (make docs).
"use strict";
const $ = require("./words.js");

class Commands {
    async above(packedKey, options = {}) {
        $.known(options, ["comp", "where", "wherenot"]);
        return this.run(this.key, "LB.ABOVE", true, "integers", [
            this.key,
            $.values($.needed("packedKey", packedKey), null, $.several),
            $.flag(options.comp, "COMP"),
            $.each(options.where, "WHERE", $.pairs),
            $.each(options.wherenot, "WHERENOT", $.pairs),
        ], options);
    }

    async add(results, options = {}) {
        $.known(options, ["condition", "nocreate", "operator", "at", "touch", "keeptime", "tag", "once", "withrepeat", "hset", "packed"]);
        $.alternatives({ at: options.at, touch: options.touch, keeptime: options.keeptime }, false);
        $.alternatives({ results, packed: options.packed }, true);
        options = this.withId(options);
        return this.run(this.key, "LB.ADD", false, "integer", [
            this.key,
            $.values(options.condition, null, $.one),
            $.flag(options.nocreate, "NOCREATE"),
            $.values(options.operator, null, $.one),
            $.values(options.at, "AT", $.one),
            $.flag(options.touch, "TOUCH"),
            $.flag(options.keeptime, "KEEPTIME"),
            $.each(options.tag, "TAG", $.pairs),
            $.values(options.once, "ONCE", $.one),
            $.flag(options.withrepeat, "WITHREPEAT"),
            $.values(options.hset, "HSET", $.one, $.counted($.pairs)),
            $.values(results, null, $.results),
            $.values(options.packed, "PACKED", $.results),
        ], options);
    }

    async addWithrank(results, options = {}) {
        $.known(options, ["condition", "nocreate", "operator", "at", "touch", "keeptime", "tag", "once", "withrepeat", "hset", "packed"]);
        $.alternatives({ at: options.at, touch: options.touch, keeptime: options.keeptime }, false);
        $.alternatives({ results, packed: options.packed }, true);
        options = this.withId(options);
        return this.run(this.key, "LB.ADD", false, "placed", [
            this.key,
            $.values(options.condition, null, $.one),
            $.flag(options.nocreate, "NOCREATE"),
            $.values(options.operator, null, $.one),
            $.values(options.at, "AT", $.one),
            $.flag(options.touch, "TOUCH"),
            $.flag(options.keeptime, "KEEPTIME"),
            $.each(options.tag, "TAG", $.pairs),
            $.values(options.once, "ONCE", $.one),
            $.flag(options.withrepeat, "WITHREPEAT"),
            $.values(options.hset, "HSET", $.one, $.counted($.pairs)),
            "WITHRANK",
            "STRINGS",
            $.values(results, null, $.results),
            $.values(options.packed, "PACKED", $.results),
        ], options);
    }

    async alter(options = {}) {
        $.known(options, ["tag", "cap", "limit", "keep", "state", "opens", "closes", "stale", "settle", "period", "every", "on", "at", "from", "tz", "archive", "archived", "copy", "window"]);
        $.alternatives({ cap: options.cap, limit: options.limit }, false);
        return this.run(this.key, "LB.ALTER", false, "ok", [
            this.key,
            $.each(options.tag, "TAG", $.pairs),
            $.values(options.cap, "CAP", $.one),
            $.values(options.limit, "LIMIT", $.one),
            $.values(options.keep, "KEEP", $.one),
            $.values(options.state, null, $.one),
            $.values(options.opens, "OPENS", $.one),
            $.values(options.closes, "CLOSES", $.one),
            $.words(options.stale, "STALE"),
            $.values(options.settle, "SETTLE", $.one),
            $.values(options.period, "PERIOD", $.one),
            $.values(options.every, "EVERY", $.one),
            $.values(options.on, "ON", $.one),
            $.values(options.at, "AT", $.one),
            $.values(options.from, "FROM", $.one),
            $.values(options.tz, "TZ", $.one),
            $.values(options.archive, "ARCHIVE", $.one),
            $.values(options.archived, "ARCHIVED", $.one),
            $.flag(options.copy, "COPY"),
            $.words(options.window, "WINDOW"),
        ], options);
    }

    async around(member, count, options = {}) {
        $.known(options, ["score", "packed", "comp", "withkey", "where", "wherenot", "within", "tags", "data", "fields", "since"]);
        $.alternatives({ member, score: options.score, packed: options.packed }, true);
        return this.run(this.key, "LB.AROUND", true, "records", [
            this.key,
            $.values(member, "MEMBER", $.one),
            $.values(options.score, "SCORE", $.one),
            $.values(options.packed, "PACKED", $.one),
            $.values($.needed("count", count), null, $.one),
            $.flag(options.comp, "COMP"),
            $.flag(options.withkey, "WITHKEY"),
            "STRINGS",
            $.each(options.where, "WHERE", $.pairs),
            $.each(options.wherenot, "WHERENOT", $.pairs),
            $.each(options.within, "WITHIN", $.several),
            $.flag(options.tags, "TAGS"),
            $.values(options.data, "DATA", $.one),
            $.values(options.fields, "FIELDS", $.counted($.several)),
            $.values(options.since, "SINCE", $.one),
        ], options);
    }

    async ban(member, options = {}) {
        $.known(options, ["ex", "match"]);
        return this.run(null, "LB.BAN", false, "integer", [
            $.values($.needed("member", member), null, $.one),
            $.values(options.ex, "EX", $.one),
            $.values(options.match, "MATCH", $.one),
        ], options);
    }

    async bans(options = {}) {
        $.known(options, ["match", "cursor", "count"]);
        return this.run(null, "LB.BANS", true, "bans", [
            $.values(options.match, "MATCH", $.one),
            $.values(options.cursor, "CURSOR", $.one),
            $.values(options.count, "COUNT", $.one),
        ], options);
    }

    async count(start, stop, options = {}) {
        $.known(options, ["byscore", "where", "wherenot"]);
        return this.run(this.key, "LB.COUNT", true, "integer", [
            this.key,
            $.values(start, null, $.one),
            $.values(stop, null, $.one),
            $.flag(options.byscore, "BYSCORE"),
            $.each(options.where, "WHERE", $.pairs),
            $.each(options.wherenot, "WHERENOT", $.pairs),
        ], options);
    }

    async countBy(by, start, stop, options = {}) {
        $.known(options, ["byscore", "where", "wherenot"]);
        return this.run(this.key, "LB.COUNT", true, "counts", [
            this.key,
            $.values(start, null, $.one),
            $.values(stop, null, $.one),
            $.flag(options.byscore, "BYSCORE"),
            $.each($.needed("by", by), "BY", $.several),
            $.each(options.where, "WHERE", $.pairs),
            $.each(options.wherenot, "WHERENOT", $.pairs),
        ], options);
    }

    async create(options = {}) {
        $.known(options, ["layout", "fields", "tag", "cap", "limit", "keep", "freeze", "opens", "closes", "stale", "settle", "period", "every", "on", "at", "from", "tz", "archive", "archived", "copy", "window", "exist_ok"]);
        $.alternatives({ layout: options.layout, fields: options.fields }, false);
        $.alternatives({ cap: options.cap, limit: options.limit }, false);
        return this.run(this.key, "LB.CREATE", false, "ok", [
            this.key,
            $.values(options.layout, "LAYOUT", $.one),
            $.words(options.fields),
            $.each(options.tag, "TAG", $.pairs),
            $.values(options.cap, "CAP", $.one),
            $.values(options.limit, "LIMIT", $.one),
            $.values(options.keep, "KEEP", $.one),
            $.flag(options.freeze, "FREEZE"),
            $.values(options.opens, "OPENS", $.one),
            $.values(options.closes, "CLOSES", $.one),
            $.values(options.stale, "STALE", $.one, $.one),
            $.values(options.settle, "SETTLE", $.one),
            $.values(options.period, "PERIOD", $.one),
            $.values(options.every, "EVERY", $.one),
            $.values(options.on, "ON", $.one),
            $.values(options.at, "AT", $.one),
            $.values(options.from, "FROM", $.one),
            $.values(options.tz, "TZ", $.one),
            $.values(options.archive, "ARCHIVE", $.one),
            $.values(options.archived, "ARCHIVED", $.one),
            $.flag(options.copy, "COPY"),
            $.values(options.window, "WINDOW", $.one, $.one),
        ], options);
    }

    async cuts(count, start, stop, options = {}) {
        $.known(options, ["where", "wherenot"]);
        return this.run(this.key, "LB.CUTS", true, "cuts", [
            this.key,
            $.values($.needed("count", count), null, $.one),
            $.values(start, null, $.one),
            $.values(stop, null, $.one),
            $.each(options.where, "WHERE", $.pairs),
            $.each(options.wherenot, "WHERENOT", $.pairs),
        ], options);
    }

    async forget(member, options = {}) {
        $.known(options, ["match", "data", "all"]);
        return this.run(null, "LB.FORGET", false, "integer", [
            $.values($.needed("member", member), null, $.one),
            $.values(options.match, "MATCH", $.one),
            $.each(options.data, "DATA", $.several),
            $.flag(options.all, "ALL"),
        ], options);
    }

    async get(member, options = {}) {
        $.known(options, ["comp", "sort", "pct", "withkey", "where", "wherenot", "within", "tags", "data", "fields", "since"]);
        return this.run(this.key, "LB.GET", true, "records", [
            this.key,
            $.values($.needed("member", member), null, $.counted($.several)),
            $.flag(options.comp, "COMP"),
            $.flag(options.sort, "SORT"),
            $.flag(options.pct, "PCT"),
            $.flag(options.withkey, "WITHKEY"),
            "STRINGS",
            $.each(options.where, "WHERE", $.pairs),
            $.each(options.wherenot, "WHERENOT", $.pairs),
            $.each(options.within, "WITHIN", $.several),
            $.flag(options.tags, "TAGS"),
            $.values(options.data, "DATA", $.one),
            $.values(options.fields, "FIELDS", $.counted($.several)),
            $.values(options.since, "SINCE", $.one),
        ], options);
    }

    async hist(edge, options = {}) {
        $.known(options, ["where", "wherenot"]);
        return this.run(this.key, "LB.HIST", true, "integers", [
            this.key,
            $.values($.needed("edge", edge), null, $.several),
            $.each(options.where, "WHERE", $.pairs),
            $.each(options.wherenot, "WHERENOT", $.pairs),
        ], options);
    }

    async info() {
        return this.run(this.key, "LB.INFO", true, "info", [
            this.key,
        ]);
    }

    async leagueAdd(member, field, options = {}) {
        $.known(options, ["operator", "at", "touch", "keeptime", "tag", "once", "withrepeat", "hset"]);
        $.alternatives({ at: options.at, touch: options.touch, keeptime: options.keeptime }, false);
        options = this.withId(options);
        return this.run(this.key, "LB.LEAGUE ADD", false, "leaguePlace", [
            this.key,
            $.values(options.operator, null, $.one),
            $.values(options.at, "AT", $.one),
            $.flag(options.touch, "TOUCH"),
            $.flag(options.keeptime, "KEEPTIME"),
            $.each(options.tag, "TAG", $.pairs),
            $.values(options.once, "ONCE", $.one),
            $.flag(options.withrepeat, "WITHREPEAT"),
            $.values(options.hset, "HSET", $.one, $.counted($.pairs)),
            "STRINGS",
            $.values($.needed("field", field), null, $.several),
            $.values($.needed("member", member), null, $.one),
        ], options);
    }

    async leagueCreate(options = {}) {
        $.known(options, ["room", "tiers", "up", "down", "layout", "fields", "tag", "keep", "settle", "period", "every", "on", "at", "from", "tz", "idle", "archive", "archived", "exist_ok"]);
        $.alternatives({ layout: options.layout, fields: options.fields }, false);
        return this.run(this.key, "LB.LEAGUE CREATE", false, "ok", [
            this.key,
            $.values(options.layout, "LAYOUT", $.one),
            $.words(options.fields),
            $.each(options.tag, "TAG", $.pairs),
            $.values(options.keep, "KEEP", $.one),
            $.values(options.settle, "SETTLE", $.one),
            $.values(options.period, "PERIOD", $.one),
            $.values(options.every, "EVERY", $.one),
            $.values(options.on, "ON", $.one),
            $.values(options.at, "AT", $.one),
            $.values(options.from, "FROM", $.one),
            $.values(options.tz, "TZ", $.one),
            $.values($.needed("room", options.room), "ROOM", $.one),
            $.values($.needed("tiers", options.tiers), "TIERS", $.one),
            $.values($.needed("up", options.up), "UP", $.one),
            $.values($.needed("down", options.down), "DOWN", $.one),
            $.values(options.idle, "IDLE", $.one),
            $.values(options.archive, "ARCHIVE", $.one),
            $.values(options.archived, "ARCHIVED", $.one),
        ], options);
    }

    async leagueGet(member) {
        return this.run(this.key, "LB.LEAGUE GET", true, "leaguePlace", [
            this.key,
            $.values($.needed("member", member), null, $.one),
        ]);
    }

    async leagueInfo() {
        return this.run(this.key, "LB.LEAGUE INFO", true, "info", [
            this.key,
        ]);
    }

    async leagueRemove(member) {
        return this.run(this.key, "LB.LEAGUE REMOVE", false, "flag", [
            this.key,
            $.values($.needed("member", member), null, $.one),
        ]);
    }

    async leagueSet(tier, member) {
        return this.run(this.key, "LB.LEAGUE SET", false, "flag", [
            this.key,
            $.values($.needed("tier", tier), null, $.one),
            $.values($.needed("member", member), null, $.one),
        ]);
    }

    async list(options = {}) {
        $.known(options, ["match", "cursor", "count", "unsettled"]);
        return this.run(null, "LB.LIST", true, "boards", [
            $.values(options.match, "MATCH", $.one),
            $.values(options.cursor, "CURSOR", $.one),
            $.values(options.count, "COUNT", $.one),
            $.flag(options.unsettled, "UNSETTLED"),
        ], options);
    }

    async move(from, to, options = {}) {
        $.known(options, ["match", "mode"]);
        return this.run(null, "LB.MOVE", false, "integers", [
            $.values($.needed("from", from), null, $.one),
            $.values($.needed("to", to), null, $.one),
            $.values(options.match, "MATCH", $.one),
            $.values(options.mode, null, $.one),
        ], options);
    }

    async quantile(q, options = {}) {
        $.known(options, ["where", "wherenot", "tags", "data", "fields"]);
        return this.run(this.key, "LB.QUANTILE", true, "records", [
            this.key,
            $.values($.needed("q", q), null, $.several),
            "STRINGS",
            $.each(options.where, "WHERE", $.pairs),
            $.each(options.wherenot, "WHERENOT", $.pairs),
            $.flag(options.tags, "TAGS"),
            $.values(options.data, "DATA", $.one),
            $.values(options.fields, "FIELDS", $.counted($.several)),
        ], options);
    }

    async range(start, stop, options = {}) {
        $.known(options, ["byscore", "rev", "limit", "comp", "withkey", "where", "wherenot", "tags", "data", "fields", "since"]);
        return this.run(this.key, "LB.RANGE", true, "records", [
            this.key,
            $.values($.needed("start", start), null, $.one),
            $.values($.needed("stop", stop), null, $.one),
            $.flag(options.byscore, "BYSCORE"),
            $.flag(options.rev, "REV"),
            $.values(options.limit, "LIMIT", $.one, $.one),
            $.flag(options.comp, "COMP"),
            $.flag(options.withkey, "WITHKEY"),
            "STRINGS",
            $.each(options.where, "WHERE", $.pairs),
            $.each(options.wherenot, "WHERENOT", $.pairs),
            $.flag(options.tags, "TAGS"),
            $.values(options.data, "DATA", $.one),
            $.values(options.fields, "FIELDS", $.counted($.several)),
            $.values(options.since, "SINCE", $.one),
        ], options);
    }

    async roll(archive, options = {}) {
        $.known(options, ["start", "end", "ex"]);
        $.alternatives({ start: options.start, end: options.end }, false);
        return this.run(this.key, "LB.ROLL", false, "integer", [
            this.key,
            $.values($.needed("archive", archive), null, $.one),
            $.values(options.start, "START", $.one),
            $.values(options.end, "END", $.one),
            $.values(options.ex, "EX", $.one),
        ], options);
    }

    async settle(archive) {
        return this.run(archive, "LB.SETTLE", false, "flag", [
            $.values($.needed("archive", archive), null, $.one),
        ]);
    }

    async submit(member, field, options = {}) {
        $.known(options, ["boards", "condition", "nocreate", "operator", "at", "touch", "keeptime", "tag", "once", "withrepeat", "hset"]);
        $.alternatives({ at: options.at, touch: options.touch, keeptime: options.keeptime }, false);
        options = this.withId(options);
        return this.run(options.boards?.[0] ?? this.key, "LB.SUBMIT", false, "results", [
            $.values(options.boards ?? this.key, null, $.counted($.several)),
            $.values(options.condition, null, $.one),
            $.flag(options.nocreate, "NOCREATE"),
            $.values(options.operator, null, $.one),
            $.values(options.at, "AT", $.one),
            $.flag(options.touch, "TOUCH"),
            $.flag(options.keeptime, "KEEPTIME"),
            $.each(options.tag, "TAG", $.pairs),
            $.values(options.once, "ONCE", $.one),
            $.flag(options.withrepeat, "WITHREPEAT"),
            $.values(options.hset, "HSET", $.one, $.counted($.pairs)),
            "STRINGS",
            $.values($.needed("field", field), null, $.several),
            $.values($.needed("member", member), null, $.one),
        ], options);
    }

    async tag(member, tag, options = {}) {
        $.known(options, ["if"]);
        return this.run(this.key, "LB.TAG", false, "flag", [
            this.key,
            $.values($.needed("member", member), null, $.one),
            $.values($.needed("tag", tag), null, $.pairs),
            $.values(options.if, "IF", $.pairs),
        ], options);
    }

    async tags(member) {
        return this.run(this.key, "LB.TAGS", true, "tagsEach", [
            this.key,
            $.values($.needed("member", member), null, $.several),
        ]);
    }

    async unban(member) {
        return this.run(null, "LB.UNBAN", false, "flag", [
            $.values($.needed("member", member), null, $.one),
        ]);
    }

    async where(member, options = {}) {
        $.known(options, ["match"]);
        return this.run(null, "LB.WHERE", true, "boardRecords", [
            $.values($.needed("member", member), null, $.one),
            $.values(options.match, "MATCH", $.one),
            "STRINGS",
        ], options);
    }
}

exports.Commands = Commands;
