// A method for each LB. command. Written by leaderboard-docs from the commands' entries (make docs).
import type {
    Ban, BoardInfo, BoardRecord, BoardSummary, Cut, LeagueInfo, LeaguePlace, Pairs, Placed, Result, Several, Step, Time, ValueCount,
    Value, Word, Words,
} from "./index";

export class Commands<V extends Value, F extends string> {
    /**
     * How many members are better than each packed key, of which there are 10,000 at most, or (=packed-key) at least as good; COMP: whatever their times; WHERE: inside a group of members with the same tags.
     *
     *     LB.ABOVE key packed-key [packed-key ...] [COMP] [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value ...]]
     */
    above(packedKey: Several<Word>, options?: {
        comp?: boolean | undefined;
        where?: Pairs<Several<Word>> | undefined;
        wherenot?: Pairs<Several<Word>> | undefined;
    }): Promise<number[]>;

    /**
     * Write fields, times and tags of members, all of them or nothing; count those added or changed.
     *
     *     LB.ADD key [NX | XX] [NOCREATE] [SET | INCR | BEST] [AT unix-time-milliseconds | TOUCH | KEEPTIME] [TAG name value [TAG name value ...]] [ONCE id] [WITHREPEAT] [HSET pattern n field value [field value ...]] [WITHRANK] [STRINGS] <field [field ...] member [field [field ...] member ...] | PACKED packed-key member [packed-key member ...]>
     */
    add(results?: Pairs<Several<Word>> | null, options?: {
        condition?: "NX" | "XX" | undefined;
        nocreate?: boolean | undefined;
        operator?: "SET" | "INCR" | "BEST" | undefined;
        at?: Time | undefined;
        touch?: boolean | undefined;
        keeptime?: boolean | undefined;
        tag?: Pairs<Several<Word>> | undefined;
        once?: Word | undefined;
        withrepeat?: boolean | undefined;
        hset?: readonly [string, Pairs<Word>] | undefined;
        packed?: Pairs<number | bigint> | undefined;
    }): Promise<number>;

    /**
     * Write fields, times and tags of members, all of them or nothing; count those added or changed.
     *
     *     LB.ADD key [NX | XX] [NOCREATE] [SET | INCR | BEST] [AT unix-time-milliseconds | TOUCH | KEEPTIME] [TAG name value [TAG name value ...]] [ONCE id] [WITHREPEAT] [HSET pattern n field value [field value ...]] [WITHRANK] [STRINGS] <field [field ...] member [field [field ...] member ...] | PACKED packed-key member [packed-key member ...]>
     */
    addWithrank(results?: Pairs<Several<Word>> | null, options?: {
        condition?: "NX" | "XX" | undefined;
        nocreate?: boolean | undefined;
        operator?: "SET" | "INCR" | "BEST" | undefined;
        at?: Time | undefined;
        touch?: boolean | undefined;
        keeptime?: boolean | undefined;
        tag?: Pairs<Several<Word>> | undefined;
        once?: Word | undefined;
        withrepeat?: boolean | undefined;
        hset?: readonly [string, Pairs<Word>] | undefined;
        packed?: Pairs<number | bigint> | undefined;
    }): Promise<Placed<V, F>[]>;

    /**
     * Change the options of a board that exists; NONE takes one away.
     *
     *     LB.ALTER key [TAG name bits [TAG name bits ...]] [CAP cap | LIMIT limit] [KEEP <LAST | BEST>] [FREEZE | THAW] [OPENS time] [CLOSES time] [STALE age [MINUTE | HOUR | DAY]] [SETTLE <YES | NO>] [PERIOD <HOUR | DAY | WEEK | MONTH | YEAR | NONE>] [EVERY units] [ON weekday] [AT hour] [FROM date] [TZ zone] [ARCHIVE periods] [ARCHIVED <FROZEN | WRITABLE>] [COPY] [WINDOW window [SUM | BEST]]
     */
    alter(options?: {
        tag?: Pairs<Several<Word>> | undefined;
        cap?: Word | undefined;
        limit?: Word | undefined;
        keep?: "LAST" | "BEST" | undefined;
        state?: "FREEZE" | "THAW" | undefined;
        opens?: Time | undefined;
        closes?: Time | undefined;
        stale?: Words | undefined;
        settle?: "YES" | "NO" | undefined;
        period?: "HOUR" | "DAY" | "WEEK" | "MONTH" | "YEAR" | "NONE" | undefined;
        every?: number | bigint | undefined;
        on?: Word | undefined;
        at?: number | bigint | undefined;
        from?: Word | undefined;
        tz?: Word | undefined;
        archive?: Word | undefined;
        archived?: "FROZEN" | "WRITABLE" | undefined;
        copy?: boolean | undefined;
        window?: Words | undefined;
    }): Promise<void>;

    /**
     * A window of records around a member, or around the place of a score or of a packed key; WHERE and WITHIN: inside a group of members with the same tags; SINCE: with the rank on another board.
     *
     *     LB.AROUND key <MEMBER member | SCORE score | PACKED packed-key> count [COMP] [WITHKEY] [STRINGS] [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value ...]] [WITHIN name [WITHIN name ...]] [TAGS] [DATA pattern] [FIELDS n field [field ...]] [SINCE <archive | LAST>]
     */
    around(member: Word | null, count: number | bigint, options?: {
        score?: Word | undefined;
        packed?: Word | undefined;
        comp?: boolean | undefined;
        withkey?: boolean | undefined;
        where?: Pairs<Several<Word>> | undefined;
        wherenot?: Pairs<Several<Word>> | undefined;
        within?: Several<Word> | undefined;
        tags?: boolean | undefined;
        data?: string | undefined;
        fields?: Several<Word> | undefined;
        since?: Word | undefined;
    }): Promise<BoardRecord<V, F>[]>;

    /**
     * Take a member off the boards, and refuse it until the ban ends; count the boards.
     *
     *     LB.BAN member [EX seconds] [MATCH pattern]
     */
    ban(member: Word, options?: {
        ex?: number | bigint | undefined;
        match?: string | undefined;
    }): Promise<number>;

    /**
     * Walk over the banned members of the database in steps, each with the boards' pattern and the end of the ban.
     *
     *     LB.BANS [MATCH pattern] [CURSOR cursor] [COUNT count]
     */
    bans(options?: {
        match?: string | undefined;
        cursor?: number | bigint | undefined;
        count?: number | bigint | undefined;
    }): Promise<Step<Ban>>;

    /**
     * How many members a board has, or a range of it, by rank or by score, in all or by the values of one tag or two (BY), the most frequent first.
     *
     *     LB.COUNT key [start stop [BYSCORE]] [BY name [BY name ...]] [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value ...]]
     */
    count(start?: Word | null, stop?: Word | null, options?: {
        byscore?: boolean | undefined;
        where?: Pairs<Several<Word>> | undefined;
        wherenot?: Pairs<Several<Word>> | undefined;
    }): Promise<number>;

    /**
     * How many members a board has, or a range of it, by rank or by score, in all or by the values of one tag or two (BY), the most frequent first.
     *
     *     LB.COUNT key [start stop [BYSCORE]] [BY name [BY name ...]] [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value ...]]
     */
    countBy(by: Several<Word>, start?: Word | null, stop?: Word | null, options?: {
        byscore?: boolean | undefined;
        where?: Pairs<Several<Word>> | undefined;
        wherenot?: Pairs<Several<Word>> | undefined;
    }): Promise<ValueCount[]>;

    /**
     * Make an empty board with a layout and options of its own, which stays when it is empty.
     *
     *     LB.CREATE key [LAYOUT name | FIELD name bits [ASC | DESC] [SIGNED] [SCALE scale] [DOUBLE] [DECAY half-life <S | M | H | D>] [FIELD name bits [ASC | DESC] [SIGNED] [SCALE scale] [DOUBLE] [DECAY half-life <S | M | H | D>] ...] [TIME bits <US | MS | S | M | H | D> [START start | END end] [LATEST]]] [TAG name bits [TAG name bits ...]] [CAP cap | LIMIT limit] [KEEP <LAST | BEST>] [FREEZE] [OPENS time] [CLOSES time] [STALE count <MINUTE | HOUR | DAY>] [SETTLE <YES | NO>] [PERIOD <HOUR | DAY | WEEK | MONTH | YEAR> [EVERY units] [ON weekday] [AT hour] [FROM date] [TZ zone] [ARCHIVE periods] [ARCHIVED <FROZEN | WRITABLE>] [COPY] [WINDOW window <SUM | BEST>]]
     */
    create(options?: {
        layout?: Word | undefined;
        fields?: Words | undefined;
        tag?: Pairs<Several<number | bigint>> | undefined;
        cap?: number | bigint | undefined;
        limit?: number | bigint | undefined;
        keep?: "LAST" | "BEST" | undefined;
        freeze?: boolean | undefined;
        opens?: Time | undefined;
        closes?: Time | undefined;
        stale?: readonly [number | bigint, "MINUTE" | "HOUR" | "DAY"] | undefined;
        settle?: "YES" | "NO" | undefined;
        period?: "HOUR" | "DAY" | "WEEK" | "MONTH" | "YEAR" | undefined;
        every?: number | bigint | undefined;
        on?: Word | undefined;
        at?: number | bigint | undefined;
        from?: Word | undefined;
        tz?: Word | undefined;
        archive?: number | bigint | undefined;
        archived?: "FROZEN" | "WRITABLE" | undefined;
        copy?: boolean | undefined;
        window?: readonly [number | bigint, "SUM" | "BEST"] | undefined;
        /** A key that is there is no error. */
        exist_ok?: boolean | undefined;
    }): Promise<void>;

    /**
     * Rank and packed key of the first member, the last, and others at equal distances, 2 to 10,000, of a board or a range of ranks; WHERE: inside a group of members with the same tags.
     *
     *     LB.CUTS key count [start stop] [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value ...]]
     */
    cuts(count: number | bigint, start?: number | bigint | null, stop?: number | bigint | null, options?: {
        where?: Pairs<Several<Word>> | undefined;
        wherenot?: Pairs<Several<Word>> | undefined;
    }): Promise<Cut[]>;

    /**
     * Take a member off all boards, and remove its hashes; count the boards.
     *
     *     LB.FORGET member [MATCH pattern] [DATA data [DATA data ...]] [ALL]
     */
    forget(member: Word, options?: {
        match?: string | undefined;
        data?: Several<string> | undefined;
        all?: boolean | undefined;
    }): Promise<number>;

    /**
     * Rank, reach time and fields of many members at once, in the order asked for or by rank; WHERE and WITHIN: inside a group of members with the same tags; SINCE: with the rank on another board.
     *
     *     LB.GET key n member [member ...] [COMP] [SORT] [PCT] [WITHKEY] [STRINGS] [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value ...]] [WITHIN name [WITHIN name ...]] [TAGS] [DATA pattern] [FIELDS n field [field ...]] [SINCE <archive | LAST>]
     */
    get(member: Several<Word>, options?: {
        comp?: boolean | undefined;
        sort?: boolean | undefined;
        pct?: boolean | undefined;
        withkey?: boolean | undefined;
        where?: Pairs<Several<Word>> | undefined;
        wherenot?: Pairs<Several<Word>> | undefined;
        within?: Several<Word> | undefined;
        tags?: boolean | undefined;
        data?: string | undefined;
        fields?: Several<Word> | undefined;
        since?: Word | undefined;
    }): Promise<(BoardRecord<V, F> | null)[]>;

    /**
     * How many members have a score below, between and above the given edges, of which there are 10,000 at most; WHERE: inside a group of members with the same tags.
     *
     *     LB.HIST key edge [edge ...] [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value ...]]
     */
    hist(edge: Several<Word>, options?: {
        where?: Pairs<Several<Word>> | undefined;
        wherenot?: Pairs<Several<Word>> | undefined;
    }): Promise<number[]>;

    /**
     * A board's layout and options, the ranges of its fields and times, its members, its memory, its archives and its tags.
     *
     *     LB.INFO key
     */
    info(): Promise<BoardInfo>;

    /**
     * Write a member's result in its room; the first one of a period puts it into the open room of its tier; tier, room, record and the tier before.
     *
     *     LB.LEAGUE ADD key [SET | INCR | BEST] [AT unix-time-milliseconds | TOUCH | KEEPTIME] [TAG name value [TAG name value ...]] [ONCE id] [WITHREPEAT] [HSET pattern n field value [field value ...]] [STRINGS] field [field ...] member
     */
    leagueAdd(member: Word, field: Several<Word>, options?: {
        operator?: "SET" | "INCR" | "BEST" | undefined;
        at?: Time | undefined;
        touch?: boolean | undefined;
        keeptime?: boolean | undefined;
        tag?: Pairs<Several<Word>> | undefined;
        once?: Word | undefined;
        withrepeat?: boolean | undefined;
        hset?: readonly [string, Pairs<Word>] | undefined;
    }): Promise<LeaguePlace<V, F> | null>;

    /**
     * Make a league, and the empty board whose layout and options its rooms have.
     *
     *     LB.LEAGUE CREATE key [LAYOUT name | FIELD name bits [ASC | DESC] [SIGNED] [SCALE scale] [DOUBLE] [FIELD name bits [ASC | DESC] [SIGNED] [SCALE scale] [DOUBLE] ...] [TIME bits <US | MS | S | M | H | D> [START start | END end] [LATEST]]] [TAG name bits [TAG name bits ...]] [KEEP <LAST | BEST>] [SETTLE <YES | NO>] [PERIOD <HOUR | DAY | WEEK | MONTH | YEAR>] [EVERY units] [ON weekday] [AT hour] [FROM date] [TZ zone] ROOM members TIERS tiers UP members DOWN members [IDLE <STAY | DOWN>] [ARCHIVE periods] [ARCHIVED <FROZEN | WRITABLE>]
     */
    leagueCreate(options: {
        room: number | bigint;
        tiers: number | bigint;
        up: number | bigint;
        down: number | bigint;
        layout?: Word | undefined;
        fields?: Words | undefined;
        tag?: Pairs<Several<number | bigint>> | undefined;
        keep?: "LAST" | "BEST" | undefined;
        settle?: "YES" | "NO" | undefined;
        period?: "HOUR" | "DAY" | "WEEK" | "MONTH" | "YEAR" | undefined;
        every?: number | bigint | undefined;
        on?: Word | undefined;
        at?: number | bigint | undefined;
        from?: Word | undefined;
        tz?: Word | undefined;
        idle?: "STAY" | "DOWN" | undefined;
        archive?: number | bigint | undefined;
        archived?: "FROZEN" | "WRITABLE" | undefined;
        /** A key that is there is no error. */
        exist_ok?: boolean | undefined;
    }): Promise<void>;

    /**
     * A member's tier, its room in the running period, its record there, the tier that is to come, if it is another, and whether it would go up, stay or go down if the period ended now.
     *
     *     LB.LEAGUE GET key member
     */
    leagueGet(member: Word): Promise<LeaguePlace<V, F> | null>;

    /**
     * A league's numbers, its running period, and its tiers, the highest first, with their members and the room that is open.
     *
     *     LB.LEAGUE INFO key
     */
    leagueInfo(): Promise<LeagueInfo>;

    /**
     * Take a member out of the league and its room; whether it was there.
     *
     *     LB.LEAGUE REMOVE key member
     */
    leagueRemove(member: Word): Promise<boolean>;

    /**
     * Put a member into a tier: it leaves its room, and its next result begins anew; whether it was in another.
     *
     *     LB.LEAGUE SET key tier member
     */
    leagueSet(tier: number | bigint, member: Word): Promise<boolean>;

    /**
     * Walk over the boards of the database in steps, each with its layout, options, archives and tags.
     *
     *     LB.LIST [MATCH pattern] [CURSOR cursor] [COUNT count] [UNSETTLED]
     */
    list(options?: {
        match?: string | undefined;
        cursor?: number | bigint | undefined;
        count?: number | bigint | undefined;
        unsettled?: boolean | undefined;
    }): Promise<Step<BoardSummary>>;

    /**
     * Merge a member's results into another's on all boards; count the boards, and those left as they were.
     *
     *     LB.MOVE from to [MATCH pattern] [BEST | SUM]
     */
    move(from: Word, to: Word, options?: {
        match?: string | undefined;
        mode?: "BEST" | "SUM" | undefined;
    }): Promise<number[]>;

    /**
     * The members at given quantiles, from the worst (0) to the best (1); WHERE: inside a group of members with the same tags.
     *
     *     LB.QUANTILE key q [q ...] [STRINGS] [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value ...]] [TAGS] [DATA pattern] [FIELDS n field [field ...]]
     */
    quantile(q: Several<Word>, options?: {
        where?: Pairs<Several<Word>> | undefined;
        wherenot?: Pairs<Several<Word>> | undefined;
        tags?: boolean | undefined;
        data?: string | undefined;
        fields?: Several<Word> | undefined;
    }): Promise<(BoardRecord<V, F> | null)[]>;

    /**
     * Records by rank or by score, best first or (REV) worst first; WHERE: inside a group of members with the same tags; SINCE: with the rank on another board.
     *
     *     LB.RANGE key start stop [BYSCORE] [REV] [LIMIT offset count] [COMP] [WITHKEY] [STRINGS] [WHERE name value [WHERE name value ...]] [WHERENOT name value [WHERENOT name value ...]] [TAGS] [DATA pattern] [FIELDS n field [field ...]] [SINCE <archive | LAST>]
     */
    range(start: Word, stop: Word, options?: {
        byscore?: boolean | undefined;
        rev?: boolean | undefined;
        limit?: readonly [number | bigint, number | bigint] | undefined;
        comp?: boolean | undefined;
        withkey?: boolean | undefined;
        where?: Pairs<Several<Word>> | undefined;
        wherenot?: Pairs<Several<Word>> | undefined;
        tags?: boolean | undefined;
        data?: string | undefined;
        fields?: Several<Word> | undefined;
        since?: Word | undefined;
    }): Promise<BoardRecord<V, F>[]>;

    /**
     * Move a board's members to an archive, start over with an empty board, and count them.
     *
     *     LB.ROLL key archive [START start | END end] [EX seconds]
     */
    roll(archive: string, options?: {
        start?: Time | undefined;
        end?: Time | undefined;
        ex?: number | bigint | undefined;
    }): Promise<number>;

    /**
     * Note that what an archive decides is done, such as rewards: 1 the first time.
     *
     *     LB.SETTLE archive
     */
    settle(archive: string): Promise<boolean>;

    /**
     * Write one result on several boards, on all of them or none; its record, its previous rank and whether it counts, on each.
     *
     *     LB.SUBMIT numkeys key [key ...] [NX | XX] [NOCREATE] [SET | INCR | BEST] [AT unix-time-milliseconds | TOUCH | KEEPTIME] [TAG name value [TAG name value ...]] [ONCE id] [WITHREPEAT] [HSET pattern n field value [field value ...]] [STRINGS] field [field ...] member
     */
    submit(member: Word, field: Several<Word>, options?: {
        boards?: readonly string[] | undefined;
        condition?: "NX" | "XX" | undefined;
        nocreate?: boolean | undefined;
        operator?: "SET" | "INCR" | "BEST" | undefined;
        at?: Time | undefined;
        touch?: boolean | undefined;
        keeptime?: boolean | undefined;
        tag?: Pairs<Several<Word>> | undefined;
        once?: Word | undefined;
        withrepeat?: boolean | undefined;
        hset?: readonly [string, Pairs<Word>] | undefined;
    }): Promise<Result<V, F>[]>;

    /**
     * Set tags of a member, if (IF) others have these values; 1 if that changed one.
     *
     *     LB.TAG key member name value [name value ...] [IF name value [name value ...]]
     */
    tag(member: Word, tag: Pairs<Word>, options?: {
        if?: Pairs<Word> | undefined;
    }): Promise<boolean>;

    /**
     * The tags of many members.
     *
     *     LB.TAGS key member [member ...]
     */
    tags(member: Several<Word>): Promise<({ [name: string]: string } | null)[]>;

    /**
     * Lift the bans of a member; whether there were any.
     *
     *     LB.UNBAN member
     */
    unban(member: Word): Promise<boolean>;

    /**
     * The boards that a member is on, each with the member's record.
     *
     *     LB.WHERE member [MATCH pattern] [STRINGS]
     */
    where(member: Word, options?: {
        match?: string | undefined;
    }): Promise<{ board: string; record: BoardRecord<V, F> }[]>;
}
