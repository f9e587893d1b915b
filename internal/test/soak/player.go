// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// patience bounds every wait. It exceeds the longest back-off of a kubelet before it restarts a
	// container, plus the time of a migration or a rotation.
	patience = 10 * time.Minute
	// pause is the time between two tries.
	pause = 200 * time.Millisecond
)

// player performs steps, and checks invariants.
type player struct {
	out     io.Writer
	dir     string // the root of the checkout
	cluster client.Client
	dynamic dynamic.Interface
	ledger  *ledger
	metrics rest.Interface // of the API server
	// subjects and fleets are the state of the model after the steps so far.
	subjects []subject
	fleets   []fleet
	// pruned has the prunings by other clients, by subject, while objects are stored at the pruned
	// versions.
	pruned map[string]pruning
	// last is the previous observation of each subject.
	last map[string]observation
	// played are the steps so far.
	played []step
	// reads counts the successful reads during steps.
	reads int64
	// neighbors use the same fleets, and no step is about them.
	neighbors neighbors
}

// play performs steps until the time is over, and then those that remove every subject.
func (p *player) play(ctx context.Context, steps *sequence, until time.Time) error {
	for time.Now().Before(until) {
		if err := p.playStep(ctx, steps.next()); err != nil {
			return err
		}
	}
	for _, s := range steps.finish() {
		if err := p.playStep(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// playBeside plays steps beside neighbors, in fleets that exist for the time of the run.
func (p *player) playBeside(ctx context.Context, count int, seed uint64, steps *sequence, lasts time.Duration) error {
	for _, name := range fleetNames {
		if err := p.createFleet(ctx, name); err != nil {
			return err
		}
	}
	if err := p.startNeighbors(ctx, count, seed); err != nil {
		return err
	}
	if err := p.play(ctx, steps, time.Now().Add(lasts)); err != nil {
		return err
	}
	if err := p.neighbors.end(ctx); err != nil {
		return err
	}
	for _, name := range fleetNames {
		if err := p.deleteFleet(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// playStep performs one step while clients read and write, and then checks the invariants.
func (p *player) playStep(ctx context.Context, s step) error {
	start := time.Now()
	fmt.Fprintln(p.out, s)
	perform := p.perform
	if s.Gentle {
		perform = p.performGently
	}
	if err := perform(ctx, s); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "     %.1f s\n", time.Since(start).Seconds())
	return nil
}

// perform performs a step, and checks the invariants when it is over.
func (p *player) perform(ctx context.Context, s step) error {
	reader := p.startReader(ctx, s, p.subjects)
	if err := errors.Join(p.do(ctx, s), reader.finish()); err != nil {
		return err
	}
	p.noteDiscarded(s)
	return p.checkInvariants(ctx, s.Waits)
}

// performGently also checks that no conversion fails until nothing changes any more, while clients
// read.
func (p *player) performGently(ctx context.Context, s step) error {
	before, err := p.failedConversions(ctx)
	if err != nil {
		return err
	}
	p.neighbors.refused.take()
	reader := p.startReader(ctx, s, p.subjects)
	if err := p.do(ctx, s); err != nil {
		return errors.Join(err, reader.finish())
	}
	if err := errors.Join(p.checkInvariants(ctx, true), reader.finish()); err != nil {
		return err
	}
	after, err := p.failedConversions(ctx)
	if wrong := failures(before, after); wrong != nil {
		err = fmt.Errorf("%w\nthe first read that failed: %s", wrong, reader.failed)
		if refused := p.neighbors.refused.take(); len(refused) > 0 {
			err = fmt.Errorf("%w\nof neighbors: %s", err, strings.Join(refused, "\n"))
		}
	}
	return err
}

// do performs the action of a step while clients write.
func (p *player) do(ctx context.Context, s step) error {
	p.played, p.subjects, p.fleets = append(p.played, s), s.After, s.Fleets
	writing := make(chan error, 1)
	go func() { writing <- p.write(ctx, s.Writes) }()
	err := kindNamed(s.Kind).do(p, ctx, s)
	return errors.Join(err, <-writing)
}

// checkInvariants observes until the invariants hold: those that always hold and, if waits, those
// that hold once nothing changes any more.
func (p *player) checkInvariants(ctx context.Context, waits bool) error {
	var violated error
	err := p.eventually(ctx, "the cluster comes to rest", func(ctx context.Context) error {
		now, err := p.observe(ctx)
		if err != nil {
			return err
		}
		if wrong := check(invariants, true, now, p.last); len(wrong) > 0 {
			violated = errors.New("what must never be:\n" + strings.Join(wrong, "\n"))
			return nil
		}
		p.last = now
		p.forgetPruned(now)
		if wrong := check(invariants, false, now, p.last); waits && len(wrong) > 0 {
			return errors.New(strings.Join(wrong, "\n"))
		}
		return nil
	})
	if err = errors.Join(violated, err); err != nil || !waits {
		return err
	}
	return p.neighbors.rest(ctx)
}

// eventually calls try until it returns no error. On a timeout it returns the last error that the
// deadline itself did not cause.
func (p *player) eventually(ctx context.Context, what string, try func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for {
		err := try(bounded)
		if err == nil {
			return nil
		}
		if last == nil || bounded.Err() == nil {
			last = err
		}
		if waitErr := wait(bounded, pause); waitErr != nil {
			return fmt.Errorf("expected that %s; found after %s: %w", what, patience, last)
		}
	}
}

func wait(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(long):
		return nil
	}
}
