// Increments one member until the standard input ends, then prints how often: restart_ioredis.js PORT
// Each reply is known beforehand. The first error ends it.
"use strict";
const Redis = require("../clients/node/node_modules/ioredis");

async function main() {
    const client = new Redis({ port: Number(process.argv[2]) });
    client.on("error", () => {}); // while it connects again; commands have errors of their own
    let isOver = false;
    let count = 0;
    process.stdin.on("end", () => { isOver = true; }).resume();
    while (!isOver) {
        const reply = await client.zincrby("sums", 1, "node");
        if (reply !== String(count + 1)) {
            throw new Error(`${reply} after ${count}`);
        }
        count++;
    }
    console.log(count);
    await client.quit();
}

main().catch((error) => {
    console.log(error);
    process.exit(1);
});
