import type { Commands } from "./commands";
import type { BoardRecord, Client, LeaderboardOptions, Numbers, Several, Waiting, Word } from "./index";
import { Leaderboard } from "./index";

export interface PlayerOptions<K extends keyof Numbers = "number", F extends string = never> extends LeaderboardOptions<K, F> {
    /** The player's token, if the client does not tell its password. */
    token?: string | undefined;
}

/** A board as one of its players has it, whose token is the client's password (username: "player", password: token). */
export class Player<K extends keyof Numbers = "number", F extends string = never> extends Leaderboard<K, F> {
    constructor(client: Client, key: string, options?: PlayerOptions<K, F>);
    /** As the token says. */
    readonly member: string;
    /** What beginRun got and endRun has not sent yet. */
    runTicket: string | null;
    /** A ticket for a run that begins now, where the board has TICKETS. */
    beginRun(options?: Parameters<Commands<number, never>["ticket"]>[1]): Promise<string>;
    /** The result of a run, with the options of add; a ticket that was not used is kept. */
    endRun(values: Several<Word>, options?: Parameters<Commands<number, never>["addWithheld"]>[1]):
        Promise<{ counts: boolean; isHeld: boolean }>;
    /** The own record, null without one, and what is held of the player. */
    own(options?: Parameters<Commands<number, never>["getWithheld"]>[1]):
        Promise<{ record: BoardRecord<Numbers[K], F> | null; held: Waiting[] }>;
    /** The records around the player. */
    near(count: number, options?: Parameters<Commands<number, never>["around"]>[2]): Promise<BoardRecord<Numbers[K], F>[]>;
}
