// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

// changingDiscovery shows one hash, and another one after a change.
type changingDiscovery struct {
	changed atomic.Bool
	// gone shows nothing after the change.
	gone bool
}

func (d *changingDiscovery) ServedResource(context.Context) (*metav1.APIResource, error) {
	switch {
	case !d.changed.Load():
		return shownWith("first"), nil
	case d.gone:
		return nil, nil
	}
	return shownWith("second"), nil
}

// A resource without a CustomResourceDefinition is pinned to the hash in discovery, whatever version
// that stands for.
func TestBuiltInResource(t *testing.T) {
	for name, tt := range map[string]struct {
		change, gone bool
		want         contract.State
		message      string
	}{
		"no change":        {want: contract.StateCompleted},
		"another version":  {change: true, want: contract.StateAborted, message: "resource crontabs.example.com changed during the run (storageVersionHash second, was first): nothing more was rewritten"},
		"no longer served": {change: true, gone: true, want: contract.StateAborted, message: "resource crontabs.example.com is no longer served at version v1: nothing more was rewritten"},
	} {
		t.Run(name, func(t *testing.T) {
			api, store := newFakeAPI(12), &fakeStore{}
			engine := newTestEngine(api, store)
			discovery := &changingDiscovery{gone: tt.gone}
			engine.Pin = contract.Pin{Name: "crontabs.example.com", StorageVersionHash: "first"}
			engine.Discovery = discovery
			engine.Servers = silentServers{}
			api.onPatch = func(key string) error {
				if key == objectKey(4) && tt.change {
					discovery.changed.Store(true)
				}
				return nil
			}
			record := mustRun(t, engine)
			if record.State != tt.want || record.Message != tt.message || !record.Matches(engine.Pin) {
				t.Errorf("record is %+v", record)
			}
			if old := len(api.oldKeys()); (old > 0) != tt.change {
				t.Errorf("%d objects are stored at the old version", old)
			}
		})
	}
}

// silentServers have no addresses.
type silentServers struct{}

func (silentServers) Addresses(context.Context) ([]string, int, error) {
	return nil, 0, forbidden("kubernetes")
}

func (silentServers) ServedResourceAt(context.Context, string) (*metav1.APIResource, error) {
	return nil, forbidden("kubernetes")
}
