// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// fakeServers are API servers that show the storage version from a round on.
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
		want    v1alpha1.BarrierKind
		number  int32
		rounds  int
	}{
		"one":                       {fakeServers{since: map[string]int{"a": 0}, leases: 1}, v1alpha1.BarrierAllServers, 1, 2},
		"three":                     {fakeServers{since: map[string]int{"a": 0, "b": 0, "c": 0}, leases: 3}, v1alpha1.BarrierAllServers, 3, 2},
		"one that lags behind":      {fakeServers{since: map[string]int{"a": 0, "b": 7}}, v1alpha1.BarrierAllServers, 2, 8},
		"one that never follows":    {fakeServers{since: map[string]int{"a": 0, "b": 1000}}, v1alpha1.BarrierTime, 0, serverPatience},
		"some behind one address":   {fakeServers{since: map[string]int{"a": 0}, leases: 3}, v1alpha1.BarrierTime, 0, serverPatience},
		"no addresses":              {fakeServers{}, v1alpha1.BarrierTime, 0, serverPatience},
		"addresses may not be read": {fakeServers{err: fmt.Errorf("endpoints: %w", forbidden("kubernetes"))}, v1alpha1.BarrierTime, 0, 1},
		"addresses not readable":    {fakeServers{err: unavailable()}, v1alpha1.BarrierTime, 0, serverPatience},
		"discovery forbidden":       {fakeServers{since: map[string]int{"a": 0}, refuse: unauthorized()}, v1alpha1.BarrierTime, 0, 1},
		"address unreachable":       {fakeServers{since: map[string]int{"a": 0}, refuse: unreachable()}, v1alpha1.BarrierTime, 0, serverPatience},
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
