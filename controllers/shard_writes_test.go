// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func writeOf(policy string) shardWrite {
	return shardWrite{policy: policy, configMap: "shard-00", key: policy + ".hash", stored: []byte("12345")}
}

func policiesIn(writes []shardWrite) (policies []string) {
	for _, write := range writes {
		policies = append(policies, write.policy)
	}
	return policies
}

// TestShardWrites: the first ruleset is written at once, and those that come before the end of the pause
// are written together after it, each once.
func TestShardWrites(t *testing.T) {
	var s shardWrites
	add := func(policy string, want ...string) []shardWrite {
		t.Helper()
		now, err := s.add("default", policy, []shardWrite{writeOf(policy)})
		expect.NoError(t, err)
		expect.Equal(t, "written at once", want, policiesIn(now))
		return now
	}
	a := add("a", "a")
	add("a") // it is being written
	expect.Equal(t, "a waits, as it is not stored yet", true, s.waits("default", writeOf("a").key))
	s.succeeded("default", a, time.Now())
	add("a") // the cache lags behind
	add("b")
	add("b")
	add("c")
	waits := []bool{s.waits("default", writeOf("a").key), s.waits("default", writeOf("b").key)}
	expect.Equal(t, "a, which is stored, and b wait", []bool{false, true}, waits)
	s.drop("default", writeOf("c").key)
	add("d")
	expect.Equal(t, "written together", []string{"b", "d"}, policiesIn(s.next("default")))
	add("e")
	s.next("default")
	expect.Equal(t, "written, though nothing waits", nil, policiesIn(s.next("default")))
	add("f", "f")
}

// TestShardWritesFail: a policy gets the error of a write with others when it asks again, once. Then its
// ruleset is written.
func TestShardWritesFail(t *testing.T) {
	var s shardWrites
	_, _ = s.add("default", "a", []shardWrite{writeOf("a")})
	_, _ = s.add("default", "b", []shardWrite{writeOf("b")})
	failure := errors.New("the API server is away")
	s.failedWith("default", s.next("default"), failure)
	s.next("default")
	if _, err := s.add("default", "b", []shardWrite{writeOf("b")}); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	now, err := s.add("default", "b", []shardWrite{writeOf("b")})
	expect.NoError(t, err)
	expect.Equal(t, "written", []string{"b"}, policiesIn(now))
}

// TestShardBytes: what is not in the cached shard counts towards its size.
func TestShardBytes(t *testing.T) {
	var s shardWrites
	a, _ := s.add("default", "a", []shardWrite{writeOf("a")})
	_, _ = s.add("default", "b", []shardWrite{writeOf("b")})
	now := time.Now()
	s.succeeded("default", a, now)
	counts := func(want int, cached *corev1.ConfigMap, now time.Time) {
		t.Helper()
		expect.Equal(t, "bytes", want, s.bytes("default", "shard-00", cached, now))
	}
	counts(10, nil, now)
	if other := s.bytes("default", "shard-01", nil, now); other != 0 {
		t.Errorf("%d bytes in another shard", other)
	}
	counts(5, &corev1.ConfigMap{BinaryData: map[string][]byte{"a.hash": nil}}, now)
	counts(5, nil, now) // it was deleted since
	_, _ = s.add("default", "c", []shardWrite{writeOf("c")})
	s.succeeded("default", s.next("default"), now)
	counts(10, nil, now)
	counts(0, nil, now.Add(2*unseenFor))
}
