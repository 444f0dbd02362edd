// A player who reads a board and writes the own results, with a token of the player's.
"use strict";
const { Leaderboard } = require("./index.js");

// The player whose token it is. It is not verified here: the server does that.
function memberOf(token) {
    try {
        const { sub } = JSON.parse(Buffer.from(String(token).split(".")[1], "base64url").toString());
        if (typeof sub === "string") {
            return sub;
        }
    } catch {
        // said below
    }
    throw new TypeError("not a player's token: header.claims.signature is expected, with the player as `sub`, as the client's " +
        "password (username: \"player\", password: token) or as the option token");
}

class Player extends Leaderboard {
    // token: if the client does not tell its password, as a cluster does not.
    constructor(client, key, { token, ...options } = {}) {
        super(client, key, options);
        this.member = memberOf(token ?? client.options?.password);
        this.runTicket = null;
    }

    // A ticket for a run that begins now; endRun sends it.
    async beginRun(options) {
        this.runTicket = await this.ticket(this.member, options);
        return this.runTicket;
    }

    // The result of a run, a value or several, with the options of add. What the server refuses leaves the ticket.
    async endRun(values, options = {}) {
        const ticket = options.ticket ?? this.runTicket ?? undefined;
        const [changed, held] = await this.addWithheld([[this.member, values]], { ...options, ticket });
        this.runTicket = null;
        return { counts: changed > 0, isHeld: held > 0 };
    }

    // The own record, null without one, and what is held of the player, with the options of get.
    async own(options) {
        const { records: [record], held } = await this.getWithheld(this.member, options);
        return { record, held };
    }

    // The records around the player, with the options of around.
    async near(count, options) {
        return this.around(this.member, count, options);
    }
}

module.exports = { Player };
