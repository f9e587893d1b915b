// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

const (
	// neighborClients is the number of clients that all neighbors have in common. Each has up to
	// objectsOfClient objects in every kind, which no other client writes.
	neighborClients = 4
	objectsOfClient = 2
	// atOnce bounds how many neighbors are created or deleted at the same time.
	atOnce = 8
)

// neighbors are policies that the steps are not about, and that use the same fleets: clients read and
// write their objects in every version, and an author changes their rules, all the time. The model
// knows nothing of them, because they always look the same.
type neighbors struct {
	*player
	subjects []subject
	// stop stops the clients, and ended has what they found that must never be, if anything.
	stop  context.CancelFunc
	ended chan error
	// author is held while the author of the rules changes some, and while nothing may change.
	author sync.Mutex
	// reads and writes succeeded, failed are failed reads, and changes those of rules.
	reads, writes, failed, changes atomic.Int64
	// refused has the requests that failed since the last look at it, the first ones only.
	refused refusals
}

func neighborName(i int) string { return fmt.Sprintf("neighbor-%04d", i) }

// neighborStep lets the actions of steps act on a neighbor.
func neighborStep(s subject) step { return step{Subject: s.Name, After: []subject{s}} }

// startNeighbors creates neighbors, waits until they are ready, and starts their clients, which create
// objects.
func (p *player) startNeighbors(ctx context.Context, count int, seed uint64) error {
	n := &p.neighbors
	if n.player = p; count == 0 {
		return nil
	}
	for i := range count {
		n.subjects = append(n.subjects, subject{Name: neighborName(i), Exists: true, Policy: true,
			Versions: versions, Served: versions, Storage: hub, Fleet: fleetNames[i%len(fleetNames)]})
	}
	if err := n.each(ctx, func(ctx context.Context, s subject) error { return p.begin(ctx, neighborStep(s)) }); err != nil {
		return err
	}
	if err := p.eventually(ctx, "the neighbors are ready", n.ready); err != nil {
		return err
	}
	ctx, n.stop = context.WithCancel(ctx)
	clients, ctx := errgroup.WithContext(ctx)
	for client := range neighborClients {
		clients.Go(func() error { return n.use(ctx, rand.New(rand.NewPCG(seed, uint64(client))), client) })
	}
	clients.Go(func() error { return n.changeRules(ctx, rand.New(rand.NewPCG(seed, neighborClients))) })
	n.ended = make(chan error, 1)
	go func() { n.ended <- clients.Wait() }()
	return nil
}

// each calls do for every neighbor.
func (n *neighbors) each(ctx context.Context, do func(context.Context, subject) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, s := range n.subjects {
		group.Go(func() error { return do(ctx, s) })
	}
	return group.Wait()
}

// ready returns an error unless every neighbor is ready.
func (n *neighbors) ready(ctx context.Context) error {
	policies := &v1alpha1.ConversionPolicyList{}
	if err := n.cluster.List(ctx, policies); err != nil {
		return err
	}
	ready := map[string]bool{}
	for i := range policies.Items {
		policy := &policies.Items[i]
		condition := apimeta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ReadyCondition)
		ready[policy.Name] = condition != nil && condition.Status == metav1.ConditionTrue && policy.Status.ObservedGeneration == policy.Generation
	}
	waits := slices.DeleteFunc(slices.Clone(n.subjects), func(s subject) bool { return ready[crdOf(s.Name)] })
	if len(waits) > 0 {
		return fmt.Errorf("%d of %d neighbors are not ready, for example %s", len(waits), len(n.subjects), crdOf(waits[0].Name))
	}
	return nil
}

// use reads and writes the objects of one client, until the context ends. A read may fail, but must
// not return wrong data.
func (n *neighbors) use(ctx context.Context, random *rand.Rand, client int) error {
	for {
		if err := wait(ctx, readPause); err != nil {
			return err
		}
		s := n.subjects[random.IntN(len(n.subjects))].Name
		name := fmt.Sprintf("job-%d-%d", client, random.IntN(objectsOfClient))
		version := pick(random, versions)
		want, exists := n.ledger.get(s, name)
		if !exists || random.IntN(5) == 0 {
			put := write{Client: client, Subject: s, Name: name, Version: version, Do: putObject, Record: randomRecord(random, false)}
			err := n.eventually(context.WithoutCancel(ctx), "neighbor "+s+" is written", func(ctx context.Context) error {
				err := n.writeOnce(ctx, put)
				n.refused.note(s, err)
				return err
			})
			if err != nil {
				return err
			}
			n.writes.Add(1)
			continue
		}
		wrong, err := n.read(ctx, reading{s, name, version, want})
		if n.refused.note(s, err); err != nil {
			n.failed.Add(1)
			continue
		}
		n.reads.Add(1)
		if len(wrong) > 0 {
			return fmt.Errorf("%s: %s", s, wrong[0])
		}
	}
}

// changeRules changes the rules of one neighbor after the other, until the context ends.
func (n *neighbors) changeRules(ctx context.Context, random *rand.Rand) error {
	for {
		if err := wait(ctx, 100*readPause); err != nil {
			return err
		}
		s := step{Subject: n.subjects[random.IntN(len(n.subjects))].Name}
		n.author.Lock()
		err := n.patchPolicy(ctx, s, inRules("overflow", pick(random, []string{"Drop", "Fail"})))
		n.author.Unlock()
		if err != nil {
			return err
		}
		n.changes.Add(1)
	}
}

// move moves the neighbors of a fleet to the other one.
func (n *neighbors) move(ctx context.Context, from string) error {
	for i := range n.subjects {
		if s := &n.subjects[i]; s.Fleet == from {
			s.Fleet = otherFleet(from)
			if err := n.movePolicy(ctx, neighborStep(*s)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rest returns what the clients found that must never be, and otherwise waits until all neighbors are
// ready.
func (n *neighbors) rest(ctx context.Context) error {
	if len(n.subjects) == 0 {
		return nil
	}
	select {
	case err := <-n.ended:
		return fmt.Errorf("neighbors: %w", err)
	default:
	}
	n.author.Lock()
	defer n.author.Unlock()
	return n.eventually(ctx, "the neighbors are ready", n.ready)
}

// end stops the clients, reads every object again, and deletes the neighbors.
func (n *neighbors) end(ctx context.Context) error {
	if len(n.subjects) == 0 {
		return nil
	}
	n.stop()
	if err := <-n.ended; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("neighbors: %w", err)
	}
	fmt.Fprintf(n.out, "%d neighbors: %d reads, and %d that failed; %d writes; %d changes of rules\n",
		len(n.subjects), n.reads.Load(), n.failed.Load(), n.writes.Load(), n.changes.Load())
	return n.each(ctx, func(ctx context.Context, s subject) error {
		now := observation{Subject: s, Objects: n.ledger.all(s.Name)}
		if err := n.observeReads(ctx, &now); err != nil {
			return fmt.Errorf("neighbor %s: %w", s.Name, err)
		}
		if wrong := append(unreadable(now, now), readsDiffer(now, now)...); len(wrong) > 0 {
			return fmt.Errorf("neighbor %s: %s", s.Name, wrong[0])
		}
		return n.player.end(ctx, neighborStep(s))
	})
}

// refusals has the messages of requests that failed.
type refusals struct {
	mu    sync.Mutex
	first []string
}

// mostRefusals bounds how many messages are kept.
const mostRefusals = 5

// note adds the message of a request for an object of a subject, if it failed.
func (f *refusals) note(subject string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && len(f.first) < mostRefusals {
		f.first = append(f.first, fmt.Sprintf("%s at %s: %v", subject, time.Now().Format(time.TimeOnly), err))
	}
}

// take returns the messages, and forgets them.
func (f *refusals) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.first
	f.first = nil
	return taken
}
