// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

const (
	// serverReads is how often in a row every API server must show the storage
	// version.
	serverReads = 2
	// serverPatience is how often API servers are asked until the barrier rests on
	// time: one that has ended stays among the addresses for some seconds.
	serverPatience = 60
	// serverTimeout is for one answer: packets to an address that cannot be reached
	// may vanish.
	serverTimeout = 5 * time.Second
)

// awaitServers waits until every API server shows the version of the run as the
// storage version. Where they cannot all be asked, the barrier is the settle time
// alone, and the record says so.
func (e *Engine) awaitServers(ctx context.Context, j *journal) error {
	log := logr.FromContextOrDiscard(ctx)
	seen := map[string]int{}
	var doubt error
	for range serverPatience {
		var addresses []string
		addresses, doubt = e.askServers(ctx, seen)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if doubt == nil {
			j.record.BarrierKind, j.record.APIServers = v1alpha1.BarrierAllServers, int32(len(addresses)) //nolint:gosec // no cluster has as many
			log.Info("Every API server shows the storage version", "apiServers", len(addresses))
			return nil
		}
		if final(doubt) {
			break
		}
		if err := e.Clock.Sleep(ctx, discoveryInterval); err != nil {
			return err
		}
	}
	j.record.BarrierKind, j.record.APIServers = v1alpha1.BarrierTime, 0
	log.Info("Not every API server can be asked: the barrier is the settle time alone", "cause", doubt.Error())
	return nil
}

// askServers asks each API server once, and returns their addresses. An error
// says which of them does not show the storage version yet, or cannot be asked.
func (e *Engine) askServers(ctx context.Context, seen map[string]int) ([]string, error) {
	addresses, leases, err := e.Servers.Addresses(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the addresses of the API servers: %w", err)
	case len(addresses) == 0:
		return nil, fmt.Errorf("the kubernetes Service has no addresses of API servers")
	case leases > len(addresses):
		return nil, fmt.Errorf("%d API servers hold leases, and there are %d addresses: some are behind another", leases, len(addresses))
	}
	var doubt error
	for _, address := range addresses {
		if err := e.askServer(ctx, address); err != nil {
			seen[address] = 0
			doubt = err
			continue
		}
		if seen[address]++; seen[address] < serverReads && doubt == nil {
			doubt = fmt.Errorf("API server %s shows the storage version for the first time", address)
		}
	}
	return addresses, doubt
}

func (e *Engine) askServer(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	shown, err := e.Servers.ServedResourceAt(ctx, address)
	switch {
	case err != nil:
		return fmt.Errorf("API server %s: %w", address, err)
	case !e.storesVersion(shown):
		return fmt.Errorf("API server %s does not show %s as the storage version", address, e.Resource.Version)
	}
	return nil
}

// final reports an answer that does not change by asking again.
func final(err error) bool {
	status := statusOf(err)
	return status != nil && !transient(err)
}
