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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// patience bounds every wait: what takes longer is broken. It is more than the
	// longest pause before a kubelet starts a container again that was killed often,
	// and more than a migration, or a rotation, may need after that.
	patience = 10 * time.Minute
	// pause between two looks.
	pause = 200 * time.Millisecond
)

// player carries out steps and looks at what becomes of them.
type player struct {
	out     io.Writer
	dir     string // the root of the checkout
	cluster client.Client
	dynamic dynamic.Interface
	ledger  *ledger
	// subjects are what the model says after the steps so far.
	subjects []subject
	// pruned is what another client took out of status.storedVersions, by subject, as
	// long as objects are stored there.
	pruned map[string]pruning
	// last is what was observed last of each subject, before now.
	last map[string]seen
	// played are the steps so far.
	played []step
	// reads that went well while steps went on.
	reads int64
}

// play plays steps until the time is over, and brings all to an end.
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

// playStep carries out one step while clients write, and looks.
func (p *player) playStep(ctx context.Context, s step) error {
	start := time.Now()
	fmt.Fprintln(p.out, s)
	reader := p.startReader(ctx, s, p.subjects)
	p.played, p.subjects = append(p.played, s), s.After
	writing := make(chan error, 1)
	go func() { writing <- p.write(ctx, s.Writes) }()
	err := kindNamed(s.Kind).do(p, ctx, s)
	if err = errors.Join(err, <-writing, reader.finish()); err != nil {
		return err
	}
	p.noteDiscarded(s)
	if err := p.look(ctx, s.Waits); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "     %.1f s\n", time.Since(start).Seconds())
	return nil
}

// look observes until the invariants hold: those that always hold, and, if told to
// wait, those that hold once the cluster has come to rest.
func (p *player) look(ctx context.Context, waits bool) error {
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
	return errors.Join(violated, err)
}

// eventually tries until there is no error. What the end of patience cuts off says
// nothing: the error before that is returned.
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

// wait lets time pass.
func wait(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(long):
		return nil
	}
}
