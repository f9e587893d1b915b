// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestBudget: calls of one holder take a part of the memory, however many they are, and leave the rest to others.
// One call may have all that is left.
func TestBudget(t *testing.T) {
	objects := map[string]*holder{}
	for name, tc := range map[string]struct {
		name func(b *budget, c *claim) bool
		want int64
	}{
		"a kind":      {func(*budget, *claim) bool { return true }, 500},
		"a namespace": {func(b *budget, c *claim) bool { return b.name(c, objects, "a", fmt.Sprint(b.used)) }, 333},
		"an object":   {func(b *budget, c *claim) bool { return b.name(c, objects, "a", "b") }, 200},
	} {
		t.Run(name, func(t *testing.T) {
			b, kind := &budget{limit: 1000}, &holder{part: partOfKind}
			var claims []*claim
			for range 2000 {
				c := &claim{holders: []*holder{kind}}
				if b.hold(c, 1) && tc.name(b, c) {
					claims = append(claims, c)
				} else {
					b.release(c)
				}
			}
			expect.Equal(t, "held", tc.want, b.used)
			other := &claim{holders: []*holder{{part: partOfKind}}}
			expect.Equal(t, "another may hold the rest", true, b.hold(other, 1000-tc.want))
			b.release(other)
			for _, c := range claims {
				b.release(c)
			}
			expect.Equal(t, "held in the end", 0, b.used)
			expect.Equal(t, "names in the end", 0, len(objects))
		})
	}
}

// TestManyReadsOfOneObject: of parallel reads of a large object, those beyond its part are refused, such that an API
// server tries again. Reads of other objects of its kind, small ones and large ones, go on.
func TestManyReadsOfOneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		handler := NewHandler([]Ruleset{kindOf("example.org", converting(func(name string) {
			if name == "tenant/large" {
				<-end
			}
		}))}, HandlerOptions{Log: logr.Discard()})
		handler.limiters.processors.resize(1000)
		read := func(namespace, name string, annotations int) *http.Response {
			all := repeated(`"annotations":{`, `"a%d":""`, `},`)(annotations)
			body := strings.Replace(reviewOf("example.org", name), `{"name"`, `{`+all+`"namespace":"`+namespace+`","name"`, 1)
			return postTo(handler, ConvertPath+"/example.org", body).Result()
		}
		var mu sync.Mutex
		answers := map[string]int{}
		var flood sync.WaitGroup
		for range 150 {
			flood.Go(func() {
				response := read("tenant", "large", 48_000)
				mu.Lock()
				defer mu.Unlock()
				answers[fmt.Sprint(response.StatusCode, response.Header["Retry-After"])]++
			})
		}
		synctest.Wait()
		expect.Equal(t, "status of a small object", http.StatusOK, read("tenant", "small", 10).StatusCode)
		expect.Equal(t, "status of a large object of another namespace", http.StatusOK, read("other", "large", 48_000).StatusCode)
		close(end)
		flood.Wait()
		if len(answers) != 2 || answers["200 []"] < 2 || answers["429 [1]"] < 100 {
			t.Errorf("answers: %v", answers)
		}
		expect.Equal(t, "bytes in the end", 0, handler.limiters.used())
	})
}

// TestMemoryFollowsTheLimit: what calls and connections may have follows the memory limit of the pod.
func TestMemoryFollowsTheLimit(t *testing.T) {
	for _, limit := range []int64{64 << 20, DefaultMemoryLimit, 1 << 30} {
		l := NewHandler(nil, HandlerOptions{MemoryLimit: limit}).limiters
		all := l.bodies.limit + l.work.limit + l.connections.Load()*connectionBytes
		if l.bodies.limit < (limit-programBytes)/7 || all > limit-programBytes {
			t.Errorf("with %d bytes: bodies %d, conversions %d, %d connections", limit, l.bodies.limit, l.work.limit, l.connections.Load())
		}
	}
}

// repeated returns n elements, with the number of each in the place of %d.
func repeated(begin, element, end string) func(int) string {
	return func(n int) string {
		var text strings.Builder
		text.WriteString(begin)
		for i := range n {
			if i > 0 {
				text.WriteByte(',')
			}
			text.WriteString(strings.ReplaceAll(element, "%d", fmt.Sprint(i)))
		}
		return text.String() + end
	}
}
