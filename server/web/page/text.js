// What the page says, in English and in Chinese; numbers, times and durations in the viewer's way.
//
// A text is a string or a function of its values. count() and the like are for numbers that people read
// (members, places); scores go through exact.js.

const SYSTEMS = { ELO: "Elo", GLICKO2: "Glicko-2", OPENSKILL: "OpenSkill" };

// text: "GLICKO2 MINGAMES 30", as the server says it.
function ratedBy(text, rated, from) {
    const games = / MINGAMES (\d+)/.exec(text);
    const system = text.split(" ", 1)[0];
    return [rated(SYSTEMS[system] ?? system), ...games ? [from(Number(games[1]))] : []].join(" · ");
}

const english = {
    name: "English",
    boards: "Boards",
    server: "Server",
    signIn: "Sign in",
    signOut: "Sign out",
    signedInAs: (user) => `Signed in as ${user}`,
    skip: "Skip to the content",
    theme: "Theme",
    themeSystem: "As the system",
    themeLight: "Light",
    themeDark: "Dark",
    language: "Language",
    keys: "Keyboard",
    keysOn: "Keys without Ctrl or Alt are on",
    keySearch: "search",
    keyNext: "next page",
    keyPrevious: "previous page",
    keyHelp: "this help",
    close: "Close",
    copy: "Copy",
    live: "Live",
    paused: "Reconnecting",
    liveTitle: "Changes appear at once",
    pausedTitle: "No connection to the server: trying again",

    boardsTitle: "Boards",
    boardsSearch: "Search boards",
    boardsFound: (n) => (n === 1 ? "1 board" : `${count(n)} boards`),
    boardsReading: (n) => `Reading the list: ${count(n)} so far`,
    boardsPart: (n) => `There are more: these are of the first ${count(n)} that were read. Search for others.`,
    boardsShown: (from, to, all) => `Boards ${count(from)} to ${count(to)} of ${count(all)}`,
    rankedBy: (fields) => fields.map(({ name, isAscending }, index) =>
        `${index > 0 ? "then " : ""}${isAscending ? "lowest" : "highest"} ${name}`).join(", ")
        .replace(/^./, (first) => first.toUpperCase()) + " first",
    tieFirst: "of equals the earlier one",
    tieLatest: "of equals the later one",
    groupsBy: (names) => `groups by ${names.join(", ")}`,
    boardsNone: "There are no boards yet.",
    boardsNoneHint: "A board begins with its first score:",
    boardsNoMatch: (text) => `No board is called ‘${text}’.`,
    members: (n) => (n === 1 ? "1 member" : `${count(n)} members`),
    membersLabel: "Members",
    pastPeriods: (n) => (n === 1 ? "1 past period" : `${count(n)} past periods`),
    database: (n) => `database ${n}`,
    rollsIn: (text) => `rolls over in ${text}`,
    frozen: "Frozen",
    opensAt: (text) => `opens ${text}`,
    closesAt: (text) => `closes ${text}`,
    archiveOf: "A past period of",
    windowOf: ({ periods, of }) => `${of === "best" ? "best" : "sum"} of the last ${count(periods)} periods`,
    capOf: (n) => `keeps the best ${count(n)}`,
    limitOf: (n) => `takes up to ${count(n)}`,
    ratedBy: (text) => ratedBy(text, (system) => `rated by ${system}`, (n) => `ranked from ${count(n)} games on`),
    staleAfter: (text) => `members leave after ${text} without a result`,
    settled: "Settled",
    unsettled: "Not settled",
    leagueOf: ({ tiers, room, up, down }) =>
        `League: ${count(tiers)} tiers, rooms of ${count(room)}, ${count(up)} go up, ${count(down)} go down`,
    roomOf: (room, tier) => `Room ${count(room)} of tier ${count(tier)} in`,
    tiers: "Tiers and rooms",
    leagueMembers: "All members",
    tier: (n) => `Tier ${count(n)}`,
    rooms: (n) => (n === 1 ? "1 room" : `${count(n)} rooms`),
    roomNumber: (n) => `Room ${count(Number(n))}`,
    roomsShown: (from, to) => `rooms ${count(from)} to ${count(to)}`,
    roomsShow: "Show rooms",
    roomsHide: "Hide rooms",
    roomsLabel: "Rooms",
    roomsLike: "What its rooms are like",
    tierUp: (n) => (n === 1 ? "the best of a room goes up" : `the best ${count(n)} of a room go up`),
    tierDown: (n) => (n === 1 ? "the last one goes down" : `the last ${count(n)} go down`),
    tierStay: "everybody stays",
    tierEmpty: "Nobody is in this tier.",
    tierIdle: "Nobody of this tier has a result in this period yet.",
    tiersEmpty: (n) => (n === 1 ? "Nobody is in one more tier." : `Nobody is in ${count(n)} more tiers.`),
    period: (from, to) => `${from} to ${to}`,
    left: (text) => `${text} left`,
    periodLabel: "Period",
    tierLabel: "Tier",
    roomLabel: "Room",
    inRoom: "Show in the room",
    notYet: "none in this period",
    goesUp: "goes one tier up",
    goesDown: "goes one tier down",
    layout: "Layout",
    every: { hour: "every hour", day: "daily", week: "weekly", month: "monthly", year: "yearly" },

    places: "Ranking",
    spread: "Distribution",
    periods: "Past periods",
    place: "Place",
    member: "Member",
    score: "Score",
    reached: "Reached",
    rating: "Rating",
    deviation: "Deviation",
    games: "Games",
    played: "Won, drawn, lost",
    wonDrawnLost: (won, drawn, lost) => `${won} / ${drawn} / ${lost}`,
    lastMatch: "Last match",
    provisional: "Provisional",
    provisionalHint: "Rated, and not ranked yet: too few games, too little certainty, or too long without one. It changes with the next games.",
    moreIsBetter: "more is better",
    lessIsBetter: "less is better",
    firstAhead: "Equal scores: who was first is ahead",
    latestAhead: "Equal scores: who was last is ahead",
    arrivalAhead: "Equal scores: in order of arrival",
    rose: (n) => `up ${count(n)}`,
    fell: (n) => `down ${count(n)}`,
    gained: (n) => `up ${count(n)} since the last period`,
    lost: (n) => `down ${count(n)} since the last period`,
    changes: (n) => (n === 1 ? "1 place changed" : `${count(n)} places changed`),
    leads: (name) => `${name} leads now`,
    shows: (from, to, all) => `${count(from)} to ${count(to)} of ${count(all)}`,
    first: "First",
    previous: "Previous",
    next: "Next",
    last: "Last",
    pages: "Pages",
    goTo: "Go to place",
    go: "Go",
    rows: "Rows",
    emptyBoard: "Nobody is on this board yet.",
    emptyGroup: "Nobody is in this group.",
    notInGroup: "is not in this group.",
    noGroup: "This board has no such group.",
    group: "Group",
    everybody: "Everybody",
    anyValue: "All",
    noValue: "(none)",
    otherValue: "Another one…",
    valueOf: (tag) => `Value of ${tag}`,
    valueCount: (text, n) => `${text} (${count(n)})`,
    pastEnd: (all) => `This board ends at place ${count(all)}.`,
    columns: "Data of members",
    columnsHint: "Fields of hashes, shown beside each member. * in the key stands for the member.",
    dataPattern: "Key of the hashes",
    dataFields: "Fields, by commas",
    apply: "Show",
    clear: "Clear",

    find: "Find a member",
    findHint: "Type how the name or the id begins",
    finding: "Searching…",
    findNone: (text) => `No name begins with ‘${text}’.`,
    findPart: "Only part of the board was searched.",
    findExact: (text) => `Look up exactly ‘${text}’`,
    notHere: "is not on this board.",
    ofAll: (all) => `of ${count(all)}`,
    betterThan: (text) => `ahead of ${text}`,
    oneAlone: "alone on this board",
    around: "Around this member",
    forget: "Close",
    inRanking: "Show in the ranking",
    emptyName: "(empty name)",
    notUtf8: "This name is no UTF-8: bytes are shown as \\xNN",
    signTitle: "A character that shows nothing by itself",
    doubtTitle: "May look like another name",
    lettersOf: { Cyrillic: "Cyrillic letters", Greek: "Greek letters", Armenian: "Armenian letters",
        Cherokee: "Cherokee letters" },
    notUsual: "unusual accents",
    wholeName: "The whole name",
    showAll: "Show all",
    bytesLong: (n) => `${n} bytes`,

    spreadTitle: "How scores are distributed",
    spreadOne: (n, score) => `All ${n} have a score of ${score}.`,
    fromTo: (from, to) => `${from} to ${to}`,
    bars: (n) => `${n} members by score`,
    spacing: "Width of the bars",
    scaleLog: "by decades: bars further right stand for wider ranges",
    spacingEven: "Even",
    spacingLog: "By decades",
    atAGlance: "At a glance",
    leaders: "Leaders",
    quantiles: "Quantiles",
    quantile: (q) => ({ 1: "Best", 0.5: "Median", 0: "Last" }[q] ?? `Top ${percent(1 - q)}`),
    numbers: "The numbers",
    scoresFrom: "Scores from",
    scoresTo: "to",
    howMany: "Members",
    youAreHere: (name) => `${name} is here`,

    periodsTitle: "This period and those before",
    periodNow: "Now",
    periodsNone: "There are no past periods: this board does not roll over, or has not yet.",

    held: "Held results",
    heldCount: (n) => `Held results (${count(n)})`,
    heldHint: "Kept and not ranked, the oldest first. The page never writes: run a line in redis-cli to rank a result; LB.REJECT in the place of LB.APPROVE drops it.",
    heldNone: "Nothing is held.",
    heldMore: "Show more",
    heldWhy: "Why",
    heldReasons: { OVER: "beyond the bound", TOP: "among the first" },
    heldAt: "Came",
    heldFrom: "Address",
    heldLine: "To approve",

    serverTitle: "The server",
    figures: "Now",
    lastHour: "The last hour",
    operations: "Operations a second",
    latency: "Command latency",
    tick: "Tick, 99\u202f%",
    longest: (text) => `longest ${text}`,
    inAndOut: (input, output) => `in ${input}/s, out ${output}/s`,
    viewers: (n) => (n === 1 ? "1 browser connection" : `${count(n)} browser connections`),
    syncs: (text) => `sync, 99\u202f%: ${text}`,
    notWritable: "writes are refused",
    keysCount: (n) => (n === 1 ? "1 key" : `${count(n)} keys`),
    commands: "Commands by the time they took",
    calls: "Calls",
    failed: "Failed",
    mean: "Mean",
    p99: "99\u202f%",
    memory: "Memory",
    ofLimit: (text) => `of ${text}`,
    noLimit: "no limit",
    peak: (text) => `peak ${text}`,
    clients: "Clients",
    journal: "Journal",
    journalOff: "off",
    journalOk: "healthy",
    journalBad: "cannot be written",
    replication: "Replication",
    roleMaster: "Master",
    roleReplica: "Replica",
    failingOver: "hands over to a replica",
    ofMaster: (address) => `of ${address}`,
    links: { none: "not connected", connect: "waits to connect", connecting: "connects", handshake: "connects",
        sync: "receives a full copy", connected: "connected", stopped: "stopped" },
    linkDown: (text) => `for ${text}`,
    behind: (n) => (n === 0 ? "up to date" : n === 1 ? "1 group behind" : `${count(n)} groups behind`),
    replicas: "Replicas",
    replicasCount: (n) => (n === 0 ? "no replicas" : n === 1 ? "1 replica" : `${count(n)} replicas`),
    replicasOnline: (n) => `${count(n)} online`,
    replicasMore: (n) => `${count(n)} more`,
    replicaAddress: "Address",
    replicaState: "State",
    replicaStates: { online: "online", copying: "receives a full copy", waiting: "waits for a full copy",
        handshake: "connects" },
    replicaBehind: "Behind",
    replicaHeard: "Heard from",
    ago: (text) => `${text} ago`,
    syncStates: ({ state, votes, votes_needed: needed, unacknowledged_groups: groups }) => ({
        replica: "follows, and votes", open: groups === 0 ? "all writes are acknowledged"
            : `${count(groups)} groups wait for replicas` }[state]
        ?? `closed: ${count(votes)} of ${count(needed)} votes`),
    uptime: "Up for",
    version: "Version",
    newest: (text) => `now ${text}`,
    most: (text) => `most ${text}`,
    least: (text) => `least ${text}`,
    noHistory: "The first minutes are still being measured.",
    slowlog: "Slow commands",
    slowNone: "No command took long.",
    slowWhen: "When",
    slowTook: "Took",
    slowWhat: "Command",
    slowWho: "Client",

    loginTitle: "Sign in",
    loginWhy: "Sign in with a user of this server's ACL.",
    user: "User",
    userHint: "With a server's one password (requirepass), the user is ‘default’.",
    password: "Password",
    loginWrong: "This user and password do not match.",
    loginSlow: "Too many wrong passwords: try again later.",
    forbidden: "Your user may not see this.",
    notFound: "There is no such board.",
    noPage: "There is no such page.",
    toBoards: "All boards",
    offline: "The server does not answer.",
    busy: "The server is busy: trying again.",
    again: "Try again",
    units: { d: "d", h: "h", m: "min", s: "s" },
    builtIn: "Served by leaderboard itself",
};

const chinese = {
    name: "中文",
    boards: "榜单",
    server: "服务器",
    signIn: "登录",
    signOut: "退出",
    signedInAs: (user) => `已登录：${user}`,
    skip: "跳到正文",
    theme: "主题",
    themeSystem: "跟随系统",
    themeLight: "浅色",
    themeDark: "深色",
    language: "语言",
    keys: "键盘",
    keysOn: "启用单键快捷键",
    keySearch: "搜索",
    keyNext: "下一页",
    keyPrevious: "上一页",
    keyHelp: "本帮助",
    close: "关闭",
    copy: "复制",
    live: "实时",
    paused: "重新连接中",
    liveTitle: "变化立即显示",
    pausedTitle: "与服务器的连接已断开，正在重试",

    boardsTitle: "榜单",
    boardsSearch: "搜索榜单",
    boardsFound: (n) => `${count(n)} 个榜单`,
    boardsReading: (n) => `正在读取榜单：已有 ${count(n)} 个`,
    boardsPart: (n) => `还有更多榜单：这里只含最先读到的 ${count(n)} 个，其余请搜索。`,
    boardsShown: (from, to, all) => `第 ${count(from)}–${count(to)} 个榜单，共 ${count(all)} 个`,
    rankedBy: (fields) => fields.map(({ name, isAscending }, index) =>
        `${index > 0 ? "其次 " : "按 "}${name} ${isAscending ? "从低到高" : "从高到低"}`).join("，"),
    tieFirst: "同分时先达到者在前",
    tieLatest: "同分时后达到者在前",
    groupsBy: (names) => `按 ${names.join("、")} 分组`,
    boardsNone: "还没有榜单。",
    boardsNoneHint: "写入第一个分数就会创建榜单：",
    boardsNoMatch: (text) => `没有名为“${text}”的榜单。`,
    members: (n) => `${count(n)} 名成员`,
    membersLabel: "成员",
    pastPeriods: (n) => `${count(n)} 个往期`,
    database: (n) => `数据库 ${n}`,
    rollsIn: (text) => `${text}后换期`,
    frozen: "已冻结",
    opensAt: (text) => `${text} 开放`,
    closesAt: (text) => `${text} 关闭`,
    archiveOf: "往期，属于",
    windowOf: ({ periods, of }) => `最近 ${count(periods)} 期的${of === "best" ? "最佳" : "总和"}`,
    capOf: (n) => `只保留前 ${count(n)} 名`,
    limitOf: (n) => `最多 ${count(n)} 名`,
    ratedBy: (text) => ratedBy(text, (system) => `按 ${system} 评分`, (n) => `满 ${count(n)} 场上榜`),
    staleAfter: (text) => `${text}没有成绩的成员会离开`,
    settled: "已结算",
    unsettled: "未结算",
    leagueOf: ({ tiers, room, up, down }) =>
        `联赛：${count(tiers)} 级，每组 ${count(room)} 名，${count(up)} 名升级，${count(down)} 名降级`,
    roomOf: (room, tier) => `第 ${count(tier)} 级第 ${count(room)} 组，属于`,
    tiers: "级别与分组",
    leagueMembers: "全部成员",
    tier: (n) => `第 ${count(n)} 级`,
    rooms: (n) => `${count(n)} 组`,
    roomNumber: (n) => `第 ${count(Number(n))} 组`,
    roomsShown: (from, to) => `第 ${count(from)}–${count(to)} 组`,
    roomsShow: "显示各组",
    roomsHide: "隐藏各组",
    roomsLabel: "分组",
    roomsLike: "各组的设置",
    tierUp: (n) => `每组前 ${count(n)} 名升级`,
    tierDown: (n) => `后 ${count(n)} 名降级`,
    tierStay: "全部留级",
    tierEmpty: "此级没有成员。",
    tierIdle: "此级本期还没有成绩。",
    tiersEmpty: (n) => `另有 ${count(n)} 级没有成员。`,
    period: (from, to) => `${from} 至 ${to}`,
    left: (text) => `还剩 ${text}`,
    periodLabel: "周期",
    tierLabel: "级别",
    roomLabel: "组",
    inRoom: "在组中显示",
    notYet: "本期尚无",
    goesUp: "升一级",
    goesDown: "降一级",
    layout: "布局",
    every: { hour: "每小时", day: "每日", week: "每周", month: "每月", year: "每年" },

    places: "排名",
    spread: "分布",
    periods: "往期",
    place: "名次",
    member: "成员",
    score: "分数",
    reached: "达到时间",
    rating: "等级分",
    deviation: "偏差",
    games: "场次",
    played: "胜、平、负",
    wonDrawnLost: (won, drawn, lost) => `${won} / ${drawn} / ${lost}`,
    lastMatch: "最近一场",
    provisional: "暂定",
    provisionalHint: "已有等级分，但尚未上榜：场次太少、把握不足或太久没有比赛。再比赛后会改变。",
    moreIsBetter: "越高越好",
    lessIsBetter: "越低越好",
    firstAhead: "同分时先达到者在前",
    latestAhead: "同分时后达到者在前",
    arrivalAhead: "同分时按到达顺序",
    rose: (n) => `上升 ${count(n)}`,
    fell: (n) => `下降 ${count(n)}`,
    gained: (n) => `较上期上升 ${count(n)}`,
    lost: (n) => `较上期下降 ${count(n)}`,
    changes: (n) => `${count(n)} 个名次有变化`,
    leads: (name) => `${name} 现在领先`,
    shows: (from, to, all) => `第 ${count(from)}–${count(to)} 名，共 ${count(all)} 名`,
    first: "首页",
    previous: "上一页",
    next: "下一页",
    last: "末页",
    pages: "翻页",
    goTo: "跳到名次",
    go: "前往",
    rows: "行数",
    emptyBoard: "榜单上还没有成员。",
    emptyGroup: "此分组中没有成员。",
    notInGroup: "不在此分组中。",
    noGroup: "此榜单没有这样的分组。",
    group: "分组",
    everybody: "全部成员",
    anyValue: "全部",
    noValue: "（无）",
    otherValue: "其他…",
    valueOf: (tag) => `${tag} 的值`,
    valueCount: (text, n) => `${text}（${count(n)}）`,
    pastEnd: (all) => `榜单只到第 ${count(all)} 名。`,
    columns: "成员资料",
    columnsHint: "显示在成员旁的哈希字段。键中的 * 代表成员名。",
    dataPattern: "哈希的键",
    dataFields: "字段（用逗号分隔）",
    apply: "显示",
    clear: "清除",

    find: "查找成员",
    findHint: "输入名字或 ID 的开头",
    finding: "正在搜索…",
    findNone: (text) => `没有以“${text}”开头的名字。`,
    findPart: "只搜索了榜单的一部分。",
    findExact: (text) => `精确查找“${text}”`,
    notHere: "不在此榜单上。",
    ofAll: (all) => `名，共 ${count(all)} 名`,
    betterThan: (text) => `领先 ${text}`,
    oneAlone: "榜单上仅此一名",
    around: "附近的成员",
    forget: "关闭",
    inRanking: "在排名中显示",
    emptyName: "（空名字）",
    notUtf8: "此名字不是 UTF-8：字节显示为 \\xNN",
    signTitle: "自身不显示的字符",
    doubtTitle: "可能与其他名字看起来相同",
    lettersOf: { Cyrillic: "含西里尔字母", Greek: "含希腊字母", Armenian: "含亚美尼亚字母", Cherokee: "含切罗基字母" },
    notUsual: "非常规组合字符",
    wholeName: "完整名字",
    showAll: "全部显示",
    bytesLong: (n) => `${n} 字节`,

    spreadTitle: "分数分布",
    spreadOne: (n, score) => `全部 ${n} 的分数都是 ${score}。`,
    fromTo: (from, to) => `${from} 至 ${to}`,
    bars: (n) => `${n} 名成员的分数分布`,
    spacing: "柱的宽度",
    scaleLog: "按数量级：越靠右的柱范围越宽",
    spacingEven: "等宽",
    spacingLog: "按数量级",
    atAGlance: "概览",
    leaders: "领先者",
    quantiles: "分位数",
    quantile: (q) => ({ 1: "最佳", 0.5: "中位数", 0: "最后" }[q] ?? `前 ${percent(1 - q)}`),
    numbers: "数据",
    scoresFrom: "分数从",
    scoresTo: "到",
    howMany: "成员数",
    youAreHere: (name) => `${name} 在这里`,

    periodsTitle: "本期与往期",
    periodNow: "本期",
    periodsNone: "没有往期：此榜单不换期，或尚未换期。",

    held: "待审成绩",
    heldCount: (n) => `待审成绩（${count(n)}）`,
    heldHint: "保留而未上榜的成绩，最早的在前。本页面从不写入：在 redis-cli 中执行一行命令即可让成绩上榜；把 LB.APPROVE 换成 LB.REJECT 则丢弃它。",
    heldNone: "没有待审成绩。",
    heldMore: "显示更多",
    heldWhy: "原因",
    heldReasons: { OVER: "超过界限", TOP: "将进入前列" },
    heldAt: "到达时间",
    heldFrom: "地址",
    heldLine: "批准命令",

    serverTitle: "服务器",
    figures: "当前",
    lastHour: "最近一小时",
    operations: "每秒操作数",
    latency: "命令延迟",
    tick: "循环，99\u202f%",
    longest: (text) => `最长 ${text}`,
    inAndOut: (input, output) => `入 ${input}/秒，出 ${output}/秒`,
    viewers: (n) => `浏览器连接 ${count(n)} 个`,
    syncs: (text) => `同步，99\u202f%：${text}`,
    notWritable: "拒绝写入",
    keysCount: (n) => `${count(n)} 个键`,
    commands: "按总耗时排列的命令",
    calls: "调用",
    failed: "失败",
    mean: "平均",
    p99: "99\u202f%",
    memory: "内存",
    ofLimit: (text) => `上限 ${text}`,
    noLimit: "无上限",
    peak: (text) => `峰值 ${text}`,
    clients: "客户端",
    journal: "日志",
    journalOff: "关闭",
    journalOk: "正常",
    journalBad: "无法写入",
    replication: "复制",
    roleMaster: "主服务器",
    roleReplica: "副本",
    failingOver: "正在移交给副本",
    ofMaster: (address) => `主服务器 ${address}`,
    links: { none: "未连接", connect: "等待连接", connecting: "正在连接", handshake: "正在连接",
        sync: "正在接收完整拷贝", connected: "已连接", stopped: "已停止" },
    linkDown: (text) => `已断开 ${text}`,
    behind: (n) => (n === 0 ? "已同步" : `落后 ${count(n)} 组`),
    replicas: "副本",
    replicasCount: (n) => (n === 0 ? "没有副本" : `${count(n)} 个副本`),
    replicasOnline: (n) => `${count(n)} 个在线`,
    replicasMore: (n) => `另有 ${count(n)} 个`,
    replicaAddress: "地址",
    replicaState: "状态",
    replicaStates: { online: "在线", copying: "正在接收完整拷贝", waiting: "等待完整拷贝", handshake: "正在连接" },
    replicaBehind: "落后",
    replicaHeard: "最近应答",
    ago: (text) => `${text}前`,
    syncStates: ({ state, votes, votes_needed: needed, unacknowledged_groups: groups }) => ({
        replica: "跟随并投票", open: groups === 0 ? "写入均已确认" : `${count(groups)} 组等待副本确认` }[state]
        ?? `未开放：${count(votes)}/${count(needed)} 票`),
    uptime: "已运行",
    version: "版本",
    newest: (text) => `当前 ${text}`,
    most: (text) => `最大 ${text}`,
    least: (text) => `最小 ${text}`,
    noHistory: "刚开始测量，请稍候。",
    slowlog: "慢命令",
    slowNone: "没有慢命令。",
    slowWhen: "时间",
    slowTook: "耗时",
    slowWhat: "命令",
    slowWho: "客户端",

    loginTitle: "登录",
    loginWhy: "请用此服务器 ACL 中的用户登录。",
    user: "用户",
    userHint: "只设了一个密码（requirepass）的服务器，用户是“default”。",
    password: "密码",
    loginWrong: "用户名或密码不正确。",
    loginSlow: "密码错误次数过多，请稍后再试。",
    forbidden: "当前用户无权查看。",
    notFound: "没有这个榜单。",
    noPage: "没有这个页面。",
    toBoards: "全部榜单",
    offline: "服务器没有回应。",
    busy: "服务器繁忙，正在重试。",
    again: "重试",
    units: { d: "天", h: "小时", m: "分钟", s: "秒" },
    builtIn: "由 leaderboard 自身提供",
};

export const languages = { en: english, zh: chinese };
let current = "en";

export const language = () => (current === "zh" ? "zh-CN" : "en");

// The first of the wanted languages that there is: what was chosen, then what the browser asks for.
export function chooseLanguage(wanted) {
    const tags = [wanted, ...(navigator.languages ?? [navigator.language])];
    current = tags.map((tag) => String(tag ?? "").toLowerCase().split("-")[0])
        .find((tag) => Object.hasOwn(languages, tag)) ?? "en";
    document.documentElement.lang = language();
    formats.clear();
    return current;
}

export function t(key, ...values) {
    const text = languages[current][key];
    return typeof text === "function" ? text(...values) : text;
}

const formats = new Map();

function format(key, make) {
    if (!formats.has(key)) {
        formats.set(key, make(language()));
    }
    return formats.get(key);
}

export const count = (number) => format("count", (tag) => new Intl.NumberFormat(tag)).format(number);

// A short number for figures: three digits that count, and k, M, G.
export function short(number, unit = "") {
    const steps = [[1e9, "G"], [1e6, "M"], [1e4, "k", 1e3]];
    const step = steps.find(([from]) => Math.abs(number) >= from);
    const value = step ? number / (step[2] ?? step[0]) : number;
    const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    const shown = format(`short${digits}`, (tag) => new Intl.NumberFormat(tag,
        { maximumFractionDigits: digits })).format(value);
    return `${shown}${step || unit ? "\u202f" : ""}${step ? step[1] : ""}${unit}`;
}

export function bytes(number) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    let value = number;
    while (value >= 1024 && unit < units.length - 1) {
        value /= 1024;
        unit++;
    }
    return short(value, units[unit]);
}

export function microseconds(number) {
    return number >= 1e6 ? short(number / 1e6, "s") : number >= 1e3 ? short(number / 1e3, "ms")
        : short(number, "µs");
}

// A share as a percentage, cut after its first decimal that counts: what is less than all is never 100.
export function percent(share) {
    const value = share * 100;
    const rest = Math.min(value, 100 - value);
    const digits = value % 1 === 0 ? 0 : rest >= 0.1 || rest <= 0 ? 1 : Math.min(9, Math.ceil(-Math.log10(rest)));
    const cut = Math.floor(Number((value * 10 ** digits).toFixed(4))) / 10 ** digits;
    return `${format(`percent${digits}`, (tag) => new Intl.NumberFormat(tag,
        { maximumFractionDigits: digits })).format(cut)}\u202f%`;
}

// The two largest units of a duration in milliseconds: "2 d 3 h".
export function duration(ms) {
    const sizes = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
    let rest = Math.max(0, Math.floor(ms / 1000));
    const first = Math.max(0, sizes.findIndex(([, size]) => rest >= size));
    const from = rest === 0 ? 3 : first;
    const parts = [];
    for (const [unit, size] of sizes.slice(from, from + 2)) {
        const n = Math.floor(rest / size);
        rest -= n * size;
        if (n > 0 || parts.length === 0) {
            parts.push(`${n}\u202f${languages[current].units[unit]}`);
        }
    }
    return parts.join(" ");
}

const day = (date) => [date.getFullYear(), date.getMonth(), date.getDate()].join();

// A time in the viewer's zone: of today the time, of this year the date and time, else the date.
export function moment(date, unit = "S") {
    const now = new Date();
    const fine = { hour: "2-digit", minute: "2-digit", hourCycle: "h23",
        ...(["M", "H", "D"].includes(unit) ? {} : { second: "2-digit" }) };
    const options = day(date) === day(now) && unit !== "D" ? fine
        : date.getFullYear() === now.getFullYear() && unit !== "D"
            ? { month: "short", day: "numeric", ...fine, second: undefined }
            : { year: "numeric", month: "short", day: "numeric" };
    return format(JSON.stringify(options), (tag) => new Intl.DateTimeFormat(tag, options)).format(date);
}

// A day in a board's zone, with the hour for periods that are shorter.
export function dayOf(date, zone = "UTC", unit = "D") {
    const options = { month: "short", day: "numeric", year: date.getFullYear() === new Date().getFullYear() ? undefined : "numeric",
        ...unit === "HOUR" ? { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } : {} };
    const make = (timeZone) => format(`day${JSON.stringify(options)}${timeZone}`, (tag) => new Intl.DateTimeFormat(tag,
        { ...options, timeZone })).format(date);
    try {
        return make(zone);
    } catch { // a zone that this browser does not know
        return make("UTC");
    }
}

// All of a time, with the zone's name, to the millisecond if the board keeps it.
export function wholeMoment(date, unit = "S") {
    const options = { dateStyle: undefined, year: "numeric", month: "long", day: "numeric", hour: "2-digit",
        minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZoneName: "short",
        fractionalSecondDigits: ["MS", "US"].includes(unit) ? 3 : undefined };
    return format(`whole${unit}`, (tag) => new Intl.DateTimeFormat(tag, options)).format(date);
}
