package leaderboard

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const splitAt = int64(1700000000000)

// A layout; of each field the values of a member, and 1 where more is better; the unit of time in ms, and whether later is
// better.
type splitLayout struct {
	fields  string
	values  [][2]int64
	better  []int64
	unit    int64
	isLater bool
}

var splitLayouts = []splitLayout{
	{"FIELD score 20", [][2]int64{{0, 5}}, []int64{1}, 0, false}, // hardly anything but equal keys
	{"FIELD score 20", [][2]int64{{0, 1000000}}, []int64{1}, 0, false},
	{fmt.Sprintf("FIELD ms 24 ASC TIME 30 MS START %d", splitAt), [][2]int64{{0, 30}}, []int64{-1}, 1, false},
	{"FIELD level 8 FIELD ms 20 ASC", [][2]int64{{0, 9}, {0, 40}}, []int64{1, -1}, 0, false},
	{"FIELD score 33 SIGNED TIME 31 S", [][2]int64{{-20, 20}}, []int64{1}, 1000, false},
	{"FIELD score 64 SIGNED", [][2]int64{{-1 << 61, 1<<61 - 1}}, []int64{1}, 0, false},
	{"FIELD wins 10 ASC FIELD score 16 SIGNED TIME 32 S LATEST", [][2]int64{{0, 3}, {-2, 2}}, []int64{-1, 1}, 1000, true},
}

// splitModel has members in the order of the layout's fields, their times, shards, and arrival, the last one first where
// later is better.
type splitModel struct {
	layout  splitLayout
	shards  int
	members map[string]*splitMember
	written int64
}

type splitMember struct {
	order   []int64
	arrival int64
}

func (m *splitModel) write(member string, values []int64, at int64) {
	order := slices.Clone(values)
	if m.layout.unit > 0 {
		order = append(order, at/m.layout.unit)
	}
	if old := m.members[member]; old == nil || !slices.Equal(old.order, order) {
		m.members[member] = &splitMember{order, m.written}
		m.written++
	}
}

func (m *splitModel) names() string {
	later := int64(-1)
	if m.layout.isLater {
		later = 1
	}
	var all []string
	for name := range m.members {
		all = append(all, name)
	}
	slices.SortFunc(all, func(a, b string) int {
		x, y := m.members[a], m.members[b]
		for i := range x.order {
			better := later
			if i < len(m.layout.better) {
				better = m.layout.better[i]
			}
			if x.order[i] != y.order[i] {
				return cmp.Compare(y.order[i]*better, x.order[i]*better)
			}
		}
		return cmp.Or(cmp.Compare(ShardOf(a, m.shards), ShardOf(b, m.shards)), cmp.Compare(y.arrival*later, x.arrival*later))
	})
	return strings.Join(all, " ")
}

// both are a split board, one board with the same members, and the model.
type both struct {
	board *SplitBoard
	one   *Board
	model *splitModel
}

func beginSplit(client redis.UniversalClient, name, key string, layout splitLayout, shards int) both {
	found := both{must(NewSplit(client, name, shards)).WithRetries(3), New(client, key),
		&splitModel{layout: layout, shards: shards, members: map[string]*splitMember{}}}
	options := &CreateOptions{Fields: layout.fields, Tag: map[string]int64{"country": 4, "clan": 2}}
	none(found.board.Create(ctx, options))
	none(found.one.Create(ctx, options))
	return found
}

func splitMembers() int64 {
	if isShort() {
		return 60
	}
	return 150
}

// write gives the same writes to all three.
func (b both) write(draw func(low, high int64) int64, count int64) {
	for range count {
		member := fmt.Sprintf("m%d", draw(0, splitMembers()-1))
		if draw(0, 9) == 0 {
			same := must(b.one.Remove(ctx, member))
			if must(b.board.Remove(ctx, member)) != same {
				panic("removed on one of both")
			}
			delete(b.model.members, member)
			continue
		}
		at := splitAt + 1000*draw(0, 100000)
		var values []int64
		var words []Word
		for _, limits := range b.model.layout.values {
			values = append(values, draw(limits[0], limits[1]))
			words = append(words, values[len(values)-1])
		}
		tag := Pairs{"country": {[]string{"DE", "FR", ""}[draw(0, 2)]}}
		var when Time
		if b.model.layout.unit > 0 {
			when = at
		}
		must(b.board.Submit(ctx, member, words, &SubmitOptions{Tag: tag, At: when}))
		must(b.one.Add(ctx, []Entry{Of(member, words...)}, &AddOptions{Tag: tag, At: when}))
		b.model.write(member, values, at)
	}
}

// compare asks the split board for all that one board with the same members knows.
func (b both) compare(t *testing.T, draw func(low, high int64) int64, where, wherenot Pairs) {
	t.Helper()
	shards := len(b.board.boards)
	all := must(b.one.Range(ctx, 0, -1, &RangeOptions{Where: where, Wherenot: wherenot, Withkey: true, Tags: true}))
	slices.SortStableFunc(all, func(x, y Record) int {
		keys := [2]*big.Rat{must(x.Key.Rat()), must(y.Key.Rat())}
		return cmp.Or(keys[1].Cmp(keys[0]), cmp.Compare(ShardOf(x.Member, shards), ShardOf(y.Member, shards)))
	})
	places := map[string]*Record{}
	for i := range all {
		all[i].Rank = int64(i)
		places[all[i].Member] = &all[i]
	}
	count := int64(len(all))
	slice := func(first, size int64) []Record { return all[min(first, count):min(first+size, count)] }
	options := &SplitOptions{Where: where, Wherenot: wherenot, Tags: true}
	equal := func(found []Record, err error, wanted []Record) {
		t.Helper()
		none(err)
		if len(found) != 0 || len(wanted) != 0 {
			same(t, found, wanted)
		}
	}
	if where == nil && wherenot == nil {
		same(t, names(collected(t, b.board.Records(ctx, options))), b.model.names())
	}
	for _, place := range []int64{0, 3, count / 2, max(0, count-3), count, count + 7, draw(0, count), draw(0, count)} {
		size := draw(1, 60)
		found, err := b.board.Range(ctx, place, place+size-1, options)
		equal(found, err, slice(place, size))
	}
	found, err := b.board.Top(ctx, 7, options)
	equal(found, err, slice(0, 7))
	page := must(b.board.Page(ctx, 3, 9, options))
	equal(page.Records, nil, slice(18, 9))
	same(t, []int64{page.Number, page.Pages, page.Count}, []int64{3, (count + 8) / 9, count})

	var members []string
	for range 6 {
		members = append(members, fmt.Sprintf("m%d", draw(0, splitMembers()-1)))
	}
	members = append(members, "nobody")
	for _, each := range slices.Concat(slice(0, 2), slice(max(0, count-2), 2)) {
		members = append(members, each.Member)
	}
	records := must(b.board.Get(ctx, members, options))
	shared := must(b.one.Get(ctx, members, &GetOptions{Where: where, Wherenot: wherenot, Comp: true}))
	for i, member := range members {
		same(t, records[i], places[member])
		same(t, must(b.board.Rank(ctx, member, options)), places[member])
		together := must(b.board.Rank(ctx, member, &SplitOptions{Where: where, Wherenot: wherenot, Comp: true}))
		if (together == nil) != (shared[i] == nil) || together != nil && together.Rank != shared[i].Rank {
			t.Fatalf("%s: %s and %s", member, shown(together), shown(shared[i]))
		}
		size := draw(1, 12)
		found, err := b.board.Around(ctx, member, size, options)
		if places[member] == nil {
			equal(found, err, nil)
		} else {
			equal(found, err, slice(max(0, min(places[member].Rank-size/2, count-size)), size))
		}
	}
	for _, thousandths := range []int64{0, 1000, 1, draw(0, 1000), draw(0, 1000)} {
		var wanted *Record
		if count > 0 {
			wanted = &all[count-max(1, (thousandths*count+999)/1000)]
		}
		for _, q := range []Word{fmt.Sprintf("%d.%03d", thousandths/1000, thousandths%1000), float64(thousandths) / 1000} {
			same(t, must(b.board.Quantile(ctx, []Word{q}, options))[0], wanted)
		}
	}
	group := &SplitOptions{Where: where, Wherenot: wherenot}
	same(t, must(b.board.Count(ctx, nil, nil, group)), count)
	edges := []Word{draw(-10, 20), draw(21, 50)}
	if !strings.Contains(b.model.layout.fields, "64") { // beyond what edges, which are doubles, can tell apart
		same(t, must(b.board.Hist(ctx, edges, group)), must(b.one.Hist(ctx, edges, &HistOptions{Where: where, Wherenot: wherenot})))
	}
	below := fmt.Sprintf("(%d", edges[1])
	same(t, must(b.board.Count(ctx, nil, below, group)),
		must(b.one.Count(ctx, "-inf", below, &CountOptions{Where: where, Wherenot: wherenot, Byscore: true})))
	byCountry := must(b.board.CountBy(ctx, []string{"country"}, nil, nil, group))
	one := must(b.one.CountBy(ctx, []string{"country"}, nil, nil, &CountByOptions{Where: where, Wherenot: wherenot}))
	if len(byCountry) != 0 || len(one) != 0 {
		same(t, byCountry, one)
	}
}

func TestASplitBoardAnswersAsOneBoard(t *testing.T) {
	for number, layout := range splitLayouts {
		t.Run(layout.fields, func(t *testing.T) {
			draw := drawer(t)
			for i, shards := range [][]int{{1, 5}, {2, int(draw(3, 7))}}[number%2] {
				client := singles[(number+i)%2].connect(t)
				both := beginSplit(client, fmt.Sprintf("split:%d:%d", number, i), fmt.Sprintf("one:%d:%d", number, i), layout, shards)
				both.compare(t, draw, nil, nil)                     // empty
				for _, writes := range []int64{5, splitMembers()} { // at first so few that most shards are empty
					both.write(draw, writes)
					both.compare(t, draw, nil, nil)
					both.compare(t, draw, Pairs{"country": {[]string{"DE", "", "nobody"}[draw(0, 2)]}}, nil)
					both.compare(t, draw, nil, Pairs{"country": {"DE", "FR"}})
				}
			}
		})
	}
}

func TestASplitBoardInACluster(t *testing.T) {
	each(t, clusters, func(t *testing.T, kind kind) {
		draw := drawer(t)
		name := strings.ReplaceAll(kind.name, " ", "-")
		both := beginSplit(kind.connect(t), "split:"+name, "split:one:"+name, splitLayouts[4], 6)
		both.write(draw, splitMembers())
		both.compare(t, draw, nil, nil)
		both.compare(t, draw, Pairs{"country": {"DE"}}, nil)
		both.board.BoardOf("m5")
		must(both.board.Submit(ctx, "m5", 3, nil))
		before := both.board.Rounds()
		must(both.board.Rank(ctx, "m5", nil))
		must(both.board.Around(ctx, "m5", 9, nil))
		same(t, both.board.Rounds()-before, int64(4))
		same(t, must(both.board.Delete(ctx)), int64(6))
	})
}

func TestShardsAreByCrc32ForEver(t *testing.T) {
	for name, crc := range map[string]int{"ann": 3877663347, "bob": 4123767104, "zoë": 3349081364, "": 0,
		"123456789": 0xcbf43926, "日本": 3350711756, "user:4711": 3287937155, "😀": 88978756} {
		same(t, ShardOf(name, 7), crc%7)
		same(t, ShardOf(name, math.MaxUint32), crc)
	}
}

func TestAMemberIsReadInTheShardThatAnotherProgramHasWritten(t *testing.T) {
	client := singles[0].connect(t)
	for member, shard := range map[string]int{"ann": 3, "bob": 0, "zoë": 4, "日本": 12, "user:4711": 3} {
		none(client.Do(ctx, "LB.ADD", fmt.Sprintf("split:fixed-go:{%d}", shard), "7", member).Err())
	}
	board := must(NewSplit(client, "split:fixed-go", 16))
	for _, member := range []string{"ann", "bob", "zoë", "日本", "user:4711"} {
		same(t, must(board.Rank(ctx, member, nil)) != nil, true)
	}
	same(t, must(board.Count(ctx, nil, nil, nil)), int64(5))
}

func TestWithinIsTheGroupOfTheMember(t *testing.T) {
	draw := drawer(t)
	both := beginSplit(singles[0].connect(t), "split:within-go", "one:within-go", splitLayouts[0], 3)
	both.write(draw, splitMembers())
	for i := range 20 {
		member := fmt.Sprintf("m%d", i)
		country := must(both.one.Tags(ctx, []string{member}))[0]["country"]
		where := &SplitOptions{Where: Pairs{"country": {country}}}
		for _, within := range [][]string{{"country"}, {"COUNTRY"}, {"country", "country"}} {
			same(t, must(both.board.Rank(ctx, member, &SplitOptions{Within: within})), must(both.board.Rank(ctx, member, where)))
			same(t, must(both.board.Around(ctx, member, 3, &SplitOptions{Within: within})), must(both.board.Around(ctx, member, 3, where)))
		}
		same(t, must(both.board.Rank(ctx, member, &SplitOptions{Within: []string{"country"}, Wherenot: Pairs{"country": {country}}})),
			(*Record)(nil))
	}
	same(t, len(must(both.board.Around(ctx, "nobody", 3, &SplitOptions{Within: []string{"clan"}}))), 0)
}

func TestCreateCompletesWhatWasInterruptedAndSeesOtherLayouts(t *testing.T) {
	client := singles[0].connect(t)
	none(client.Do(ctx, "LB.CREATE", "split:create-go:{1}", "FIELD", "score", "20").Err())
	board := must(NewSplit(client, "split:create-go", 4))
	create := func(fields string) error { return board.Create(ctx, &CreateOptions{Fields: fields}) }
	none(create("FIELD score 20"))
	for _, shard := range board.Boards() {
		same(t, client.Exists(ctx, shard.Key()).Val(), int64(1))
	}
	fails(t, create("FIELD score 20"), "BUSYKEY")
	client.Del(ctx, "split:create-go:{2}")
	fails(t, create("FIELD score 21"), "different layouts: FIELD score 20")
	client.Del(ctx, "split:create-go:{2}")
	fails(t, create("FIELD score 999"), "ERR")
}

func TestWritesGoToTheirShardsExactly(t *testing.T) {
	board := must(NewSplit(singles[1].connect(t), "split:exact-go", 5)).WithRetries(2)
	none(board.Create(ctx, &CreateOptions{Fields: "FIELD coins 64 SIGNED", Tag: map[string]int64{"country": 2}}))
	var entries []Entry
	for i, member := range []string{"ann", "bob", "kim", "leo", "zoe"} {
		entries = append(entries, Of(member, 9007199254740993+int64(i)))
	}
	same(t, must(board.Add(ctx, entries, &AddOptions{Tag: Pairs{"country": {"DE"}}})), int64(5))
	top := must(board.Top(ctx, 9, nil))
	same(t, []any{names(top), top[0].Score}, []any{"zoe leo kim bob ann", Number("9007199254740997")})
	same(t, must(board.Submit(ctx, "ann", 5, &SubmitOptions{Operator: OperatorBest})), false)
	same(t, must(board.Submit(ctx, "ann", int64(1)<<62, &SubmitOptions{Operator: OperatorBest})), true)
	same(t, must(board.Rank(ctx, "ann", nil)).Rank, int64(0))
	same(t, must(board.Tag(ctx, "zoe", map[string]string{"country": "FR"}, nil)), true)
	same(t, must(board.CountBy(ctx, []string{"country"}, nil, nil, nil)),
		[]ValueCount{{[]*string{new("DE")}, 4}, {[]*string{new("FR")}, 1}})
	same(t, must(board.Add(ctx, []Entry{}, nil)), int64(0))
	_, err := board.Add(ctx, []Entry{Of("eva", 1), Of("mia", "many"), Of("tom", 3)}, nil) // one shard refuses its part
	fails(t, err, "ERR")
	_, err = board.Submit(ctx, "ann", 1, &SubmitOptions{Boards: []string{"other"}})
	fails(t, err, "no other boards")
}

func TestAnArchiveIsReadAsOneBoard(t *testing.T) {
	board := must(NewSplit(singles[0].connect(t), "split:old-go", 3))
	none(board.Create(ctx, &CreateOptions{Fields: "FIELD score 20"}))
	must(board.Add(ctx, []Entry{Of("ann", 5), Of("bob", 7), Of("kim", 6)}, nil))
	for _, shard := range board.Boards() {
		must(shard.Roll(ctx, shard.Key()+"@2026-11-16", nil))
	}
	must(board.Add(ctx, []Entry{Of("ann", 1)}, nil))
	old := board.Archive("2026-11-16").WithRetries(1)
	same(t, names(collected(t, old.Records(ctx, nil))), "bob kim ann")
	same(t, must(board.Rank(ctx, "ann", nil)).Rank, int64(0))
}

func TestWhatIsNoPlaceIsRefusedAndAnEmptyBoardHasNone(t *testing.T) {
	client := singles[0].connect(t)
	board := must(NewSplit(client, "split:none-go", 3))
	bad := func(_ any, err error) {
		t.Helper()
		if err == nil {
			t.Fatal("no error")
		}
	}
	bad(board.Range(ctx, 0, -1, nil))
	bad(board.Range(ctx, -1, 3, nil))
	bad(board.Top(ctx, 0, nil))
	bad(board.Page(ctx, 0, 5, nil))
	bad(board.Around(ctx, "ann", 0, nil))
	bad(NewSplit(client, "split:none-go", 0))
	bad(board.Range(ctx, 0, 1, &SplitOptions{Within: []string{"country"}}))
	bad(board.Around(ctx, "ann", 1, &SplitOptions{Comp: true}))
	for _, q := range []Word{"1.1", "", ".", "-0.5", "x", 2, math.NaN()} {
		bad(board.Quantile(ctx, []Word{0, q}, nil))
	}
	same(t, len(must(board.Range(ctx, 5, 3, nil))), 0)
	same(t, len(must(board.Top(ctx, 3, nil))), 0)
	same(t, must(board.Rank(ctx, "ann", nil)), (*Record)(nil))
	same(t, len(must(board.Get(ctx, nil, nil))), 0)
	same(t, len(must(board.Around(ctx, "ann", 3, nil))), 0)
	same(t, must(board.Quantile(ctx, []Word{0.5, 1e-7}, nil)), []*Record{nil, nil})
	same(t, must(board.Hist(ctx, 5, nil)), []int64{0, 0})
	for _, shards := range []int{1, 3} {
		filled := must(NewSplit(client, fmt.Sprintf("split:ten-go:%d", shards), shards))
		var entries []Entry
		for i := range 10 {
			entries = append(entries, Of(fmt.Sprintf("m%d", i), i))
		}
		must(filled.Add(ctx, entries, nil))
		var found []string
		for _, each := range must(filled.Quantile(ctx, []Word{1e-7, "1e-1", "0.100000000000000001", 0.1, .3, "1.0", 1}, nil)) {
			found = append(found, each.Member)
		}
		same(t, strings.Join(found, " "), "m0 m0 m1 m0 m2 m9 m9")
	}
}

func TestWhatChangesTooFastIsAnError(t *testing.T) {
	// Members between the records that were read: they belong in between, so the answer is none.
	lists := [][]place{{{key: packed{0, 9}}, {key: packed{0, 5}, rank: 1}},
		{{key: packed{0, 8}, shard: 1, rank: 3}, {key: packed{0, 7}, shard: 1, rank: 4}}}
	if _, ok := merge(lists, []bool{true, true}, 2, 2); ok {
		t.Fatal("the best of the second shard are not known")
	}
	sought := newSearch(100, 5, 3)
	sought.widen()
	same(t, []any{sought.pad, sought.isNarrow}, []any{int64(16), false})
	for range 2 {
		sought.widen()
	}
	same(t, sought.pad, int64(padMin))
	var changed *BoardChanged
	var err error = &BoardChanged{"arena", "place 7"}
	same(t, errors.As(err, &changed), true)
	same(t, err.Error(), `leaderboard: "arena" changes too fast: no place 7`)
	same(t, ceilOf(big.NewRat(1, 3), 10), int64(4))
}

func TestAPageIsRightWhileOthersWrite(t *testing.T) {
	// Between the cuts and the records of each page the best of some shards go: what comes is right at its moment, or the
	// search goes on.
	draw := drawer(t)
	client := singles[0].connect(t)
	board := must(NewSplit(client, "split:pages-go", 5))
	var entries []Entry
	for i := range 2 * splitMembers() {
		entries = append(entries, Of(fmt.Sprintf("m%d", i), draw(0, 999)))
	}
	must(board.Add(ctx, entries, nil))
	for range 30 {
		first, options := draw(10, splitMembers()/2), SplitOptions{}
		sought := newSearch(first, 20, 5)
		for !sought.isNarrow {
			sought.takeCuts(must(board.cuts(ctx, sought, 1, options)))
			for _, shard := range board.Boards() {
				client.ZPopMax(ctx, shard.Key(), draw(0, 3))
			}
		}
		same(t, must(board.find(ctx, sought, options, 1)), must(board.Range(ctx, first, first+19, nil)))
	}
}

func TestRoundsAreAsManyAsPromised(t *testing.T) {
	usual := limits
	limits.cuts, limits.few, limits.many = 2048, 128, 512
	t.Cleanup(func() { limits = usual })
	board := must(NewSplit(singles[0].connect(t), "split:rounds-go", 16))
	draw := drawer(t)
	for begin := 0; begin < 20000; begin += 5000 {
		var entries []Entry
		for i := range 5000 {
			entries = append(entries, Of(fmt.Sprintf("m%d", begin+i), draw(0, 3000)))
		}
		must(board.Add(ctx, entries, nil))
	}
	rounds := func(_ any, err error) int64 {
		none(err)
		return board.rounds.Swap(0)
	}
	board.rounds.Store(0)
	same(t, rounds(board.Top(ctx, 100, nil)), int64(1))
	same(t, rounds(board.Rank(ctx, "m5", nil)), int64(2))
	same(t, rounds(board.Get(ctx, []string{"m5", "m6", "m7"}, nil)), int64(2))
	same(t, rounds(board.Around(ctx, "m5", 5, nil)), int64(2))
	same(t, rounds(board.Count(ctx, nil, nil, nil)), int64(1))
	if found := rounds(board.Range(ctx, 10000, 10049, nil)); found > 3 {
		t.Fatalf("%d rounds", found)
	}
}
