// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// discoveryAnswer is one answer of discovery.
type discoveryAnswer struct {
	shown *metav1.APIResource
	err   error
}

type discoveryFunc func(context.Context) (*metav1.APIResource, error)

func (f discoveryFunc) ServedResource(ctx context.Context) (*metav1.APIResource, error) {
	return f(ctx)
}

func TestAwaitStorageVersion(t *testing.T) {
	missing := discoveryAnswer{}
	before := discoveryAnswer{shown: shownWith(storageVersionHash("example.com", "v1beta1", "CronTab"))}
	after := discoveryAnswer{shown: shownWith(storageVersionHash("example.com", "v1", "CronTab"))}
	unnamed := discoveryAnswer{shown: shownWith("")}
	tests := map[string]struct {
		answers []discoveryAnswer
		// want is the number of reads; the last answer repeats.
		want int
		stop string
	}{
		"steady":              {answers: []discoveryAnswer{after}, want: 2},
		"not served yet":      {answers: []discoveryAnswer{missing, missing, after}, want: 4},
		"changes":             {answers: []discoveryAnswer{before, after}, want: 3},
		"servers differ":      {answers: []discoveryAnswer{before, after, before, after}, want: 5},
		"served, then not":    {answers: []discoveryAnswer{after, missing, after}, want: 4},
		"hash shown late":     {answers: []discoveryAnswer{unnamed, unnamed, after}, want: 4},
		"hashes not shown":    {answers: []discoveryAnswer{unnamed}, want: discoveryReads, stop: `its storageVersionHash is "", expected "`},
		"steady, but the old": {answers: []discoveryAnswer{before}, want: discoveryReads, stop: "does not steadily show v1 as the storage version of crontabs.example.com"},
		"servers never agree": {answers: flapping(before, after), want: discoveryReads, stop: "does not steadily show"},
		"recovers":            {answers: []discoveryAnswer{{err: unreachable()}, after, {err: unavailable()}, after}, want: 4},
		"never served":        {answers: []discoveryAnswer{missing}, want: discoveryReads, stop: "does not show crontabs.example.com at version v1"},
		"discovery forbidden": {answers: []discoveryAnswer{{err: forbidden("")}}, want: 1, stop: "denied by policy"},
		"server unavailable":  {answers: []discoveryAnswer{{err: unreachable()}}, want: maxAttempts, stop: "connection refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reads := 0
			engine := newTestEngine(newFakeAPI(0), &fakeStore{})
			engine.Discovery = discoveryFunc(func(context.Context) (*metav1.APIResource, error) {
				reads++
				answer := tt.answers[min(reads, len(tt.answers))-1]
				return answer.shown, answer.err
			})
			err := engine.awaitStorageVersion(t.Context())
			expect.Equal(t, "reads", tt.want, reads)
			if tt.stop != "" {
				wantError(t, err, tt.stop)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// flapping alternates between two answers for as long as a run reads discovery.
func flapping(a, b discoveryAnswer) []discoveryAnswer {
	var answers []discoveryAnswer
	for range discoveryReads {
		answers = append(answers, a, b)
	}
	return answers
}

// The hashes are those of an API server of Kubernetes 1.37.
func TestStorageVersionHash(t *testing.T) {
	tests := map[string]struct{ group, version, kind, want string }{
		"Deployment": {"apps", "v1", "Deployment", "8aSe+NMegvE="},
		"Pod":        {"", "v1", "Pod", "xPOwRZ+Yhw8="},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "hash", tt.want, storageVersionHash(tt.group, tt.version, tt.kind))
		})
	}
}

func TestBarrierIsReadAfterPropagation(t *testing.T) {
	api, store, clock := newFakeAPI(3), &fakeStore{}, newFakeClock()
	engine := newTestEngine(api, store)
	engine.Clock = clock
	api.onList = func(options metav1.ListOptions) error {
		if len(api.lists) == 1 {
			expect.Equal(t, "list for the barrier", metav1.ListOptions{Limit: 1}, options)
			expect.Equal(t, "waits before the barrier", []time.Duration{discoveryInterval, discoveryInterval, time.Minute}, clock.slept)
		}
		return nil
	}
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	expect.Equal(t, "barrier", "103", record.Barrier)
	var states []contract.State
	for _, r := range store.records(t) {
		states = append(states, r.State)
	}
	expect.Equal(t, "states", []contract.State{contract.StatePropagating, contract.StateRunning, contract.StateAuditing, contract.StateCompleted}, states)
}

func TestBarrierNeedsAResourceVersion(t *testing.T) {
	engine := newTestEngine(newFakeAPI(1), &fakeStore{})
	engine.Lister = listerFunc(func(context.Context, ListScope, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		return &metav1.PartialObjectMetadataList{}, nil
	})
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	expect.Equal(t, "state", contract.StateAborted, record.State)
}

// fakeServers are API servers that show the storage version from some round on.
type fakeServers struct {
	// since is the round from which each address shows the storage version.
	since  map[string]int
	leases int
	err    error
	refuse error
	round  int
}

func (f *fakeServers) Addresses(context.Context) ([]string, int, error) {
	f.round++
	var addresses []string
	for address := range f.since {
		addresses = append(addresses, address)
	}
	return addresses, f.leases, f.err
}

func (f *fakeServers) ServedResourceAt(_ context.Context, address string) (*metav1.APIResource, error) {
	version := "v1beta1"
	if f.round >= f.since[address] {
		version = "v1"
	}
	return shownWith(storageVersionHash("example.com", version, "CronTab")), f.refuse
}

func TestAwaitServers(t *testing.T) {
	tests := map[string]struct {
		servers fakeServers
		want    contract.BarrierKind
		number  int32
		rounds  int
	}{
		"one":                       {fakeServers{since: map[string]int{"a": 0}, leases: 1}, contract.BarrierAllServers, 1, 2},
		"three":                     {fakeServers{since: map[string]int{"a": 0, "b": 0, "c": 0}, leases: 3}, contract.BarrierAllServers, 3, 2},
		"one that lags behind":      {fakeServers{since: map[string]int{"a": 0, "b": 7}}, contract.BarrierAllServers, 2, 8},
		"one that never follows":    {fakeServers{since: map[string]int{"a": 0, "b": 1000}}, contract.BarrierTime, 0, maxServerChecks},
		"some behind one address":   {fakeServers{since: map[string]int{"a": 0}, leases: 3}, contract.BarrierTime, 0, maxServerChecks},
		"no addresses":              {fakeServers{}, contract.BarrierTime, 0, maxServerChecks},
		"addresses may not be read": {fakeServers{err: fmt.Errorf("endpoints: %w", forbidden("kubernetes"))}, contract.BarrierTime, 0, 1},
		"addresses not readable":    {fakeServers{err: unavailable()}, contract.BarrierTime, 0, maxServerChecks},
		"discovery forbidden":       {fakeServers{since: map[string]int{"a": 0}, refuse: unauthorized()}, contract.BarrierTime, 0, 1},
		"address silent":            {fakeServers{since: map[string]int{"a": 0}, refuse: fmt.Errorf("dial: %w", context.DeadlineExceeded)}, contract.BarrierTime, 0, maxSilentChecks},
		"address unreachable":       {fakeServers{since: map[string]int{"a": 0}, refuse: unreachable()}, contract.BarrierTime, 0, maxServerChecks},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store := &fakeStore{}
			engine := newTestEngine(newFakeAPI(1), store)
			engine.Servers = &tt.servers
			record := mustRun(t, engine)
			if record.BarrierKind != tt.want || record.APIServers != tt.number || tt.servers.round != tt.rounds {
				t.Errorf("barrier is %s over %d after %d rounds, want %s over %d after %d",
					record.BarrierKind, record.APIServers, tt.servers.round, tt.want, tt.number, tt.rounds)
			}
			if !record.Complete() {
				t.Errorf("record is %+v", record)
			}
		})
	}
}
