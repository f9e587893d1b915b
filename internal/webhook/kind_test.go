// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const jobs = "jobs.example.org"

// kindOf returns a ruleset of a kind of its own, whose hash is its group.
func kindOf(group string, converter Converter) Ruleset {
	return Ruleset{CRD: "jobs." + group, Group: group, Kind: "Job", Hash: group, Pairs: [][2]string{{"v1beta1", "v1"}}, Converter: converter}
}

// reviewOf is a review of a kind with named objects.
func reviewOf(group string, names ...string) string {
	var objects []string
	for _, name := range names {
		objects = append(objects, fmt.Sprintf(`{"apiVersion":"%s/v1beta1","metadata":{"name":%q}}`, group, name))
	}
	return v1Review(`{"uid":"u","desiredAPIVersion":"` + group + `/v1","objects":[` + strings.Join(objects, ",") + `]}`)
}

// converting is a Converter that calls a function with the name of each object.
func converting(each func(name string)) Converter {
	return outcomeFunc(func(object string) (conversion.Outcome, error) {
		name, _ := describe([]byte(object))
		each(name)
		return conversion.Outcome{From: "v1beta1"}, nil
	})
}

// twoKinds returns a handler that converts two kinds, of example.org and of example.net.
func twoKinds(org, net Converter) *Handler {
	return NewHandler([]Ruleset{kindOf("example.org", org), kindOf("example.net", net)}, HandlerOptions{})
}

// nothing converts without a change.
var nothing = converting(func(string) {})

// TestKindsHaveTheirOwnGroupAndMetrics, and calls with an unknown ruleset are of no kind.
func TestKindsHaveTheirOwnGroupAndMetrics(t *testing.T) {
	handler := NewHandler([]Ruleset{kindOf("example.org", nothing), labelled("abc")}, HandlerOptions{Log: logr.Discard()})
	for path, body := range map[string]string{
		"example.org": reviewOf("example.org", "a"),
		"abc":         reviewOf("example.org", "a"),
		"gone":        reviewOf("example.org", "a"),
	} {
		postTo(handler, ConvertPath+"/"+path, body)
	}
	got := counted(scrape(t, handler))
	for _, want := range []string{
		`requests_total{crd="jobs.example.org",failure_type="",result="success"} 1`,
		`conversion_duration_seconds_count{crd="jobs.example.org",from="v1beta1",to="v1"} 1`,
		`requests_total{crd="crontabs.example.com",failure_type="invalid_review",result="failure"} 1`,
		`requests_total{crd="",failure_type="unknown_ruleset",result="failure"} 1`,
	} {
		expect.Equal(t, "there is "+want+" in "+strings.Join(got, "\n"), true, slices.Contains(got, want))
	}
}

// TestEndOfAKind: with the last ruleset of a kind, its series and its failures end, and those of
// other kinds remain.
func TestEndOfAKind(t *testing.T) {
	bad := convertFunc(func(dst, _ []byte, _ string) ([]byte, error) { return dst, fmt.Errorf("bad") })
	ends, stays := kindOf("example.org", bad), kindOf("example.net", bad)
	handler := NewHandler([]Ruleset{ends, stays}, HandlerOptions{Log: logr.Discard()})
	for _, group := range []string{"example.org", "example.net"} {
		postTo(handler, ConvertPath+"/"+group, reviewOf(group, "a"))
	}
	handler.serve([]Ruleset{stays}, nil)
	metrics := scrape(t, handler)
	expect.Equal(t, "series of the kind remain", false, strings.Contains(metrics, jobs))
	expect.Contains(t, "the metrics", metrics, `conversion_failures_total{crd="jobs.example.net",failure_type="convert_error",from="other",to="other"} 1`)
	if got := handler.readFailures("").Failures; len(got) != 1 || got[0].CRD != "jobs.example.net" {
		t.Errorf("failures: %+v", got)
	}
}

// TestFailuresOfKinds: one kind cannot evict the failures of another, and each is read by itself.
func TestFailuresOfKinds(t *testing.T) {
	handler := twoKinds(nil, nil)
	kinds := handler.served.Load().kinds
	kinds[jobs].failures.add(failureKey{from: "v1"}, "a", "bad")
	kinds[jobs].failures.addOversized("a", &conversion.Omitted{})
	for i := range 3 * maxFailures {
		kinds["jobs.example.net"].failures.add(failureKey{from: fmt.Sprint(i)}, "a", "bad")
		kinds["jobs.example.net"].failures.addOversized(fmt.Sprint(i), &conversion.Omitted{})
	}
	for crd, want := range map[string]int{jobs: 1, "jobs.example.net": maxFailures, "": maxFailures + 1, "others.example.com": 0} {
		got := handler.readFailures(crd)
		expect.Equal(t, "failures and oversized objects of "+crd, []int{want, want}, []int{len(got.Failures), len(got.Oversized)})
		if crd != "" && slices.ContainsFunc(got.Failures, func(f Failure) bool { return f.CRD != crd }) {
			t.Errorf("%q: failures of another kind: %+v", crd, got.Failures)
		}
	}
}

// TestFlood: conversions that do not end leave a processor: those of one kind to another kind, and large ones of a kind to
// small ones.
func TestFlood(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds        []string
		flood, other string
	}{
		"one kind of two":      {[]string{"example.org", "example.net"}, reviewOf("example.org", "endless"), reviewOf("example.net", "a")},
		"large ones of a kind": {[]string{"example.org"}, reviewOf("example.org", "endless", strings.Repeat("a", firstBytes)), reviewOf("example.org", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				running, most := 0, 0
				var mu sync.Mutex
				converter := converting(func(name string) {
					if name != "endless" {
						return
					}
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					<-end
				})
				var rulesets []Ruleset
				for _, group := range tc.kinds {
					rulesets = append(rulesets, kindOf(group, converter))
				}
				handler := NewHandler(rulesets, HandlerOptions{})
				processors := handler.limiters.processors
				var flood sync.WaitGroup
				for range 10 * processors.limit {
					flood.Go(func() { postTo(handler, ConvertPath+"/example.org", tc.flood) })
				}
				synctest.Wait()
				expect.Equal(t, "conversions at the same time", processors.perKind, int64(most))
				last := tc.kinds[len(tc.kinds)-1]
				expect.Equal(t, "status", http.StatusOK, postTo(handler, ConvertPath+"/"+last, tc.other).Code)
				close(end)
				flood.Wait()
				expect.Equal(t, "processors in use in the end", 0, processors.used)
			})
		})
	}
}

// TestLongReviewYields: between two objects of a long review, another kind converts that waits for
// a processor.
func TestLongReviewYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rulesets []Ruleset
		next := map[string]chan struct{}{}
		for _, group := range []string{"long.org", "other.org", "waits.org"} {
			step := make(chan struct{})
			next[group] = step
			rulesets = append(rulesets, kindOf(group, converting(func(string) { <-step })))
		}
		handler := NewHandler(rulesets, HandlerOptions{Log: logr.Discard()})
		handler.limiters = newLimiters(DefaultMemoryLimit, 2)
		handler.limiters.serveKinds(len(rulesets))
		var calls sync.WaitGroup
		call := func(group string, names ...string) {
			calls.Go(func() { postTo(handler, ConvertPath+"/"+group, reviewOf(group, names...)) })
			synctest.Wait()
		}
		converts := func(group string) {
			t.Helper()
			select {
			case next[group] <- struct{}{}:
			default:
				t.Errorf("%s does not convert", group)
				close(next[group]) // so that the test ends
			}
			synctest.Wait()
		}
		call("long.org", "1", "2")
		call("other.org", "1")
		call("waits.org", "1")
		converts("long.org")
		converts("waits.org")
		converts("long.org")
		converts("other.org")
		calls.Wait()
	})
}

// TestFailuresOfAllKinds: what a pod remembers has a bound for all kinds together. The kinds with the
// most entries give up their oldest, and a kind with few keeps all of them, however many others fail.
func TestFailuresOfAllKinds(t *testing.T) {
	var rulesets []Ruleset
	for i := range 100 {
		rulesets = append(rulesets, kindOf(fmt.Sprintf("kind%d.org", i), nil))
	}
	handler := NewHandler(rulesets, HandlerOptions{Log: logr.Discard()})
	kinds := handler.served.Load().kinds
	add := func(kind string, count int) {
		for i := range count {
			kinds[kind].failures.add(failureKey{from: fmt.Sprint(i)}, "a", "bad")
			kinds[kind].failures.addOversized(fmt.Sprint(i), &conversion.Omitted{})
		}
	}
	add("jobs.kind0.org", 1)
	for i := range 100 {
		add(fmt.Sprintf("jobs.kind%d.org", 99-i), maxFailures)
	}
	all := handler.readFailures("")
	expect.Equal(t, "failures of all kinds", maxAllFailures, len(all.Failures))
	expect.Equal(t, "oversized objects of all kinds", maxAllOversized, len(all.Oversized))
	for crd := range kinds {
		if got := handler.readFailures(crd); len(got.Failures) < maxAllFailures/100 || len(got.Oversized) < maxAllOversized/100 {
			t.Errorf("%s: %d failures and %d oversized objects are left", crd, len(got.Failures), len(got.Oversized))
		}
	}
	handler.serve([]Ruleset{kindOf("example.org", nil)}, nil)
	kinds = handler.served.Load().kinds
	add(jobs, maxFailures)
	expect.Equal(t, "failures of a kind after others have ended", maxFailures, len(handler.readFailures("").Failures))
}

// slicedCall is a call that calls a function at each operation that copies a slice.
type slicedCall struct {
	body   io.Reader
	header http.Header
	code   int
	read   int
	copy   func()
}

func (c *slicedCall) Header() http.Header  { return c.header }
func (c *slicedCall) WriteHeader(code int) { c.code = code }

func (c *slicedCall) Read(into []byte) (int, error) {
	if c.read >= firstBytes {
		c.copy()
	}
	n, err := c.body.Read(into)
	c.read += n
	return n, err
}

func (c *slicedCall) Write(text []byte) (int, error) {
	if len(text) == sliceBytes {
		c.copy()
	}
	return len(text), nil
}

// postSliced posts a review of the group example.org, and returns the status.
func postSliced(handler http.Handler, body string, copies func()) int {
	c := slicedCall{body: strings.NewReader(body), header: http.Header{}, copy: copies}
	request := httptest.NewRequest(http.MethodPost, ConvertPath+"/example.org", &c)
	request.Header.Set("Content-Type", "application/json")
	request.ContentLength = int64(len(body))
	handler.ServeHTTP(&c, request)
	return c.code
}

// TestCopiesOfAFlood: large bodies and answers of one kind are copied by its part of the processors.
func TestCopiesOfAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, large := twoKinds(nothing, nothing), reviewOf("example.org", strings.Repeat("a", 4*firstBytes))
		var copying, most, copies int
		var mu sync.Mutex
		count := func(change int) {
			mu.Lock()
			defer mu.Unlock()
			copying += change
			most = max(most, copying)
			copies++
		}
		var flood sync.WaitGroup
		for range 8 {
			flood.Go(func() {
				expect.Equal(t, "status", http.StatusOK, postSliced(handler, large, func() {
					count(1)
					time.Sleep(copyTime / 2) //nolint:forbidigo // the clock of synctest
					count(-1)
				}))
			})
		}
		flood.Wait()
		if want := 8 * 2 * 2 * (3*firstBytes/sliceBytes - 1); copies < want {
			t.Errorf("%d slices are copied, want %d", copies/2, want/2)
		}
		expect.Equal(t, "copies at the same time", handler.limiters.processors.perKind, int64(most))
		expect.Equal(t, "processors in use in the end", 0, handler.limiters.processors.used)
	})
}

// TestAnswersOfAllSizes: an answer that is sent in slices is whole, whatever its size, and has nothing of other answers.
func TestAnswersOfAllSizes(t *testing.T) {
	echo := convertFunc(func(dst, object []byte, _ string) ([]byte, error) { return append(dst, object...), nil })
	server := httptest.NewServer(twoKinds(echo, echo))
	defer server.Close()
	for size := 100; size < 4*sliceBytes; size += sliceBytes / 16 {
		body := reviewOf("example.org", strings.Repeat("a", size))
		var answer []byte
		response, err := http.Post(server.URL+ConvertPath+"/example.org", "application/json", strings.NewReader(body))
		if err == nil {
			answer, err = io.ReadAll(response.Body)
			response.Body.Close()
		}
		if err != nil || !json.Valid(answer) || strings.Count(string(answer), "a") < size {
			t.Errorf("a name of %d bytes: an answer of %d bytes: %v", size, len(answer), err)
		}
	}
}

// TestSlowClientsHoldNoProcessor: clients that do not send their bodies, or do not read their answers, hold no
// processor.
func TestSlowClientsHoldNoProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, large := twoKinds(nothing, nothing), reviewOf("example.org", strings.Repeat("a", 2*firstBytes))
		proceed := make(chan struct{})
		var slow sync.WaitGroup
		for range 8 {
			slow.Go(func() { postSliced(handler, large, func() { <-proceed }) })
		}
		time.Sleep(time.Second) //nolint:forbidigo // the clock of synctest
		used, _ := handler.limiters.processors.held(&handler.served.Load().kinds[jobs].held.processors)
		expect.Equal(t, "processors of slow clients", 0, used)
		expect.Equal(t, "status of another call", http.StatusOK, postTo(handler, ConvertPath+"/example.org", large).Code)
		close(proceed)
		slow.Wait()
		expect.Equal(t, "processors in use in the end", 0, handler.limiters.processors.used)
	})
}

// TestLongCallLetsOthersRun: other goroutines get the processor of a large call after each slice and
// each object, also if there is only one.
func TestLongCallLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns atomic.Int64
	var ended atomic.Bool
	var others sync.WaitGroup
	others.Go(func() {
		for !ended.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	})
	names := slices.Repeat([]string{strings.Repeat("a", firstBytes/10)}, 100)
	large := reviewOf("example.org", names...)
	expect.Equal(t, "status", http.StatusOK, postTo(twoKinds(nothing, nothing), ConvertPath+"/example.org", large).Code)
	got, want := int(turns.Load()), len(names)+2*((len(large)-firstBytes)/sliceBytes-1)
	if ended.Store(true); got < want {
		t.Errorf("others ran %d times, want %d", got, want)
	}
	others.Wait()
}

// TestPanicOfOneKind: a panic is counted for its kind, while a conversion of another continues.
func TestPanicOfOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		handler := twoKinds(converting(func(string) { panic("oh") }), converting(func(string) { <-end }))
		answered := make(chan string, 1)
		go func() {
			answered <- postTo(handler, ConvertPath+"/example.net", reviewOf("example.net", "a")).Body.String()
		}()
		synctest.Wait()
		for range 10 { // more often than there are processors
			postTo(handler, ConvertPath+"/example.org", reviewOf("example.org", "a"))
		}
		close(end)
		expect.Contains(t, "the answer of the other kind", <-answered, `"status":"Success"`)
		got := handler.readFailures("").Failures
		if len(got) != 1 || got[0].CRD != jobs || got[0].Cause != CausePanic || got[0].Count != 10 {
			t.Errorf("failures: %+v", got)
		}
		expect.Equal(t, "processors in use", 0, handler.limiters.processors.used)
	})
}

// TestMemoryOfOneKind: a kind whose calls hold its part of the memory does not make another wait.
func TestMemoryOfOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		handler := twoKinds(converting(func(string) { <-end }), nothing)
		handler.limiters.processors.limit = 1000
		handler.limiters.serveKinds(2)
		large := func(group, name string) string {
			return strings.Replace(reviewOf(group, name), `{"name"`, `{"annotations":{"a":"`+strings.Repeat("a", 1<<20)+`"},"namespace":"`+name+`","name"`, 1)
		}
		statuses := make([]int, 100)
		var flood sync.WaitGroup
		for i := range statuses {
			flood.Go(func() {
				statuses[i] = postTo(handler, ConvertPath+"/example.org", large("example.org", fmt.Sprint(i))).Code
			})
		}
		synctest.Wait()
		used, limit := handler.limiters.bytes(&handler.served.Load().kinds[jobs].held)
		if most := handler.options.MemoryLimit / 4; used < limit/2 || used > most {
			t.Errorf("the kind holds %d bytes, of %d", used, most)
		}
		other := postTo(handler, ConvertPath+"/example.net", large("example.net", "a"))
		expect.Equal(t, "status of the other", http.StatusOK, other.Code)
		close(end)
		flood.Wait()
		slices.Sort(statuses)
		expect.Equal(t, "statuses of the kind", []int{http.StatusOK, http.StatusTooManyRequests}, slices.Compact(statuses))
		expect.Equal(t, "bytes in the end", 0, handler.limiters.used())
	})
}

// TestSharedDirectory: rulesets of several kinds are served side by side, a broken one affects no
// other, and the pod needs none to start.
func TestSharedDirectory(t *testing.T) {
	f := newFollower(t, true, nil)
	f.serves("at first")
	expect.Equal(t, "rulesets", `{"hashes":[]}`, get(f.handler, RulesetsPath))
	expect.Equal(t, "readiness", "ok\n", get(f.handler, ReadyPath))

	one, storedOne := ruleset(t, crontabs, "v1", "v1beta1")
	two, storedTwo := ruleset(t, jobs, "v1", "v1beta1")
	files := map[string][]byte{
		conversion.StoredName("crontabs", one):              storedOne,
		conversion.StoredName("jobs", two):                  storedTwo,
		conversion.StoredName("broken", "0123456789abcdef"): []byte("no gzip"),
	}
	f.update(files)
	f.serves("with two kinds", one, two)
	for _, hash := range []string{one, two} {
		expect.Equal(t, "status", 200, postTo(f.handler, ConvertPath+"/"+hash, v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[]}`)).Code)
	}
	f.update(nil)
	f.now = f.now.Add(2 * keepUnused)
	f.serves("after all were removed", one, two)

	f.update(files)
	again, err := OpenRulesets(f.directory, logr.Discard(), true)
	expect.NoError(t, err)
	started := NewHandler(again.Rulesets(), HandlerOptions{Log: logr.Discard()})
	again.serve(started)
	var got Rulesets
	expect.NoError(t, json.NewDecoder(bytes.NewBufferString(get(started, RulesetsPath))).Decode(&got))
	hashes := []string{one, two}
	slices.Sort(hashes)
	expect.Equal(t, "rulesets of a pod that starts", Rulesets{Hashes: hashes, Failed: map[string]string{"0123456789abcdef": "decompress the ruleset: unexpected EOF"}}, got)
}
