// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"sync"
)

// memory has a value for each key, such as the name of a policy. It may be used concurrently, is empty
// at first, and does not outlive the manager.
type memory[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// get returns the value of a key, and whether there is one.
func (m *memory[K, V]) get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, known := m.values[key]
	return value, known
}

// put sets the value of a key.
func (m *memory[K, V]) put(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(key, value)
}

// add sets the value of a key that has none.
func (m *memory[K, V]) add(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.values[key]; !known {
		m.set(key, value)
	}
}

func (m *memory[K, V]) set(key K, value V) {
	if m.values == nil {
		m.values = map[K]V{}
	}
	m.values[key] = value
}

// forget drops a key, such as that of a deleted policy.
func (m *memory[K, V]) forget(key K) {
	m.forgetAll(func(other K, _ V) bool { return other == key })
}

// forgetAll drops the keys whose values are too old.
func (m *memory[K, V]) forgetAll(old func(K, V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.values, old)
}
