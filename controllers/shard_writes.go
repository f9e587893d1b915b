// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// An API server, etcd and every watch handle the whole shard for each write of one of its rulesets. So the
// rulesets of policies that come at the same time are written together. The first one is written at once.
//
// What waits is in memory only. A policy does nothing before it sees its ruleset in the shard, so that a
// manager that ends before the write loses nothing: the next one stores the ruleset.

const (
	// shardPause is the time between two writes of a fleet's shards.
	shardPause = 500 * time.Millisecond
	// unseenFor is how long a ruleset that was written is expected in the cache.
	unseenFor = 10 * time.Second
	// maxConfigMapBytes is the limit of API servers.
	maxConfigMapBytes = 1 << 20
)

var errShardFilled = errors.New("other policies have filled the shard since this was decided")

// shardWrites are the rulesets to be written, by fleet.
type shardWrites struct {
	mu     sync.Mutex
	fleets map[string]*shardQueue
}

type shardQueue struct {
	// writing is true from a write to the end of the pause after it.
	writing bool
	// waiting are written next. unseen are being written, or were, and are not in the cache yet.
	waiting, unseen []shardWrite
	// failed is why the ruleset of a policy was not written, until the policy asks again.
	failed map[string]error
}

// shardWrite is one ruleset of a policy.
type shardWrite struct {
	policy, configMap, key string
	// stored is nil to remove the ruleset.
	stored []byte
	// written is zero until then.
	written time.Time
}

func (w shardWrite) same(other shardWrite) bool {
	return w.configMap == other.configMap && w.key == other.key
}

func (s *shardWrites) queue(fleet string) *shardQueue {
	if s.fleets == nil {
		s.fleets = map[string]*shardQueue{}
	}
	if s.fleets[fleet] == nil {
		s.fleets[fleet] = &shardQueue{failed: map[string]error{}}
	}
	return s.fleets[fleet]
}

// add queues what is not queued yet. It returns what the caller must write itself at once, and then end
// with next. It returns the error of the previous write for the policy, if that failed.
func (s *shardWrites) add(fleet, policy string, writes []shardWrite) (now []shardWrite, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue(fleet)
	if err := q.failed[policy]; err != nil {
		delete(q.failed, policy)
		return nil, err
	}
	writes = slices.DeleteFunc(slices.Clone(writes), func(write shardWrite) bool {
		return slices.ContainsFunc(q.waiting, write.same) || slices.ContainsFunc(q.unseen, write.same)
	})
	if q.writing || len(writes) == 0 {
		q.waiting = append(q.waiting, writes...)
		return nil, nil
	}
	q.writing, q.unseen = true, append(q.unseen, writes...)
	return writes, nil
}

// next ends a write, and returns what has come meanwhile. If that is nothing, the next caller of add
// writes.
func (s *shardWrites) next(fleet string) []shardWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue(fleet)
	writes := q.waiting
	q.waiting, q.unseen, q.writing = nil, append(q.unseen, writes...), len(writes) > 0
	return writes
}

// succeeded records that rulesets were written.
func (s *shardWrites) succeeded(fleet string, writes []shardWrite, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue(fleet)
	for i := range q.unseen {
		if slices.ContainsFunc(writes, q.unseen[i].same) {
			q.unseen[i].written = now
		}
	}
}

// failedWith records that rulesets were not written, and why. Their policies get the error when they ask
// again.
func (s *shardWrites) failedWith(fleet string, writes []shardWrite, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue(fleet)
	q.unseen = slices.DeleteFunc(q.unseen, func(write shardWrite) bool { return slices.ContainsFunc(writes, write.same) })
	for _, write := range writes {
		q.failed[write.policy] = err
	}
}

// drop removes a ruleset that a policy does not want any more.
func (s *shardWrites) drop(fleet, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, is := s.queue(fleet), func(write shardWrite) bool { return write.key == key }
	q.waiting, q.unseen = slices.DeleteFunc(q.waiting, is), slices.DeleteFunc(q.unseen, is)
}

// waits reports that a ruleset is not written yet.
func (s *shardWrites) waits(fleet, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue(fleet)
	return slices.ContainsFunc(slices.Concat(q.waiting, q.unseen), func(write shardWrite) bool { return write.key == key && write.written.IsZero() })
}

// bytes is the size of the rulesets that will be in a shard, and are not in the cached one.
func (s *shardWrites) bytes(fleet, configMap string, cached *corev1.ConfigMap, now time.Time) (sum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue(fleet)
	seen := func(write shardWrite) bool {
		if cached == nil || write.configMap != configMap {
			return false
		}
		_, is := cached.BinaryData[write.key]
		return is
	}
	q.unseen = slices.DeleteFunc(q.unseen, func(write shardWrite) bool {
		return seen(write) || !write.written.IsZero() && now.Sub(write.written) > unseenFor
	})
	for _, write := range slices.Concat(q.waiting, q.unseen) {
		if write.configMap == configMap && !seen(write) {
			sum += len(write.stored)
		}
	}
	return sum
}

// addRulesets writes rulesets at once, or together with those of other policies after a pause.
func (r *ConversionPolicyReconciler) addRulesets(ctx context.Context, fleet, policy string, writes []shardWrite) error {
	if err := r.checkRoom(ctx, fleet, writes); err != nil {
		return err
	}
	writes, err := r.shardWrites.add(fleet, policy, writes)
	if err != nil || len(writes) == 0 {
		return err
	}
	defer r.fleetBackground.run(fleet, func(life lifetime) { r.followShards(life, fleet) })
	if err := r.writeShards(ctx, fleet, writes, true); err != nil {
		for _, write := range writes {
			r.shardWrites.drop(fleet, write.key)
		}
		return err
	}
	r.shardWrites.succeeded(fleet, writes, r.Now())
	return nil
}

// followShards writes what comes during the pauses after writes. The fleet wakes policies when it sees
// their rulesets.
func (r *ConversionPolicyReconciler) followShards(ctx context.Context, fleet string) {
	for {
		select {
		case <-ctx.Done():
		case <-time.After(shardPause):
		}
		writes := r.shardWrites.next(fleet)
		if len(writes) == 0 {
			return
		}
		err := r.writeShards(ctx, fleet, writes, true)
		if err == nil {
			r.shardWrites.succeeded(fleet, writes, r.Now())
			continue
		}
		ctrl.LoggerFrom(ctx).Info("Rulesets of several policies could not be stored", "fleet", fleet, "reason", err.Error())
		r.shardWrites.failedWith(fleet, writes, err)
		for _, write := range writes {
			r.background.wake(ctx, write.policy)
		}
	}
}

// writeShards adds rulesets to their shards, or removes those without content, with one patch for each
// shard. If create is true, it creates a shard that does not exist.
func (r *ConversionPolicyReconciler) writeShards(ctx context.Context, fleet string, writes []shardWrite, create bool) error {
	changes := map[string]map[string][]byte{}
	for _, write := range writes {
		if changes[write.configMap] == nil {
			changes[write.configMap] = map[string][]byte{}
		}
		changes[write.configMap][write.key] = write.stored
	}
	for name, keys := range changes {
		if err := r.patchShard(ctx, fleet, name, keys, create); err != nil {
			return err
		}
	}
	return nil
}

// checkRoom returns a conflict if a shard has become too full since the decision, so that one large
// ruleset does not keep the others from being written with it.
func (r *ConversionPolicyReconciler) checkRoom(ctx context.Context, fleet string, writes []shardWrite) error {
	shards, err := r.shards(ctx, fleet)
	if err != nil {
		return err
	}
	for _, write := range writes {
		shard := shards[write.configMap]
		size := r.shardWrites.bytes(fleet, write.configMap, shard, r.Now()) + len(write.stored)
		if shard != nil {
			for _, stored := range shard.BinaryData {
				size += len(stored)
			}
		}
		if size > maxConfigMapBytes {
			return apierrors.NewConflict(corev1.Resource("configmaps"), write.configMap, errShardFilled)
		}
	}
	return nil
}
