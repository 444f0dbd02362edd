package leaderboard

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// places are the ports that tests/clients/packages/run gives.
var places struct {
	Server    string
	Port      int
	Untouched int
	Sentinel  int
	Ports     []int
}

func TestMain(m *testing.M) {
	if err := json.Unmarshal([]byte(os.Getenv("PLACES")), &places); err != nil {
		fmt.Fprintln(os.Stderr, "PLACES is not set: run tests/clients/packages/run Go")
		os.Exit(1)
	}
	redis.SetLogger(quiet{})
	limits.cuts, limits.few, limits.many = 40, 5, 10 // so small that a few hundred members take all the rounds
	os.Exit(m.Run())
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

var ctx = context.Background()

type kind struct {
	name string
	make func() redis.UniversalClient
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func single(port, protocol int) redis.UniversalClient {
	return redis.NewClient(&redis.Options{Addr: address(port), Protocol: protocol})
}

var singles = []kind{
	{"RESP3", func() redis.UniversalClient { return single(places.Port, 3) }},
	{"RESP2", func() redis.UniversalClient { return single(places.Port, 2) }},
	{"Sentinel", func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "boards", SentinelAddrs: []string{address(places.Sentinel)}})
	}},
	{"a ring of one", func() redis.UniversalClient {
		return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": address(places.Port)}})
	}},
}

func cluster(protocol int) redis.UniversalClient {
	var all []string
	for _, port := range places.Ports {
		all = append(all, address(port))
	}
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: all, Protocol: protocol})
}

var clusters = []kind{
	{"cluster with RESP3", func() redis.UniversalClient { return cluster(3) }},
	{"cluster with RESP2", func() redis.UniversalClient { return cluster(2) }},
}

func (k kind) connect(t *testing.T) redis.UniversalClient {
	client := k.make()
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// begin gives a board that is not there yet.
func (k kind) begin(t *testing.T) *Board { return New(k.connect(t), k.name+": "+t.Name()) }

func each(t *testing.T, kinds []kind, test func(*testing.T, kind)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) { test(t, kind) })
	}
}

func must[T any](found T, err error) T {
	if err != nil {
		panic(err)
	}
	return found
}

func none(err error) {
	if err != nil {
		panic(err)
	}
}

func same(t *testing.T, found, wanted any) {
	t.Helper()
	if !reflect.DeepEqual(found, wanted) {
		t.Fatalf("found  %s\nwanted %s", shown(found), shown(wanted))
	}
}

func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%#v", value)
	}
	return string(text)
}

func fails(t *testing.T, err error, with string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), with) {
		t.Fatalf("%v, and not %q", err, with)
	}
}

func names(records []Record) string {
	var all []string
	for _, each := range records {
		all = append(all, each.Member)
	}
	return strings.Join(all, " ")
}

func collected[T any](t *testing.T, all func(func(T, error) bool)) []T {
	t.Helper()
	var found []T
	for each, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, each)
	}
	return found
}

// drawer gives the same numbers for the same seed, which a failing test shows.
func drawer(t *testing.T) func(low, high int64) int64 {
	seed, err := strconv.ParseUint(os.Getenv("LEADERBOARD_TEST_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64N(1 << 30)
	}
	t.Logf("LEADERBOARD_TEST_SEED=%d", seed)
	source := rand.New(rand.NewPCG(seed, 0))
	return func(low, high int64) int64 { return low + source.Int64N(high-low+1) }
}

func isShort() bool {
	return os.Getenv("LEADERBOARD_TEST_SHORT") != "" && os.Getenv("LEADERBOARD_TEST_SHORT") != "0"
}
