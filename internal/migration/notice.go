// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import "sync"

// notice carries why the run stands still from the workers to the goroutine that
// keeps the record.
type notice struct {
	mu   sync.Mutex
	text string
	news chan struct{}
}

func newNotice() *notice { return &notice{news: make(chan struct{}, 1)} }

// set tells the text. Empty means that the run goes on.
func (n *notice) set(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.text == text {
		return
	}
	n.text = text
	select {
	case n.news <- struct{}{}:
	default:
	}
}

func (n *notice) get() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text
}
