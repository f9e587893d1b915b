// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/bench/measure"
)

// BenchmarkKinds measures the calls of one kind, with one object each: alone in a pod, beside 199
// kinds that are idle, and beside them while another kind floods the pod with lists. The caller
// sleeps before each call, and so also waits for a processor, as a call that arrives does; due has
// that time too. Ratios to the first case are printed.
func BenchmarkKinds(b *testing.B) {
	var alone, aloneDue time.Duration
	for _, bench := range []struct {
		name         string
		kinds, flood int
	}{{"alone", 1, 0}, {"idle=199", 200, 0}, {"flood=1", 200, 1}, {"flood=16", 200, 16}} {
		b.Run(bench.name, func(b *testing.B) {
			handler := sampleKinds(b, bench.kinds)
			var stop atomic.Bool
			var flood sync.WaitGroup
			list := sampleReview(500)
			for range bench.flood {
				flood.Go(func() {
					for !stop.Load() {
						call(handler, "kind1", list)
					}
				})
			}
			one := sampleReview(1)
			var took, due []time.Duration
			for b.Loop() {
				slept := time.Now()
				time.Sleep(100 * time.Microsecond) //nolint:forbidigo // the pace of the caller
				began := time.Now()
				if code := call(handler, "kind0", one); code != http.StatusOK {
					b.Fatal(code)
				}
				took, due = append(took, time.Since(began)), append(due, time.Since(slept))
			}
			stop.Store(true)
			flood.Wait()
			p50, p99, p99Due := measure.Quantile(took, 0.5), measure.Quantile(took, 0.99), measure.Quantile(due, 0.99)
			if bench.kinds == 1 {
				alone, aloneDue = p99, p99Due
			}
			b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
			b.ReportMetric(float64(p99.Microseconds()), "p99-µs")
			b.ReportMetric(float64(p99)/float64(alone), "p99/alone")
			b.ReportMetric(float64(p99Due)/float64(aloneDue), "due-p99/alone")
		})
	}
}

// sampleKinds returns a handler of the sample's rules for several kinds.
func sampleKinds(b testing.TB, count int) *Handler {
	b.Helper()
	ruleset := newSample(b).served.Load().rulesets["abc"].Ruleset
	var all []Ruleset
	for i := range count {
		ruleset.CRD, ruleset.Hash = fmt.Sprintf("kinds%d.example.com", i), fmt.Sprintf("kind%d", i)
		all = append(all, ruleset)
	}
	return NewHandler(all, HandlerOptions{Log: logr.Discard()})
}

func call(handler *Handler, hash string, body []byte) int {
	request := httptest.NewRequest(http.MethodPost, ConvertPath+"/"+hash, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := discarded{header: http.Header{}}
	handler.ServeHTTP(&answer, request)
	return answer.code
}

// discarded is an answer of which only the status is kept, so that the caller needs little memory.
type discarded struct {
	header http.Header
	code   int
}

func (d *discarded) Header() http.Header            { return d.header }
func (d *discarded) WriteHeader(code int)           { d.code = code }
func (d *discarded) Write(text []byte) (int, error) { return len(text), nil }
