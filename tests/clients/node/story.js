// One leaderboard's life, told by both clients in the same words.
"use strict";

class Story {
    constructor(client) {
        this.client = client;
    }

    says(sentence, claim) {
        console.log(`${claim ? "ok" : "not ok"} ${this.client}: ${sentence}`);
        if (!claim) {
            process.exit(1);
        }
    }

    equal(sentence, actual, expected) {
        const same = JSON.stringify(actual) === JSON.stringify(expected);
        if (!same) {
            console.log(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
        }
        this.says(sentence, same);
    }

    async rejects(sentence, promise, pattern) {
        const error = await promise.then(() => null, (reason) => reason);
        if (error === null || !pattern.test(error.message)) {
            console.log(`expected ${pattern}, got ${error && error.message}`);
        }
        this.says(sentence, error !== null && pattern.test(error.message));
    }
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

module.exports = { Story, sleep };
