// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

const (
	// discoveryInterval is the time between two reads of discovery.
	discoveryInterval = time.Second / 2
	// discoveryReads is the minimum number of reads before a run concludes that another version is
	// the storage version: two minutes.
	discoveryReads = 240
)

// passBarrier waits until every new write is stored at the storage version, and records the
// resourceVersion of that moment. A restarted pod keeps the first barrier.
func (e *Engine) passBarrier(ctx context.Context, j *journal) error {
	log := logr.FromContextOrDiscard(ctx)
	if j.record.Barrier != "" {
		log.Info("Resuming", "state", j.record.State, "barrier", j.record.Barrier, "pages", j.record.Checkpoint.Pages, "done", j.record.Checkpoint.Done())
		return nil
	}
	if err := e.awaitStorageVersion(ctx); err != nil {
		return err
	}
	if err := e.awaitServers(ctx, j); err != nil {
		return err
	}
	delay := e.propagationDelay(j)
	log.Info("Waiting for writes at the old version to drain", "propagationDelay", delay.String())
	if err := e.Clock.Sleep(ctx, delay); err != nil {
		return err
	}
	if err := e.checkPin(ctx); err != nil {
		return err
	}
	list, err := e.listAtAnyVersion(ctx, "", metav1.ListOptions{Limit: 1})
	if unreadable(err) {
		return abortf("cannot list %s: the first object cannot be read at any served version: "+
			"serve the version that it is stored at, or repair its conversion: %v", e.GroupResource(), err)
	}
	if err != nil {
		return err
	}
	if list.ResourceVersion == "" {
		return abortf("the list of %s has no resourceVersion, so there is no telling which objects are current", e.GroupResource())
	}
	log.Info("Barrier passed: writes at the old version have drained", "barrier", list.ResourceVersion, "kind", j.record.BarrierKind)
	return j.passBarrier(ctx, list.ResourceVersion)
}

// awaitStorageVersion waits until two consecutive reads show the version of the run as the storage
// version, so that API servers behind one address probably agree. A server may still encode at the
// old version for a moment (kubernetes#130235), which the propagation delay covers. If servers show
// another version for longer than that, they do not just lag behind.
func (e *Engine) awaitStorageVersion(ctx context.Context) error {
	var shown *metav1.APIResource
	seen := false
	for range max(discoveryReads, int(e.PropagationDelay.Duration/discoveryInterval)) {
		var err error
		if shown, err = e.servedResource(ctx); err != nil {
			return err
		}
		stored := e.storesVersion(shown)
		if stored && seen {
			return nil
		}
		seen = stored
		if err := e.Clock.Sleep(ctx, discoveryInterval); err != nil {
			return err
		}
	}
	return e.otherStorageVersion(shown)
}

func (e *Engine) servedResource(ctx context.Context) (shown *metav1.APIResource, err error) {
	err = retry(ctx, e.Clock, func() error {
		shown, err = e.Discovery.ServedResource(ctx)
		return err
	})
	return shown, err
}

func (e *Engine) storesVersion(shown *metav1.APIResource) bool {
	return shown != nil && shown.StorageVersionHash == e.expectedHash(shown)
}

// expectedHash is the hash that every API server must show. Resources without a
// CustomResourceDefinition may be stored in another group than they are served in, so only their
// pinned hash is known.
func (e *Engine) expectedHash(shown *metav1.APIResource) string {
	if e.Pin.IsBuiltIn() {
		return e.Pin.StorageVersionHash
	}
	return storageVersionHash(e.Resource.Group, e.Resource.Version, shown.Kind)
}

func (e *Engine) otherStorageVersion(shown *metav1.APIResource) error {
	resource, version := e.GroupResource(), e.Resource.Version
	if e.Pin.IsBuiltIn() {
		return abortf("discovery does not steadily show one storage version of %s, whose storageVersionHash was %s: "+
			"wait until all API servers have been upgraded", resource, e.Pin.StorageVersionHash)
	}
	if shown == nil {
		return abortf("discovery does not show %s at version %s: check that the CustomResourceDefinition serves it", resource, version)
	}
	return abortf("discovery does not steadily show %s as the storage version of %s: its storageVersionHash is %q, expected %q; "+
		"check which version the CustomResourceDefinition stores; an API server that computes the hash otherwise is not supported",
		version, resource, shown.StorageVersionHash, e.expectedHash(shown))
}

// storageVersionHash computes the hash of a storage version in discovery. From k8s.io/apiserver
// pkg/endpoints/discovery/storageversionhash.go, which warns that it may change: then no hash
// matches, and nothing is rewritten.
func storageVersionHash(group, version, kind string) string {
	sum := sha256.Sum256([]byte(group + "/" + version + "/" + kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

const (
	// serverReads is how many consecutive reads of every API server must show the storage version.
	serverReads = 2
	// maxServerChecks is how often the API servers are checked before the barrier relies on the
	// propagation delay alone. An API server that has ended keeps its address for some seconds.
	maxServerChecks = 60
	// maxSilentChecks is how often in a row all API servers may fail to answer before serverTimeout.
	// From outside of the cluster, a firewall often drops packets to their own addresses.
	maxSilentChecks = 3
	// serverTimeout is the timeout of one request: packets to an unreachable address may be dropped
	// silently.
	serverTimeout = 5 * time.Second
)

// awaitServers waits until every API server shows the version of the run as the storage version. If
// not all of them can be checked, the barrier is the propagation delay alone, and the record says
// so.
func (e *Engine) awaitServers(ctx context.Context, j *journal) error {
	log := logr.FromContextOrDiscard(ctx)
	seen := map[string]int{}
	var problem error
	silent := 0
	for range maxServerChecks {
		var addresses []string
		addresses, problem = e.checkServers(ctx, seen)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if problem == nil {
			j.record.BarrierKind, j.record.APIServers = contract.BarrierAllServers, int32(len(addresses)) //nolint:gosec // no cluster has as many
			log.Info("Every API server shows the storage version", "apiServers", len(addresses))
			return nil
		}
		if silent++; !errors.Is(problem, errSilent) {
			silent = 0
		}
		if permanent(problem) || silent == maxSilentChecks {
			break
		}
		if err := e.Clock.Sleep(ctx, discoveryInterval); err != nil {
			return err
		}
	}
	j.record.BarrierKind, j.record.APIServers = contract.BarrierTime, 0
	log.Info("Not every API server can be asked: the barrier is the propagation delay alone", "cause", problem.Error())
	return nil
}

// checkServers checks each API server once, and returns their addresses. The error says which of
// them does not show the storage version yet, or cannot be checked.
func (e *Engine) checkServers(ctx context.Context, seen map[string]int) ([]string, error) {
	addresses, leases, err := e.Servers.Addresses(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the addresses of the API servers: %w", err)
	case len(addresses) == 0:
		return nil, fmt.Errorf("the kubernetes Service has no addresses of API servers")
	case leases > len(addresses):
		return nil, fmt.Errorf("%d API servers hold leases, and there are %d addresses: some are behind another", leases, len(addresses))
	}
	var problem error
	silent := 0
	for _, address := range addresses {
		if err := e.checkServer(ctx, address); err != nil {
			seen[address] = 0
			problem = err
			if errors.Is(err, context.DeadlineExceeded) {
				silent++
			}
			continue
		}
		if seen[address]++; seen[address] < serverReads && problem == nil {
			problem = fmt.Errorf("API server %s shows the storage version for the first time", address)
		}
	}
	if silent == len(addresses) {
		problem = fmt.Errorf("%w: %w", errSilent, problem)
	}
	return addresses, problem
}

// errSilent says that no API server answers at its own address.
var errSilent = errors.New("no API server answers at its own address")

func (e *Engine) checkServer(ctx context.Context, address string) error {
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

// permanent reports whether a retry would fail with the same error.
func permanent(err error) bool {
	status := statusOf(err)
	return status != nil && !transient(err)
}
