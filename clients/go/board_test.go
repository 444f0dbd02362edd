package leaderboard

import (
	"context"
	"fmt"
	"io"
	"math/big"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func laps() *CreateOptions {
	return &CreateOptions{Fields: "FIELD laps 10 FIELD ms 30 ASC TIME 24 M", Tag: map[string]int64{"country": 4, "clan": 3}}
}

func TestRecords(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		none(board.Create(ctx, laps()))
		at := time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)
		same(t, must(board.Add(ctx, []Entry{Of("ann", 9, 61500), Of("bob", 9, 60900)},
			&AddOptions{At: at, Tag: Pairs{"country": {"DE"}}})), int64(2))
		same(t, must(board.Add(ctx, []Entry{Of("kim", 8, 59000), Of("leo", 8, 59000)},
			&AddOptions{At: at.UnixMilli(), Tag: Pairs{"country": {"FR"}}})), int64(2))
		found := must(board.Get(ctx, []string{"ann", "nobody"}, &GetOptions{Pct: true, Withkey: true, Tags: true}))
		key := must(board.Get(ctx, []string{"ann"}, &GetOptions{Withkey: true}))[0].Key
		same(t, found, []*Record{{Member: "ann", Rank: 1, Time: at, Score: "9", Values: []Number{"9", "61500"}, Percent: 75,
			Key: key, Tags: map[string]string{"country": "DE"}}, nil})
		same(t, names(must(board.Range(ctx, 0, -1, nil))), "bob ann kim leo")
		same(t, names(must(board.Range(ctx, 8, 8, &RangeOptions{Byscore: true, Limit: &Limit{1, 1}}))), "leo")
		same(t, names(must(board.Range(ctx, 0, 0, &RangeOptions{Rev: true}))), "leo")
		same(t, names(must(board.Around(ctx, "ann", 5, &AroundOptions{Within: []string{"country"}}))), "bob ann")
		same(t, names(must(board.Around(ctx, "", 2, &AroundOptions{Score: 8}))), "ann kim")
		quantiles := must(board.Quantile(ctx, []Word{1, 0.5, "0"}, nil))
		same(t, []string{quantiles[0].Member, quantiles[1].Member, quantiles[2].Member}, []string{"bob", "kim", "leo"})
		same(t, must(board.Hist(ctx, 9, nil)), []int64{2, 2})
		keys := must(board.Range(ctx, 0, -1, &RangeOptions{Withkey: true}))
		same(t, must(board.Cuts(ctx, 3, nil, nil, nil)), []Cut{{0, keys[0].Key}, {1, keys[1].Key}, {3, keys[3].Key}})
		same(t, must(board.Cuts(ctx, 9, new(int64(1)), new(int64(-1)), &CutsOptions{Where: Pairs{"country": {"DE"}}})),
			[]Cut{{1, keys[1].Key}})
		same(t, must(board.Above(ctx, []string{fmt.Sprint(key), "=" + fmt.Sprint(key)}, nil)), []int64{1, 2})
		same(t, must(board.Count(ctx, nil, nil, nil)), int64(4))
		same(t, must(board.Count(ctx, 0, 2, &CountOptions{Where: Pairs{"country": {"DE", "FR"}}, Wherenot: Pairs{"country": {"FR"}}})),
			int64(2))
		same(t, must(board.CountBy(ctx, []string{"country"}, nil, nil, nil)),
			[]ValueCount{{[]*string{new("DE")}, 2}, {[]*string{new("FR")}, 2}})
		same(t, must(board.CountBy(ctx, []string{"country", "clan"}, 0, 2, nil)),
			[]ValueCount{{[]*string{new("DE"), nil}, 2}, {[]*string{new("FR"), nil}, 1}})
	})
}

func TestWhatEveryRankingNeedsHasAName(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		none(board.Create(ctx, &CreateOptions{Fields: []string{"FIELD", "points", "20"}, Tag: map[string]int64{"country": 8}}))
		fails(t, board.Create(ctx, nil), "BUSYKEY")
		none(board.Create(ctx, &CreateOptions{ExistOk: true}))
		fails(t, board.Named("other").Create(ctx, &CreateOptions{Fields: "FIELD", ExistOk: true}), "FIELD")
		must(board.Add(ctx, []Entry{Of("ann", 50), Of("bob", 40), Of("cid", 30)}, &AddOptions{Tag: Pairs{"country": {"DE"}}}))
		must(board.Add(ctx, []Entry{Of("eve", 45)}, &AddOptions{Tag: Pairs{"country": {"FR"}}}))
		same(t, names(must(board.Top(ctx, 2, nil))), "ann eve")
		same(t, must(board.Top(ctx, 1, &RangeOptions{Tags: true}))[0].Tags, map[string]string{"country": "DE"})
		rank, isThere, err := board.Rank(ctx, "bob", nil)
		same(t, []any{rank, isThere, err}, []any{int64(2), true, error(nil)})
		rank, isThere, err = board.Rank(ctx, "bob", &GetOptions{Within: []string{"country"}})
		same(t, []any{rank, isThere, err}, []any{int64(1), true, error(nil)})
		_, isThere, err = board.Rank(ctx, "x", nil)
		same(t, []any{isThere, err}, []any{false, error(nil)})
		score, isThere, err := board.Score(ctx, "bob")
		same(t, []any{score, isThere, err}, []any{Number("40"), true, error(nil)})
		_, isThere, err = board.Score(ctx, "x")
		same(t, []any{isThere, err}, []any{false, error(nil)})
		same(t, must(board.Remove(ctx, "ann", "x", "cid")), int64(2))
		same(t, names(must(board.Range(ctx, 0, -1, nil))), "eve bob")
		same(t, []bool{must(board.Delete(ctx)), must(board.Delete(ctx))}, []bool{true, false})
		_, err = board.Top(ctx, 0, nil)
		fails(t, err, "count: 0: a number from 1 on is allowed")
	})
}

func TestWhatIsMissingOrNoArgumentIsRefusedAndNothingIsSent(t *testing.T) {
	board := singles[0].begin(t)
	must(board.Add(ctx, []Entry{Of("ann", 5)}, nil))
	_, err := board.Submit(ctx, "ann", nil, nil)
	fails(t, err, "field is needed")
	_, err = board.Tag(ctx, "ann", nil, nil)
	fails(t, err, "tag is needed")
	_, err = board.Get(ctx, []string{}, nil)
	fails(t, err, "member: none")
	_, err = board.Remove(ctx)
	fails(t, err, "members is needed")
	_, err = board.Add(ctx, []Entry{Of("ann", 1)}, &AddOptions{Touch: true, Keeptime: true})
	fails(t, err, "touch and keeptime exclude each other")
	_, err = board.Add(ctx, nil, nil)
	fails(t, err, "one of these is needed: results, packed")
	_, err = board.Around(ctx, "", 5, nil)
	fails(t, err, "one of these is needed: member, score")
	_, err = board.Submit(ctx, "ann", float64(1<<53)*2, nil)
	fails(t, err, "beyond what a float64 holds")
	_, err = board.Submit(ctx, "ann", struct{}{}, nil)
	fails(t, err, "is no argument")
	_, err = board.Submit(ctx, "ann", 7, &SubmitOptions{Hset: &Hset{Pattern: "run:*"}})
	fails(t, err, "hset: value is needed")
	_, err = board.Submit(ctx, "ann", 7, &SubmitOptions{Boards: []string{}})
	fails(t, err, "boards: none")
	_, err = board.Submit(ctx, "ann", "x", nil)
	fails(t, err, "ERR ")
	score, _, err := board.Score(ctx, "ann")
	same(t, []any{score, err}, []any{Number("5"), error(nil)})
}

func TestDataAndTheRankOnAnotherBoard(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		must(board.Add(ctx, []Entry{Of("ann", 5), Of("bob", 4)}, nil))
		none(board.client.HSet(ctx, board.key+":p:ann", "name", "Ann", "team", "x").Err())
		found := must(board.Range(ctx, 0, 1, &RangeOptions{Data: board.key + ":p:*", Fields: []string{"name", "tier"}}))
		same(t, []map[string]string{found[0].Data, found[1].Data}, []map[string]string{{"name": "Ann"}, nil})
		same(t, must(board.Get(ctx, []string{"ann"}, &GetOptions{Data: board.key + ":p:*"}))[0].Data,
			map[string]string{"name": "Ann", "team": "x"})
		same(t, must(board.Roll(ctx, board.key+":old", nil)), int64(2))
		must(board.Add(ctx, []Entry{Of("bob", 7), Of("kim", 6)}, nil))
		found = must(board.Range(ctx, 0, -1, &RangeOptions{Since: board.key + ":old"}))
		same(t, []*int64{found[0].Since, found[1].Since}, []*int64{new(int64(1)), nil})
		must(board.Submit(ctx, "ann", 9, &SubmitOptions{Hset: &Hset{board.key + ":p:*", map[string]string{"replay": "r/7"}}}))
		same(t, board.client.HGet(ctx, board.key+":p:ann", "replay").Val(), "r/7")
	})
}

func TestWriting(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		placed := must(board.AddWithrank(ctx, []Entry{Of("ann", 10)}, nil))
		same(t, placed, []Placed{{Record: must(board.Get(ctx, []string{"ann"}, nil))[0]}})
		result := must(board.Submit(ctx, "ann", 25, &SubmitOptions{Operator: OperatorIncr}))[0]
		same(t, []any{result.Board, result.Record.Score, *result.Before, result.Counts}, []any{board.key, Number("35"), int64(0), true})
		both := must(board.Submit(ctx, "ann", 20, &SubmitOptions{Operator: "BEST", Boards: []string{board.key, board.key + ":week"}}))
		same(t, []any{both[0].Board, both[0].Counts, both[1].Board, both[1].Counts, both[1].Before},
			[]any{board.key, false, board.key + ":week", true, (*int64)(nil)})
		same(t, must(board.Add(ctx, []Entry{Of("ann", 1)}, &AddOptions{Condition: ConditionNx})), int64(0))
		key := must(board.Get(ctx, []string{"ann"}, &GetOptions{Withkey: true}))[0].Key
		same(t, must(board.WithRetries(3).Add(ctx, nil, &AddOptions{Packed: []Entry{Of("bob", key)}})), int64(1))
		same(t, must(board.Get(ctx, []string{"bob"}, nil))[0].Score, Number("35"))
		repeat := func() bool {
			return must(board.Submit(ctx, "ann", 1, &SubmitOptions{Once: "r1", Withrepeat: true}))[0].Repeated
		}
		same(t, []bool{repeat(), repeat()}, []bool{false, true})
	})
}

func TestTags(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		none(board.Create(ctx, laps()))
		must(board.Add(ctx, []Entry{Of("ann", 1, 1), Of("bob", 2, 2)}, &AddOptions{Tag: Pairs{"country": {"DE"}}}))
		join := func(clan string) bool {
			return must(board.Tag(ctx, "ann", map[string]string{"clan": clan}, &TagOptions{If: map[string]string{"clan": ""}}))
		}
		same(t, []bool{join("wolves"), join("bears")}, []bool{true, false})
		same(t, must(board.Tags(ctx, []string{"ann", "bob", "nobody"})),
			[]map[string]string{{"country": "DE", "clan": "wolves"}, {"country": "DE"}, nil})
	})
}

func TestOptions(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		none(board.Create(ctx, &CreateOptions{Fields: "FIELD score 33 TIME 31 S", Period: PeriodWeek, On: "SAT", Tz: "+08:00",
			Archive: new(int64(4)), Keep: KeepBest, Opens: time.UnixMilli(1000), Settle: SettleYes, Stale: &Stale{10, StaleUnitDay}}))
		info := must(board.Info(ctx))
		same(t, info.Layout[:28], "FIELD score 33 TIME 31 S STA")
		same(t, []any{info.Keep, info.Created, *info.Opens, info.Closes, info.Settled, info.Fields[0].Highest, *info.Stale},
			[]any{"best", true, time.UnixMilli(1000).UTC(), (*time.Time)(nil), (*bool)(nil), Number("8589934591"), int64(864000000)})
		same(t, []any{info.Period.On, info.Period.Tz, *info.Period.Archive, info.Period.Copy}, []any{"SAT", "+08:00", int64(4), false})
		same(t, info.Period.End.After(info.Period.Start), true)
		none(board.Alter(ctx, &AlterOptions{State: StateFreeze, Stale: "10 DAY"}))
		_, err := board.Add(ctx, []Entry{Of("ann", 1)}, nil)
		fails(t, err, "FROZEN")
		found := collected(t, board.Boards(ctx, &ListOptions{Match: board.key}))
		same(t, []any{len(found), found[0].Name, found[0].Frozen}, []any{1, board.key, true})
		none(board.Alter(ctx, &AlterOptions{State: StateThaw, Stale: []string{"NONE"}, Period: PeriodNone, Cap: "NONE"}))
		same(t, must(board.Info(ctx)).Period, (*BoardInfoPeriod)(nil))
	})
}

func TestArchivesAreSettledOnce(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		must(board.Add(ctx, []Entry{Of("ann", 1)}, nil))
		archive := board.key + ":1"
		must(board.Roll(ctx, archive, nil))
		found := collected(t, board.Boards(ctx, &ListOptions{Unsettled: true, Match: archive}))
		same(t, []any{len(found), found[0].Name, *found[0].Settled}, []any{1, archive, false})
		same(t, []bool{must(board.Settle(ctx, archive)), must(board.Settle(ctx, archive))}, []bool{true, false})
	})
}

func TestOnePlayer(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		ann, bob := board.key+" ann", board.key+" bob"
		must(board.Add(ctx, []Entry{Of(ann, 7), Of(bob, 5)}, nil))
		found := must(board.Where(ctx, ann, nil))
		same(t, []any{len(found), found[0].Board, found[0].Record.Score}, []any{1, board.key, Number("7")})
		same(t, must(board.Move(ctx, ann, bob, &MoveOptions{Match: board.key, Mode: ModeSum})), []int64{1, 0})
		same(t, must(board.Get(ctx, []string{bob}, nil))[0].Score, Number("12"))
		same(t, must(board.Ban(ctx, bob, &BanOptions{Match: board.key, Ex: new(int64(100))})), int64(1))
		bans := collected(t, board.Banned(ctx, &BansOptions{Match: bob}))
		same(t, []any{len(bans), bans[0].Member, bans[0].Pattern, bans[0].Until.After(time.Now())}, []any{1, bob, board.key, true})
		_, err := board.Add(ctx, []Entry{Of(bob, 1)}, nil)
		fails(t, err, "BANNED")
		same(t, []bool{must(board.Unban(ctx, bob)), must(board.Unban(ctx, bob))}, []bool{true, false})
		must(board.Add(ctx, []Entry{Of(bob, 1)}, nil))
		same(t, must(board.Forget(ctx, bob, &ForgetOptions{Data: []string{"a:*", "b:*"}})), int64(1))
		step := must(board.List(ctx, &ListOptions{Count: new(int64(1))}))
		same(t, step.Cursor != "", true)
	})
}

func TestLeagues(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		none(board.LeagueCreate(ctx, &LeagueCreateOptions{Fields: "FIELD points 22 TIME 31 S", Period: PeriodWeek,
			Room: 3, Tiers: 4, Up: 1, Down: 1, Idle: IdleStay}))
		place := must(board.LeagueAdd(ctx, "ann", 30, &LeagueAddOptions{Operator: OperatorIncr}))
		same(t, []any{place.Tier, *place.Room, place.Record.Score, place.Other}, []any{int64(1), int64(1), Number("30"), (*int64)(nil)})
		same(t, []string{place.Outlook, must(board.LeagueGet(ctx, "ann")).Outlook}, []string{"", "up"})
		same(t, must(board.LeagueGet(ctx, "nobody")), (*LeaguePlace)(nil))
		again := func() *LeaguePlace {
			return must(board.LeagueAdd(ctx, "bob", 5, &LeagueAddOptions{Once: "r1", Withrepeat: true}))
		}
		same(t, []bool{again().Repeated, again().Repeated}, []bool{false, true})
		must(board.LeagueRemove(ctx, "bob"))
		same(t, again(), (*LeaguePlace)(nil))
		info := must(board.LeagueInfo(ctx))
		same(t, []any{info.Members, info.Tiers, info.Idle, len(info.List), info.List[3].OpenRoomMembers},
			[]any{int64(1), int64(4), "stay", 4, int64(1)})
		same(t, []bool{must(board.LeagueSet(ctx, 3, "ann")), must(board.LeagueRemove(ctx, "ann")), must(board.LeagueRemove(ctx, "ann"))},
			[]bool{true, true, false})
	})
}

func TestNumbersAreExact(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		none(board.Create(ctx, &CreateOptions{Fields: "FIELD coins 64"}))
		largest, _ := new(big.Int).SetString("18446744073709551615", 10)
		must(board.Add(ctx, []Entry{Of("ann", int64(9007199254740993)), Of("kim", largest)}, nil))
		must(board.Submit(ctx, "ann", 1, &SubmitOptions{Operator: OperatorIncr}))
		found := must(board.Range(ctx, 0, -1, &RangeOptions{Withkey: true}))
		same(t, must(found[1].Score.Int64()), int64(9007199254740994))
		same(t, []Number{found[0].Score, found[0].Key}, []Number{"18446744073709551615", "18446744073709551615"})
		_, err := found[0].Score.Int64()
		fails(t, err, "out of range")
		same(t, must(found[0].Score.Rat()).Num(), largest)
		same(t, must(board.Info(ctx)).Fields[0].Highest, Number("18446744073709551615"))

		euros := board.Named(board.key + ":euros")
		none(euros.Create(ctx, &CreateOptions{Fields: "FIELD euros 64 SIGNED SCALE 2"}))
		must(euros.Add(ctx, []Entry{Of("ann", "9007199254740993.21"), Of("bob", 0.25), Of("cid", Number("-3"))}, nil))
		found = must(euros.Range(ctx, 0, -1, nil))
		same(t, must(found[0].Score.Rat()).FloatString(2), "9007199254740993.21")
		same(t, []Number{found[0].Score, found[1].Score}, []Number{"9007199254740993.21", "0.25"})
		same(t, must(found[1].Score.Rat()), big.NewRat(1, 4))
		_, err = found[1].Score.Int64()
		fails(t, err, "invalid syntax")
	})
}

func TestPagesAndIteration(t *testing.T) {
	each(t, singles, func(t *testing.T, kind kind) {
		board := kind.begin(t)
		none(board.Create(ctx, &CreateOptions{Fields: "FIELD score 40", Tag: map[string]int64{"even": 1}}))
		var entries []Entry
		var all []string
		for i := range 25 {
			all = append(all, fmt.Sprintf("m%d", i))
			entries = append(entries, Of(all[i], 100-i))
		}
		must(board.Add(ctx, entries, nil))
		must(board.Tag(ctx, "m0", map[string]string{"even": "yes"}, nil))
		must(board.Tag(ctx, "m2", map[string]string{"even": "yes"}, nil))
		page := must(board.Page(ctx, 3, 10, nil))
		same(t, []any{page.Number, page.Pages, page.Count, names(page.Records)}, []any{int64(3), int64(3), int64(25), strings.Join(all[20:], " ")})
		group := must(board.Page(ctx, 1, 10, &RangeOptions{Where: Pairs{"even": {"yes"}}}))
		same(t, []any{group.Pages, group.Count, names(group.Records)}, []any{int64(1), int64(2), "m0 m2"})
		_, err := board.Page(ctx, 0, 10, nil)
		fails(t, err, "page 0 of size 10: numbers from 1 on")
		_, err = board.Page(ctx, 1, 10, &RangeOptions{Byscore: true})
		fails(t, err, "no options of pages")
		for _, batch := range []int64{5, 7, 25, 500} {
			same(t, names(collected(t, board.Records(ctx, batch, nil))), strings.Join(all, " "))
		}
		backwards := slices.Clone(all)
		slices.Reverse(backwards)
		same(t, names(collected(t, board.Records(ctx, 7, &RangeOptions{Rev: true}))), strings.Join(backwards, " "))
		for _, err := range board.Records(ctx, 0, nil) {
			fails(t, err, "batch: 0")
		}
		for record, err := range board.Records(ctx, 5, nil) { // ends in the middle
			none(err)
			if record.Member == "m7" {
				break
			}
		}
	})
}

// way goes to the server; the replies to the next `lost` commands that have ONCE do not come back on it.
type way struct {
	lock     sync.Mutex
	lost     int
	ids      []string
	listener net.Listener
}

var onceId = regexp.MustCompile(`\$4\r\nONCE\r\n\$\d+\r\n([^\r]+)`)

func startWay(t *testing.T) *way {
	w := &way{listener: must(net.Listen("tcp", "127.0.0.1:0"))}
	t.Cleanup(func() { _ = w.listener.Close() })
	go func() {
		for {
			client, err := w.listener.Accept()
			if err != nil {
				return
			}
			go w.serve(client)
		}
	}()
	return w
}

func (w *way) serve(client net.Conn) {
	defer client.Close()
	there, err := net.Dial("tcp", address(places.Port))
	if err != nil {
		return
	}
	defer there.Close()
	var isLost bool
	go func() {
		defer client.Close()
		bytes := make([]byte, 65536)
		for {
			count, err := there.Read(bytes)
			w.lock.Lock()
			isLost := isLost
			w.lock.Unlock()
			if err != nil || isLost {
				return
			}
			if _, err := client.Write(bytes[:count]); err != nil {
				return
			}
		}
	}()
	bytes := make([]byte, 65536)
	for {
		count, err := client.Read(bytes)
		if err != nil {
			return
		}
		if found := onceId.FindSubmatch(bytes[:count]); found != nil {
			w.lock.Lock()
			w.ids = append(w.ids, string(found[1]))
			isLost = w.lost > 0
			w.lost = max(0, w.lost-1)
			w.lock.Unlock()
		}
		if _, err := io.Copy(there, strings.NewReader(string(bytes[:count]))); err != nil {
			return
		}
	}
}

func (w *way) lose(count int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.lost = count
}

func (w *way) seen() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return slices.Clone(w.ids)
}

func (w *way) connect(t *testing.T, protocol int) redis.UniversalClient {
	client := redis.NewClient(&redis.Options{Addr: w.listener.Addr().String(), Protocol: protocol})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestALostReplyIsAskedForAgain(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		way := startWay(t)
		board := New(way.connect(t, protocol), fmt.Sprintf("once: %d", protocol)).WithRetries(20)
		way.lose(3)
		results := must(board.Submit(ctx, "ann", 25, &SubmitOptions{Operator: OperatorIncr, Once: "match:4711:ann"}))
		same(t, []any{results[0].Record.Score, results[0].Counts}, []any{Number("25"), false}) // the first try counted
		same(t, way.seen(), slices.Repeat([]string{"match:4711:ann"}, 4))
		way.lose(1)
		same(t, must(board.Add(ctx, []Entry{Of("ann", 5)}, &AddOptions{Operator: OperatorIncr})), int64(0))
		same(t, must(board.Get(ctx, []string{"ann"}, nil))[0].Score, Number("30"))
		must(board.Add(ctx, []Entry{Of("ann", 5)}, &AddOptions{Operator: OperatorIncr}))
		ids := way.seen()
		same(t, []any{len(ids), ids[4] == ids[5], ids[5] == ids[6]}, []any{7, true, false})
	}
}

func TestAReplyIsAReplyAndTriesEnd(t *testing.T) {
	way := startWay(t)
	board := New(way.connect(t, 3), "once: ends").WithRetries(2)
	_, err := board.Submit(ctx, "ann", "many", &SubmitOptions{Once: "a"})
	fails(t, err, "ERR")
	same(t, len(way.seen()), 1)
	way.lose(100)
	if _, err = board.Submit(ctx, "ann", 1, &SubmitOptions{Once: "b"}); err == nil {
		t.Fatal("no error")
	}
	same(t, len(way.seen()), 4)
	same(t, must(board.Add(ctx, nil, &AddOptions{Packed: []Entry{Of("ann", 5)}})), int64(1)) // has no id
	same(t, len(way.seen()), 4)
	if _, err = board.WithRetries(0).Submit(ctx, "ann", 1, &SubmitOptions{Once: "c"}); err == nil {
		t.Fatal("no error")
	}
	same(t, way.seen()[4:], []string{"c"}) // go-redis alone would have sent it four times
	must(board.WithRetries(0).Add(ctx, []Entry{Of("bob", 5)}, nil))
	same(t, len(way.seen()), 5)
	ended, end := context.WithCancel(ctx)
	end()
	_, err = board.WithRetries(1000).Submit(ended, "ann", 1, nil)
	fails(t, err, "context canceled")
}

const boardsOfACluster = 30 // on three nodes

func TestBoardsOfACluster(t *testing.T) {
	each(t, clusters, func(t *testing.T, kind kind) {
		client := kind.connect(t)
		var boards []*Board
		var keys []string
		for i := range boardsOfACluster {
			keys = append(keys, fmt.Sprintf("{%s %d}day", kind.name, i))
			boards = append(boards, New(client, keys[i]).WithRetries(5))
		}
		for i, board := range boards {
			none(board.Create(ctx, &CreateOptions{Fields: "FIELD score 40", Tag: map[string]int64{"country": 8}}))
			must(board.Add(ctx, []Entry{Of("ann", i), Of("bob", 20)}, &AddOptions{Tag: Pairs{"country": {"DE"}}}))
			results := must(board.Submit(ctx, "ann", 5, &SubmitOptions{Operator: OperatorIncr,
				Boards: []string{board.key, strings.Replace(board.key, "day", "week", 1)}}))
			same(t, []Number{results[0].Record.Score, results[1].Record.Score}, []Number{Number(fmt.Sprint(i + 5)), "5"})
			record := must(board.Around(ctx, "ann", 1, &AroundOptions{Within: []string{"country"}, Tags: true}))[0]
			same(t, []any{record.Score, record.Tags}, []any{Number(fmt.Sprint(i + 5)), map[string]string{"country": "DE"}})
			same(t, must(board.Page(ctx, 1, 20, nil)).Count, int64(2))
			same(t, must(board.Info(ctx)).Count, int64(2))
		}
		first, match := boards[0], fmt.Sprintf("{%s *day", kind.name)
		var there []string
		for _, each := range collected(t, first.Boards(ctx, &ListOptions{Match: match})) {
			there = append(there, each.Name)
		}
		slices.Sort(there)
		slices.Sort(keys)
		same(t, there, keys)
		_, err := first.List(ctx, nil)
		fails(t, err, "each node of a cluster has a cursor")
		// What is about all nodes.
		same(t, len(must(first.Where(ctx, "bob", &WhereOptions{Match: match}))), boardsOfACluster)
		same(t, must(first.Move(ctx, "bob", "kim", &MoveOptions{Match: match})), []int64{boardsOfACluster, 0})
		same(t, must(first.Ban(ctx, "kim", &BanOptions{Match: match})), int64(boardsOfACluster))
		bans := collected(t, first.Banned(ctx, &BansOptions{Match: "kim"}))
		same(t, []any{len(bans), bans[2].Member}, []any{3, "kim"})
		same(t, []bool{must(first.Unban(ctx, "kim")), must(first.Unban(ctx, "kim"))}, []bool{true, false})
		same(t, must(first.Forget(ctx, "ann", &ForgetOptions{Match: match})), int64(boardsOfACluster))
		key := fmt.Sprintf("{%s}", kind.name)
		must(first.Named(key).Add(ctx, []Entry{Of("ann", 1)}, nil))
		must(first.Named(key).Roll(ctx, key+"1", nil))
		same(t, []bool{must(first.Settle(ctx, key+"1")), must(first.Settle(ctx, key+"1"))}, []bool{true, false})
	})
}

func TestTheNodeThatHasTheBoardIsAskedAndNoOther(t *testing.T) {
	client := clusters[0].connect(t).(*redis.ClusterClient)
	redirected := func() (count int) {
		for _, port := range places.Ports {
			node := single(port, 3)
			stats := node.Info(ctx, "errorstats").Val()
			if found := regexp.MustCompile(`errorstat_MOVED:count=(\d+)`).FindStringSubmatch(stats); found != nil {
				var own int
				must(fmt.Sscan(found[1], &own))
				count += own
			}
			_ = node.Close()
		}
		return count
	}
	must(New(client, "straight").Count(ctx, nil, nil, nil)) // the nodes are known
	before := redirected()
	for i := range 50 {
		board := New(client, fmt.Sprintf("{straight %d}day", i))
		must(board.Submit(ctx, "ann", 1, nil))
		none(board.Named(board.key+" league").LeagueCreate(ctx, &LeagueCreateOptions{Fields: "FIELD points 22 TIME 31 S",
			Period: PeriodWeek, Room: 3, Tiers: 2, Up: 1, Down: 1}))
	}
	same(t, redirected()-before, 0)
}

func TestTheVersionIsTheServers(t *testing.T) {
	told := string(must(exec.Command(places.Server, "--version").Output()))
	if !strings.HasPrefix(told, "leaderboard-server "+Version+" ") && !strings.HasPrefix(told, "leaderboard-server "+Version+"\n") {
		t.Fatalf("%s, and not %s", told, Version)
	}
}
