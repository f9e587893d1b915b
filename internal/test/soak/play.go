// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

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
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/conversion-operator/conversion-operator/internal/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

const (
	// patience bounds every wait. It exceeds the longest back-off of a node before it restarts a
	// container, plus the time of a migration or a rotation.
	patience = 10 * time.Minute
	// pause is the time between two tries.
	pause = 200 * time.Millisecond
	// requestTimeout bounds requests to an API server that hangs.
	requestTimeout = 15 * time.Second
)

// player performs steps, and checks invariants.
type player struct {
	out     io.Writer
	cluster client.Client
	dynamic dynamic.Interface
	// pruned has the prunings by other clients, by subject, while objects are stored at the pruned
	// versions.
	pruned map[string]Pruning
	// last is the previous observation of each subject.
	last map[string]Observation
	// played are the steps so far.
	played []Step
	// reads counts the successful reads during steps.
	reads int64
}

// Run installs the operator on the cluster of the current kubeconfig, and plays the steps of a seed for
// a time, and then those that remove every subject.
func Run(ctx context.Context, out io.Writer, seed uint64, lasts time.Duration) error {
	p, err := newPlayer(out)
	if err != nil {
		return err
	}
	root, err := scenarios.Root()
	if err != nil {
		return err
	}
	teller := scenarios.NewTeller(out, root)
	if err := scenarios.Install(ctx, teller); err != nil {
		return err
	}
	teller.Say("Some steps overwrite spec.conversion, which the guard would refuse.")
	teller.Show(ctx, "kubectl", "delete", "validatingadmissionpolicybinding", "conversion-guard.conversion-operator.io")
	if err := teller.Failure(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nseed %d, for %s\n", seed, lasts)
	start := time.Now()
	if err := p.play(ctx, NewSequence(seed), start.Add(lasts)); err != nil {
		return p.explain(seed, err)
	}
	fmt.Fprintf(out, "seed %d: %d steps in %s, %d reads meanwhile, and every invariant held\n",
		seed, len(p.played), time.Since(start).Round(time.Second), p.reads)
	return nil
}

// explain returns an error with the violation, and how to reproduce it.
func (p *player) explain(seed uint64, violated error) error {
	var sequence strings.Builder
	for _, s := range p.played {
		fmt.Fprintln(&sequence, s)
	}
	return fmt.Errorf("\nthe steps so far:\n%s\nFAILED with seed %d in step %d (make soak SOAKSEED=%d plays it again):\n%w",
		&sequence, seed, len(p.played), seed, violated)
}

func newPlayer(out io.Writer) (*player, error) {
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return nil, err
	}
	kubeconfig.QPS, kubeconfig.Timeout = -1, requestTimeout
	kubeconfig.WarningHandler = rest.NoWarnings{} // versions are deprecated all the time
	p := &player{out: out, last: map[string]Observation{}, pruned: map[string]Pruning{}}
	if p.dynamic, err = dynamic.NewForConfig(kubeconfig); err != nil {
		return nil, err
	}
	p.cluster, err = client.New(kubeconfig, client.Options{Scheme: scheme.New()})
	return p, err
}

func (p *player) play(ctx context.Context, steps *Sequence, until time.Time) error {
	for _, f := range steps.model.Fleets {
		if err := p.applyFleet(ctx, *f); err != nil {
			return err
		}
	}
	for time.Now().Before(until) {
		if err := p.playStep(ctx, steps.Next()); err != nil {
			return err
		}
	}
	for _, s := range steps.Finish() {
		if err := p.playStep(ctx, s); err != nil {
			return err
		}
	}
	for _, name := range fleetNames {
		if err := p.deleteFleet(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// playStep performs one step while clients read and write, and then checks the invariants. In a gentle
// step, no read fails until nothing changes any more.
func (p *player) playStep(ctx context.Context, s Step) error {
	start := time.Now()
	fmt.Fprintln(p.out, s)
	p.played = append(p.played, s)
	reader := p.startReader(ctx, s)
	err := p.do(ctx, s)
	if err == nil && s.Gentle {
		err = p.checkInvariants(ctx, s)
	}
	err = errors.Join(err, reader.finish())
	switch {
	case err == nil && !s.Gentle:
		err = p.checkInvariants(ctx, s)
	case s.Gentle && reader.failed != "":
		err = errors.Join(err, fmt.Errorf("a read failed, and none should, as pods that convert were there all the time: %s", reader.failed))
	}
	fmt.Fprintf(p.out, "     %.1f s\n", time.Since(start).Seconds())
	return err
}

// do performs the action of a step while clients write.
func (p *player) do(ctx context.Context, s Step) error {
	writing := make(chan error, 1)
	go func() { writing <- p.write(ctx, s.Writes) }()
	err := kindNamed(s.Kind).do(p, ctx, s)
	return errors.Join(err, <-writing)
}

// checkInvariants observes until the invariants hold: those that always hold and, if the step waits,
// those that hold once nothing changes any more.
func (p *player) checkInvariants(ctx context.Context, s Step) error {
	var always []string
	err := p.eventually(ctx, "the cluster comes to rest", func(ctx context.Context) error {
		all, err := p.observe(ctx, s)
		if err != nil {
			return err
		}
		var wrong []string
		for _, name := range sortedKeys(all) {
			always = append(always, Check(true, all[name], p.last[name])...)
			if s.Gentle {
				unreadable(all[name], all[name], func(format string, args ...any) { always = append(always, fmt.Sprintf(format, args...)) })
			}
			wrong = append(wrong, Check(false, all[name], p.last[name])...)
		}
		p.last = all
		p.forgetPruned(all)
		if s.Waits && len(always) == 0 && len(wrong) > 0 {
			return errors.New(strings.Join(wrong[:min(len(wrong), 10)], "\n"))
		}
		return nil
	})
	if len(always) > 0 {
		return errors.New("what must never be:\n" + strings.Join(always, "\n"))
	}
	return err
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
