// Boards of a leaderboard server, or of the module in Redis and Valkey, over the client that you have.
//
// A method for each LB. command is in commands.js, which `make clients` writes from the commands' entries. Here is what
// is more than a command: sending again until there is an answer, pages, iteration, events.
"use strict";
const { randomUUID } = require("node:crypto");
const { Commands } = require("./commands.js");
const { text, needWhole, known } = require("./words.js");
const { replies, merged, defineValues, numbers } = require("./replies.js");
const { Channels, Events } = require("./shapes.js");
const { send, nodes, subscribe, database, refuseQueue, checkEvents } = require("./send.js");

const OPTIONS = ["numbers", "fields", "retries", "database"];
const EVENTS = ["board", "top", "list", "members", "overtaken"];

class Leaderboard extends Commands {
    constructor(client, key, options = {}) {
        const { numbers: kind = "number", fields, retries = 0, database: number } = options;
        super();
        refuseQueue(client);
        known(options, OPTIONS);
        if (!Object.hasOwn(numbers, kind)) {
            throw new TypeError(`numbers: "${kind}": "number", "bigint" and "string" are allowed`);
        }
        Object.assign(this, { client, key: String(key), numbers: kind, fields, retries });
        this.database = number ?? database(client);
    }

    // Another board, by the same client and options.
    named(key) {
        return this.#by(this.client, key);
    }

    #by(client, key = this.key) {
        const { numbers: kind, fields, retries, database: number } = this;
        return new Leaderboard(client, key, { numbers: kind, fields, retries, database: number });
    }

    // For commands.js: options with an id of the result, if it may have to be sent again.
    withId(options) {
        const isDrawn = this.retries > 0 && (options.packed ?? null) === null; // LB.ADD PACKED takes none
        return { ...options, once: options.once ?? (isDrawn ? randomUUID() : undefined) };
    }

    // For commands.js: sends a command to the node of the key (null: to all nodes), and makes what replies.js calls form
    // of the reply. asked: the options. What reads or has an id is sent again, with the same id, while there is no answer.
    async run(key, name, isRead, form, words, asked = {}) {
        try {
            return await this.#run(key, name, isRead, form, words, asked);
        } catch (error) {
            if (asked.exist_ok && error.message.startsWith("BUSYKEY")) {
                return undefined;
            }
            throw error;
        }
    }

    async #run(key, name, isRead, form, words, asked) {
        const texts = [...name.split(" "), ...words.flat().map(text)];
        const retries = isRead || (asked.once ?? null) !== null ? this.retries : 0;
        if (key === null) {
            return this.#runOnNodes(await nodes(this.client), retries, isRead, form, texts, asked);
        }
        const answer = await send(this.client, key, isRead, texts, retries);
        if (answer === "QUEUED") {
            throw new TypeError("the client is in a MULTI, which answers by its EXEC alone");
        }
        return replies[form](answer, this, asked);
    }

    async #runOnNodes(clients, retries, isRead, form, texts, asked) {
        if (clients.length > 1 && !merged[form]) {
            throw new TypeError(`${texts[0]}: each node of a cluster has a cursor of its own: use boards() or banned()`);
        }
        const answers = await Promise.all(clients.map(async (client) =>
            replies[form](await send(client, this.key, isRead, texts, retries), this, asked)));
        return answers.length === 1 ? answers[0] : merged[form](answers);
    }

    // The first ones, with the options of range.
    async top(count, options) {
        needWhole("count", count);
        return this.range(0, count - 1, options);
    }

    // A member's place, 0 is the best, with the options of get. null: it is not there.
    async rank(member, options) {
        const [record] = await this.get(member, options);
        return record && record.rank;
    }

    // A member's first field. null: it is not there.
    async score(member) {
        const [record] = await this.get(member);
        return record && record.score;
    }

    // How many were there. By ZREM: in the module a `board` line must match the board's name.
    async remove(...members) {
        return this.run(this.key, "ZREM", false, "integer", [this.key, members.flat()]);
    }

    // Was there a board?
    async delete() {
        return this.run(this.key, "UNLINK", false, "flag", [this.key]);
    }

    // The numberth page, from 1 on, and how many members and pages there are. Two commands: a result that comes in
    // between is in one of them.
    async page(number, { size = 20, ...options } = {}) {
        needWhole("page", number);
        needWhole("size", size);
        const start = (number - 1) * size;
        const { where, wherenot } = options;
        const [records, count] = await Promise.all([
            this.range(start, start + size - 1, options), this.count(null, null, { where, wherenot })]);
        return { number, pages: Math.ceil(count / size), count, records };
    }

    // All records, the best first, in steps of batch ranks.
    async* records({ batch = 500, ...options } = {}) {
        needWhole("batch", batch);
        for (let start = 0; ; start += batch) {
            const records = await this.range(start, start + batch - 1, options);
            yield* records;
            if (records.length < batch) {
                return;
            }
        }
    }

    [Symbol.asyncIterator]() {
        return this.records();
    }

    // All boards, or bans, of the database, in a cluster of one node after another.
    async* boards(options) {
        yield* this.#steps((board, cursor) => board.list({ ...options, cursor }));
    }

    async* banned(options) {
        yield* this.#steps((board, cursor) => board.bans({ ...options, cursor }));
    }

    async* #steps(next) {
        for (const client of await nodes(this.client)) {
            const board = this.#by(client);
            let cursor = 0n;
            do {
                const step = await next(board, cursor);
                yield* step.items;
                cursor = step.cursor;
            } while (cursor !== 0n);
        }
    }

    // Calls handler(event) for what happens on the board, where the server has notify-board-events; gives a function
    // that ends it. A client that connects again subscribes again, and what was published meanwhile is lost.
    async subscribe(events, handler) {
        const { board, top, list, members, overtaken } = events;
        known(events, EVENTS);
        const heard = new Map();
        const listen = (kind, names, read = readEvent) => heard.set(channel(kind,
            { DB: this.database, BOARD: this.key, SIZE: Buffer.byteLength(this.key), ...names }), read);
        if (board) {
            listen("board", {});
        }
        if (top) {
            listen("top", { N: top });
        }
        if (list) { // one that was too long is told as a change alone
            listen("toplist", { N: list }, (message) => message[0] !== "[" ? readEvent(message)
                : { type: "list", records: JSON.parse(message).map(
                    ([member, ...values], rank) => defineValues({ member, rank }, this, values)) });
        }
        if (members) {
            listen("topmembers", { N: members });
        }
        for (const member of [overtaken ?? []].flat()) {
            listen("overtaken", { MEMBER: member }, (message) => ({ ...readEvent(message), member }));
        }
        if (heard.size === 0) {
            throw new TypeError("subscribe to one of board, top, list, members, overtaken");
        }
        await checkEvents(this.client, this.key);
        return subscribe(this.client, [...heard.keys()], (channel, message) => {
            const read = heard.get(channel);
            if (read) {
                handler(read(message));
            }
        });
    }
}

const channel = (kind, names) => Channels[kind].replace(/DB|N|SIZE|BOARD|MEMBER/g, (name) => names[name]);

// A word, and what follows it, of which the last has all that is left. What a newer server tells is its word alone.
function readEvent(message) {
    const [type, ...words] = message.split(" ");
    const event = { type };
    const shapes = Object.entries(Events[type] ?? {});
    shapes.forEach(([name, shape], i) => {
        const word = i === shapes.length - 1 ? words.slice(i).join(" ") : words[i];
        event[name] = shape === "i" ? Number(word) : word || null;
    });
    return event;
}

exports.Leaderboard = Leaderboard; // before split.js and player.js, which need it
exports.Player = require("./player.js").Player;
const { SplitBoard, BoardChanged, shardOf } = require("./split.js");
exports.SplitBoard = SplitBoard;
exports.BoardChanged = BoardChanged;
exports.shardOf = shardOf;
