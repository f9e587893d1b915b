// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Times of the lock on a record.
const (
	// renewInterval is the time between two signs of life of the process that holds a record.
	renewInterval = 5 * time.Second
	// observation is how long another process watches for a sign of life before it takes a record
	// over. It compares no clocks.
	observation = 4 * renewInterval
	// releaseTimeout bounds the request that releases a record when the command ends.
	releaseTimeout = 10 * time.Second
)

// record shows the last run of one resource to users. One process at a time holds it. Runs only write it.
type record interface {
	// Save writes the given keys, and leaves the others unchanged.
	Save(ctx context.Context, data map[string]string) error
	// acquire takes the record, and creates it if it does not exist. It returns a heldError if
	// another process holds it.
	acquire(ctx context.Context) error
	// renew shows that this process is alive. It returns a takenError if another process holds the
	// record now, and a restoredError if etcd was restored.
	renew(ctx context.Context) error
	// reset deletes all data.
	reset(ctx context.Context) error
	// release gives the record up.
	release(ctx context.Context) error
	// String names the record for users.
	String() string
}

// heldError says that another process holds the record.
type heldError struct{ record, holder string }

func (h heldError) Error() string {
	return fmt.Sprintf("%s is in use by another process, %s: wait for its end", h.record, h.holder)
}

// takenError says that another process has taken the record over.
type takenError struct{ record, holder string }

func (t takenError) Error() string {
	return fmt.Sprintf("%s was taken over by another process, %s, after this one gave no sign of life: that one runs now", t.record, t.holder)
}

// hold takes a record and renews it until release is called. The context that it returns ends when
// another process takes the record over, or etcd was restored.
func hold(ctx context.Context, r record) (held context.Context, release func() error, err error) {
	if err := r.acquire(ctx); err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		ticks := time.NewTicker(renewInterval)
		defer ticks.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-ticks.C:
			}
			// Only a lost record ends the run. The next tick tries again after another error.
			if err := r.renew(held); errors.As(err, new(takenError)) || errors.As(err, new(restoredError)) {
				cancel(err)
				return
			}
		}
	})
	return held, func() error {
		cancel(nil)
		renewing.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		return r.release(ctx)
	}, nil
}

// memory is a record that nothing stores, for dry runs.
type memory map[string]string

// Load implements migration.Checkpoints.
func (m memory) Load(context.Context) (map[string]string, error) { return m, nil }

// Save implements migration.Checkpoints.
func (m memory) Save(_ context.Context, data map[string]string) error {
	maps.Copy(m, data)
	return nil
}
